import pickle

import numpy as np
import pytest

from crowdzoo import DataError
from crowdzoo.aggregation import Block


def test_tasks_are_those_of_the_annotations():
    block = Block([5, 2, 5], [0, 0, 1], [1, 0, 1])
    np.testing.assert_array_equal(block.tasks, [2, 5])
    np.testing.assert_array_equal(block.index, [0, 1, 1])
    np.testing.assert_array_equal(block.starts, [0, 1, 3])
    assert len(block) == 3


def test_columns_are_sorted_by_task_and_keep_their_order_within_it():
    block = Block([5, 2, 5, 2], [0, 7, 1, 3], [1, 0, 300, 2])
    np.testing.assert_array_equal(block.annotator_ids, [7, 3, 0, 1])
    np.testing.assert_array_equal(block.labels, [0, 2, 1, 300])


def test_cut_blocks_share_the_memory_and_cover_all():
    block = Block([0, 0, 1, 3, 3, 3, 4], range(7), [1, 0, 1, 0, 1, 0, 1], range(6), [-1, 0, -1, -1, 1, -1])
    parts = block.cut(2)
    assert [part.tasks.tolist() for part in parts] == [[0], [1, 2], [3], [4, 5]]
    assert [len(part) for part in parts] == [2, 1, 3, 1]
    assert [part.gold.tolist() for part in parts] == [[-1], [0, -1], [-1], [1, -1]]
    assert all(np.shares_memory(part.annotator_ids, block.annotator_ids) for part in parts)
    np.testing.assert_array_equal(np.concatenate([part.annotator_ids for part in parts]), block.annotator_ids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [0, 1]), r"annotator_ids of shape \(1,\)"),
        (([0], [0], [-1]), "got -1 in labels"),
        (([0], [-1], [0]), "got -1 in annotator_ids"),
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
    for name in ("starts", "annotator_ids", "labels", "tasks", "gold", "index"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(block, name))


def test_informed_tasks_have_annotations_or_gold():
    block = Block([5], [0], [1], [2, 5, 8], [-1, -1, 0])
    np.testing.assert_array_equal(block.informed, [False, True, True])
