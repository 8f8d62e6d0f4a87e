import csv
import dataclasses

import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets import CrowdDataset, write_files
from crowdzoo.errors import DataError
from crowdzoo.instances import read_instances


@pytest.fixture
def small():
    annotations = Annotations.from_arrays(
        ["t2", "t1", "t2"], ["ann, the first", "bo", "bo"], ["dog", "cat", "cat"], classes=["dog", "cat"]
    )
    return CrowdDataset(
        name="small",
        annotations=annotations,
        instances=np.array([[1.5, -2], [0, 4]], dtype=np.float32),
        gold=np.array([1, 0]),
        split=np.array(["train", "eval"]),
        licence="none",
        citation="nobody",
        description="made up",
    )


def test_annotations_are_written_by_name(small, tmp_path):
    path, _ = write_files(small, tmp_path / "new" / "folder")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["task", "annotator", "label"],
        ["t2", "ann, the first", "dog"],
        ["t1", "bo", "cat"],
        ["t2", "bo", "cat"],
    ]


def test_the_pipelines_reader_gives_the_arrays_back(small, tmp_path):
    instances = read_instances(write_files(small, tmp_path)[1])
    assert np.array_equal(instances.values, small.instances)
    assert instances.tasks.tolist() == ["t1", "t2"]
    assert instances.gold_codes(small.annotations.classes).tolist() == [1, 0]
    assert instances.split.tolist() == ["train", "eval"]


def test_ratings_are_written_as_numbers(small, tmp_path):
    numbers = Annotations.from_arrays(["t1", "t2", "t2"], ["a", "a", "b"], [0.5, -1.0, 2.25], kind="regression")
    rated = dataclasses.replace(small, annotations=numbers, gold=np.array([0.1, np.nan]))
    table, instances = write_files(rated, tmp_path)
    assert Annotations.read(table, kind="regression") == numbers
    np.testing.assert_array_equal(read_instances(instances).gold_ratings(), [0.1, np.nan])


def test_tags_of_sentences_are_refused(small, tmp_path):
    tags = Annotations.from_arrays(["a"], ["b"], ["O"], position=[0], kind="sequence")
    with pytest.raises(DataError, match="sentences as CrowdSequences"):
        write_files(dataclasses.replace(small, annotations=tags), tmp_path)
