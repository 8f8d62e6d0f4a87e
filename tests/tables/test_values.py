"""Free texts and regions are values of their own: `Annotations.values`, not classes."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import bad_rows

from crowdzoo.data.regions import MarkedImage, Region
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.tables import Annotations
from crowdzoo.training.digest import digest_of

CAT = MarkedImage(4, 6, (Region("cat", (1.0, 1.0, 2.0, 3.0)),))
NOTHING = MarkedImage(4, 6)
TASKS, PEOPLE = [1, 1, 2], ["ann", "bob", "ann"]
TEXTS = ["10", "a cat", "10"]


def marked(*images, **options):
    return Annotations.from_arrays(TASKS, PEOPLE, images or [CAT, NOTHING, CAT], kind="region", **options)


def written(**options):
    return Annotations.from_arrays(TASKS, PEOPLE, TEXTS, kind="free-text", **options)


def test_marked_images_are_kept_as_they_were_given_and_are_no_classes():
    crowd = marked()
    assert crowd.classes is None
    assert crowd.num_classes == 0
    assert crowd.values.tolist() == [NOTHING, CAT]  # by their text
    assert crowd.values[crowd.labels].tolist() == [CAT, NOTHING, CAT]
    assert crowd == marked(CAT.text, NOTHING, CAT.text)
    assert crowd != marked(CAT, CAT, CAT)


def test_texts_that_look_like_numbers_stay_texts():
    assert written().values.tolist() == ["10", "a cat"]
    numbers = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], ["10", "9", "1.0"], kind="free-text")
    assert sorted(numbers.values) == ["1.0", "10", "9"]
    mixed = Annotations.from_arrays([1, 1], ["ann", "bob"], [7, "a"], kind="free-text")
    assert sorted(mixed.values) == ["7", "a"]
    assert Annotations.from_arrays([1], ["ann"], np.array([7]), kind="free-text").values.tolist() == ["7"]
    assert Annotations.from_arrays([1], ["ann"], np.array([7.0]), kind="free-text").values.tolist() == ["7"]


def test_the_repr_counts_the_values_that_occur():
    assert repr(written()).endswith("2 tasks, 2 annotators, 2 texts>")
    assert repr(marked()).endswith("2 annotators, 2 marked images>")
    assert repr(marked().select_tasks([1])).endswith("2 annotators, 1 marked images>")
    assert "cat" in marked()._repr_html_()


@pytest.mark.parametrize("crowd", [written(), marked(), marked().select_tasks([1])], ids=["texts", "images", "one"])
def test_values_are_read_again_from_every_form(crowd, tmp_path):
    again = Annotations.from_parquet(crowd.to_parquet(tmp_path / "a.parquet"))
    assert again == crowd
    assert Annotations.from_frame(crowd.to_frame(), kind=crowd.kind, tasks=crowd.tasks).values.tolist() == [
        crowd.values[code] for code in np.unique(crowd.labels)
    ]
    assert pickle.loads(pickle.dumps(crowd)) == crowd
    crowd.to_frame().to_csv(tmp_path / "a.csv", index=False)
    assert len(Annotations.read(tmp_path / "a.csv", kind=crowd.kind)) == len(crowd)


def test_a_file_of_a_time_when_values_were_classes_is_read_and_equal(tmp_path):
    """Such a file has a column of names, integers where all texts were numbers, and perhaps their list."""
    about = {"version": 1, "kind": "region", "names": {"task": None, "annotator": None, "label": None}}
    columns = {"task": TASKS, "annotator": PEOPLE, "label": [CAT.text, NOTHING.text, CAT.text]}
    pq.write_table(old(columns, about), tmp_path / "old.parquet")
    assert Annotations.from_parquet(tmp_path / "old.parquet") == marked()
    assert (
        old(columns, about)
        .schema.remove_metadata()
        .equals(pq.read_schema(marked().to_parquet(tmp_path / "new.parquet")).remove_metadata())
    )
    listed = {"type": "integer", "names": [9, 10, 11]}
    about = {"version": 1, "kind": "free-text", "names": {"task": None, "annotator": None, "label": listed}}
    table = old({"task": TASKS, "annotator": PEOPLE, "label": [10, 11, 10]}, about)
    pq.write_table(table, tmp_path / "numbers.parquet")
    found = Annotations.from_parquet(tmp_path / "numbers.parquet")
    assert (found.values.tolist(), found.labels.tolist()) == (["9", "10", "11"], [1, 2, 1])


def old(columns, about):
    types = [pa.large_string() if isinstance(values[0], str) else pa.int64() for values in columns.values()]
    arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
    return pa.table(arrays, list(columns), metadata={b"crowdzoo.annotations": json.dumps(about).encode()})


def test_the_digest_of_annotations_is_that_of_the_texts_in_the_place_of_classes():
    """Earlier runs and trainings are known by it; these were computed when values were classes."""
    assert digest_of(written())[:16] == "1be5fb4566b37ab3"
    assert digest_of(marked())[:16] == "d2fd579595bacb05"
    assert digest_of(Annotations.from_arrays(TASKS, PEOPLE, ["a", "b", "a"]))[:16] == "27cee83b8186917a"


def test_text_of_an_image_is_kept_as_it_was_written():
    text = '{"regions": [], "size": [4, 6]}'
    image = MarkedImage.parse(text)
    assert (str(image), image.text) == (text, text)
    assert image != NOTHING  # by their text, as annotations were compared
    assert image.rename({"cat": "dog"}).text == NOTHING.text
    assert CAT.rename({"cat": "dog"}).regions == (Region("dog", (1.0, 1.0, 2.0, 3.0)),)
    assert len({CAT, MarkedImage.parse(CAT.text), NOTHING}) == 2
    assert CAT.distinct is CAT
    assert MarkedImage(4, 6, CAT.regions * 2).distinct == CAT


BAD = {
    "cat": "'cat' holds no regions. Write",
    '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [5, 1, 9, 1]}]}':
        "region 1 (cat): bbox [5, 1, 9, 1] lies outside of the image, 6 x 4 pixels",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_text_that_holds_no_regions_is_named_with_its_row_and_can_be_left_out(text, tmp_path):
    path = Path(tmp_path, "a.jsonl")
    rows = [{"task": 1, "annotator": who, "label": label} for who, label in (("ann", CAT.text), ("bob", text))]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    with pytest.raises(DataError, match=re.escape(BAD[text]), check=bad_rows((2, "label", text))):
        Annotations.read(path, kind="region")
    with pytest.warns(UserWarning, match="1 row was left out"):
        assert Annotations.read(path, kind="region", on_bad_rows="reject").values.tolist() == [CAT]
    with pytest.raises(DataError, match="arrays, row 2, column 'label'"):
        marked(CAT, CAT, text)


def test_what_belongs_to_classes_or_numbers_is_refused():
    with pytest.raises(ConfigError, match="classes do not belong to kind 'free-text'"):
        written(classes=TEXTS[:2])
    with pytest.raises(DataError, match="cannot represent annotations of kind 'region'"):
        Annotations.from_dense(np.zeros((2, 2), int), kind="region")
    with pytest.raises(DataError, match="a scale belongs to annotations of kind 'regression'"):
        written().check_scale(0, 1)
    with pytest.raises(DataError, match="'label' holds ids that cannot be hashed"):
        Annotations.from_arrays([1], ["ann"], [["a", "cat"]], kind="free-text")
    with pytest.raises(DataError, match=r"'label' holds marked images\. Read"):
        Annotations.from_arrays([1], ["ann"], [CAT])
    codes, names = np.zeros(1, int), np.array(["a"], object)
    with pytest.raises(ValueError, match="values belong to kinds free-text and region"):
        Annotations("free-text", codes, codes, codes, names, names)
    with pytest.raises(ValueError, match="classes belong to every kind but"):
        Annotations("region", codes, codes, codes, names, names, classes=names, values=[CAT])
