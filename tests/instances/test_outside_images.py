"""A table names images in its own folder, and others only where one says so."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.instances import IMAGES, read_instances, tables
from crowdzoo.reading.tables.layout import Layout

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def outside(tmp_path):
    """Ways to an image outside of a table's folder, and one inside."""
    (tmp_path / "set" / "photos").mkdir(parents=True)
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "private.png")
    shutil.copy(tmp_path / "private.png", tmp_path / "set" / "photos" / "own.png")
    (tmp_path / "set-2").mkdir()
    shutil.copy(tmp_path / "private.png", tmp_path / "set-2" / "a.png")
    (tmp_path / "set" / "link.png").symlink_to("../private.png")
    (tmp_path / "set" / "up").symlink_to("..")
    (tmp_path / "set" / "inside.png").symlink_to("photos/own.png")
    (tmp_path / "a.csv").write_text("task,annotator,label\na,x,p\na,y,q\nb,x,q\nb,y,q\n")
    return ["../private.png", str(tmp_path / "private.png"), "link.png", "up/private.png", "photos/../../private.png",
            "../set-2/a.png"]  # fmt: skip


def written(*paths):
    rows = zip("abcdefgh", paths, strict=False)
    Path("set/i.csv").write_text("task,image\n" + "".join(f"{task},{path}\n" for task, path in rows))


@pytest.mark.parametrize("kind", [IMAGES, tables({"image": "image"})], ids=["images", "table"])
def test_paths_that_lead_out_of_the_table_s_folder_are_refused_unless_allowed(outside, kind):
    written("photos/own.png", "inside.png", "./photos/../photos/own.png")
    assert len(read_instances("set/i.csv", kind).tasks) == 3
    for path in outside:
        written("photos/own.png", path)
        with pytest.raises(DataError, match=r"row 3, column 'image': .* leads out of the table's folder"):
            read_instances("set/i.csv", kind)
    written(*outside)
    assert len(read_instances("set/i.csv", kind, Layout(outside_images=True)).tasks) == len(outside)


def test_a_report_shows_no_image_from_elsewhere_and_names_the_option(outside, refusal_of):
    written("photos/own.png", "../private.png")
    words = ["report", "a.csv", "--instances", "set/i.csv", "--out", "page.html"]
    message = refusal_of(*words, code=3)
    assert "'../private.png' leads out of the table's folder" in message
    assert "allow such paths: --outside-images." in message
    assert cli.main([*words, "--outside-images"]) == 0
    assert "data:image/jpeg" in Path("page.html").read_text()
