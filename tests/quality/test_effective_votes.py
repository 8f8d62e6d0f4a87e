import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.quality import effective_votes


def crowd(groups: int, copies: int, num_tasks: int = 1500, seed: int = 0) -> Annotations:
    """Groups of annotators, right for 70 %; in a group all give the same answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    said = [
        np.where(rng.random(num_tasks) < 0.7, truth, (truth + rng.integers(1, 3, num_tasks)) % 3) for _ in range(groups)
    ]
    labels = np.repeat(np.stack(said), copies, axis=0)
    annotators = np.repeat(np.arange(groups * copies), num_tasks)
    return Annotations.from_arrays(np.tile(np.arange(num_tasks), groups * copies), annotators, labels.ravel())


def test_ten_who_answer_for_themselves_are_worth_ten():
    assert effective_votes(crowd(10, 1)) == pytest.approx(10, abs=0.5)


def test_twenty_who_copy_in_five_groups_are_worth_no_more_than_five():
    assert 1 < effective_votes(crowd(5, 4)) < 5


def test_there_is_no_such_number_without_a_second_vote_or_class():
    assert effective_votes(Annotations.from_arrays([0, 1], [0, 0], [0, 1])) is None
    assert effective_votes(Annotations.from_arrays([0, 0], [0, 1], [0, 0])) is None


def test_there_is_no_such_number_where_annotators_gave_several_labels(tmp_path):
    (tmp_path / "a.csv").write_text("task,annotator,label\n1,a,x\n1,a,y\n1,b,x\n")
    assert effective_votes(Annotations.read(tmp_path / "a.csv", on_duplicate="all")) is None
