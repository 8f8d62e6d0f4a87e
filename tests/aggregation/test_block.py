import pickle

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import Block
from crowdzoo.aggregation.block import blocks_of


def test_tasks_are_those_of_the_annotations():
    block = Block([5, 2, 5], [0, 0, 1], [1, 0, 1])
    np.testing.assert_array_equal(block.tasks, [2, 5])
    np.testing.assert_array_equal(block.index, [1, 0, 1])
    assert len(block) == 3


def test_said_numbers_annotator_and_label():
    np.testing.assert_array_equal(Block([0, 0], [0, 2], [1, 3]).said(num_annotators=3, num_classes=4), [1, 11])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [0, 1]), r"annotator_ids of shape \(1,\)"),
        (([0], [0], [-1]), "Received: -1 in labels"),
        (([0], [-1], [0]), "Received: -1 in annotator_ids"),
        (([0, 3], [0, 0], [0, 0], [0, 1]), "not among its tasks"),
        (([0], [0], [0], []), "not among its tasks"),
        (([0], [0], [0], [1, 0]), "ascending"),
        (([0], [0], [0], [0, 0]), "ascending"),
        (([0], [0], [0], None, [0, 1]), "one class per task"),
    ],
)
def test_blocks_that_are_none_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Block(*arguments)


@pytest.mark.parametrize(("num_annotators", "num_classes"), [(2, 9), (9, 3)])
def test_codes_beyond_the_vocabulary_are_refused(num_annotators, num_classes):
    with pytest.raises(DataError, match="annotator 2 and class 3"):
        Block([0], [2], [3]).said(num_annotators, num_classes)


def test_pickle_keeps_the_columns_and_leaves_the_cache():
    block = Block([5, 2, 5], [0, 0, 1], [1, 0, 1], [2, 5, 8], [-1, 1, 0])
    size = len(pickle.dumps(block))
    assert block.index is not None
    assert len(pickle.dumps(block)) == size
    copy = pickle.loads(pickle.dumps(block))
    for name in ("task_ids", "annotator_ids", "labels", "tasks", "gold", "index"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(block, name))


def test_informed_tasks_have_annotations_or_gold():
    block = Block([5], [0], [1], [2, 5, 8], [-1, -1, 0])
    np.testing.assert_array_equal(block.informed, [False, True, True])


def test_blocks_cover_every_task_once():
    annotations = Annotations.from_arrays([4, 0, 4, 2, 2, 2], [0, 1, 1, 0, 1, 2], [0] * 6, tasks=range(6))
    gold = np.array([0, -1, -1, 0, -1, -1])
    blocks = list(blocks_of(annotations, gold, max_annotations=2))
    assert [block.tasks.tolist() for block in blocks] == [[0], [2], [4], [1, 3, 5]]
    assert [len(block) for block in blocks] == [1, 3, 2, 0]
    assert [block.gold.tolist() for block in blocks] == [[0], [-1], [-1], [-1, 0, -1]]
