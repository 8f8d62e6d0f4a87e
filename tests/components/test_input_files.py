"""Hashes and copies of a run's files where a table names images."""

import pytest
from PIL import Image

from crowdzoo.components.input_files import content_hashes, own_copies
from crowdzoo.errors import DataError

INPUTS = {"photo": "image", "age": "number"}


@pytest.fixture
def table(tmp_path):
    """A table of two photographs that lie beside it."""
    for number, name in enumerate(("p.png", "q.png")):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / name)
    path = tmp_path / "people.csv"
    path.write_text("task,age,photo\np,1,p.png\nq,2,q.png\n")
    return path


def test_an_image_that_a_column_names_counts_in_the_hash(table):
    def found():
        return content_hashes({"instances": table}, inputs=INPUTS)

    before = found()
    Image.new("RGB", (4, 4), (200, 0, 0)).save(table.parent / "q.png")
    assert found() != before
    assert content_hashes({"gold": table}, inputs=INPUTS) != content_hashes({"instances": table}, inputs=INPUTS)


def test_a_table_that_names_images_stays_where_its_paths_hold_and_a_changed_image_is_refused(table, tmp_path):
    files = {"instances": str(table)}
    hashes = content_hashes(files, inputs=INPUTS)
    with own_copies(files, hashes, tmp_path, inputs=INPUTS) as copies:
        assert copies == files
    with own_copies({"gold": str(table)}, {"gold": content_hashes({"gold": table})["gold"]}, tmp_path) as copies:
        assert copies["gold"] != str(table), "a file without images is copied"
    Image.new("RGB", (4, 4), (200, 0, 0)).save(table.parent / "p.png")
    with (
        pytest.raises(DataError, match=r"people\.csv: its content changed after the run began"),
        own_copies(files, hashes, tmp_path, inputs=INPUTS),
    ):
        pass
