"""Annotations beside a folder of images."""

import pytest
from PIL import Image

from crowdzoo.errors import DataError
from crowdzoo.kinds import KINDS


def test_an_annotated_image_that_is_not_in_the_folder_is_said(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "ab":
        Image.new("RGB", (8, 8), "red").save(folder / f"{name}.png")
    answers = tmp_path / "answers.csv"
    answers.write_text("task,annotator,label\na.png,ann,x\nb.png,ann,y\nc.png,ann,x\nc.png,bob,x\n")
    with pytest.raises(DataError, match=r"'c.png' is not one of (.*\n)*.*photos: The tasks are its"):
        KINDS["classification"].training.read(answers, folder)
    with pytest.warns(UserWarning, match="2 rows were left out"):
        found = KINDS["classification"].training.read(answers, folder, on_bad_rows="reject")
    assert found.crowd.tasks.tolist() == ["a.png", "b.png"]
    assert found.crowd.num_rejected == 2
