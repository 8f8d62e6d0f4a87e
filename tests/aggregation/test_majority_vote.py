import numpy as np
import pytest

from crowdzoo import Annotations, DataError, process
from crowdzoo.aggregation import DawidSkene, MajorityVote

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

# votes per task: 2:1, 1:1, 1:1:1, 3:0
TASK = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3]
ANNOTATOR = [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2]
LABEL = [0, 0, 1, 1, 2, 2, 0, 1, 2, 2, 2]


def crowd(copies=1):
    task = np.concatenate([np.array(TASK) + 4 * copy for copy in range(copies)])
    return Annotations.from_arrays(task, ANNOTATOR * copies, LABEL * copies)


def test_soft_posteriors_are_vote_shares():
    expected = [[2 / 3, 1 / 3, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]
    np.testing.assert_allclose(MajorityVote().fit(crowd()).posteriors, expected)


def test_hard_votes_share_ties_equally():
    expected = [[1, 0, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]
    np.testing.assert_allclose(MajorityVote(voting="hard").fit(crowd()).posteriors, expected)


def test_lowest_class_wins_ties():
    result = MajorityVote(voting="hard", ties="lowest").fit(crowd())
    np.testing.assert_array_equal(result.labels, [0, 1, 0, 2])
    np.testing.assert_array_equal(result.posteriors, np.eye(3)[[0, 1, 0, 2]])


def test_random_ties_fall_on_each_tied_class_equally_often():
    result = MajorityVote(voting="hard", ties="random", seed=1).fit(crowd(copies=3000))
    np.testing.assert_array_equal(result.posteriors, np.eye(3)[result.labels])
    labels = result.labels.reshape(-1, 4)
    assert set(labels[:, 0]) == {0}
    assert set(labels[:, 3]) == {2}
    # standard deviations of the shares: .009 each
    np.testing.assert_allclose(np.bincount(labels[:, 1], minlength=3) / 3000, [0, 1 / 2, 1 / 2], atol=0.04)
    np.testing.assert_allclose(np.bincount(labels[:, 2], minlength=3) / 3000, [1 / 3, 1 / 3, 1 / 3], atol=0.04)


def test_draw_of_a_task_does_not_depend_on_the_other_tasks():
    few, many = crowd(copies=5), crowd(copies=50)
    for ties in ("random", "uniform"):
        vote = MajorityVote(ties=ties, seed=5)
        np.testing.assert_array_equal(vote.fit(few).labels, vote.fit(many).labels[:20])


def test_accuracy_is_the_mean_over_all_tie_breaks():
    # tasks 0 and 3 are right for certain, task 1 by one half, task 2 by one third
    gold = np.array([0, 2, 1, 2])
    expected = (1 + 1 / 2 + 1 / 3 + 1) / 4
    assert MajorityVote().fit(crowd()).accuracy(gold) == pytest.approx(expected)
    assert MajorityVote(voting="hard").fit(crowd()).accuracy(gold) == pytest.approx(expected)
    drawn = MajorityVote(seed=2).fit(crowd(copies=3000)).labels.reshape(-1, 4)
    assert (drawn == gold).mean() == pytest.approx(expected, abs=0.02)


def test_accuracy_leaves_out_tasks_without_gold():
    assert MajorityVote().fit(crowd()).accuracy([-1, 2, -1, -1]) == pytest.approx(0.5)
    with pytest.raises(DataError, match="No task has a known class"):
        MajorityVote().fit(crowd()).accuracy([-1, -1, -1, -1])
    with pytest.raises(DataError, match=r"got shape \(2,\)"):
        MajorityVote().fit(crowd()).accuracy([0, 1])


def test_confusions_compare_each_annotator_with_the_vote():
    # annotator 2 said 1 where the shares are (2/3, 1/3, 0), 1 at (1/3, 1/3, 1/3), and 2 at (0, 0, 1)
    counts = np.array([[0, 1, 0], [0, 2 / 3, 0], [0, 1 / 3, 1]]) + 0.01
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MajorityVote().fit(crowd()).confusions[2], expected)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ([0, 1], r"shape \(4,\)"),
        ([0, 1, 3, -1], "got 3 for task 2"),
        ([0, -2, 0, 0], "got -2 for task 1"),
        ([0.0, 1.0, 1.0, 1.0], "float64"),
    ],
)
def test_gold_that_does_not_fit_is_refused(gold, message):
    with pytest.raises(DataError, match=message):
        MajorityVote().fit(crowd(), gold=gold)


# === Votes with a confidence ===


def test_votes_with_a_confidence_are_mean_probabilities():
    annotations = Annotations.from_arrays(
        ["a", "a", "b", "c"], [0, 1, 0, 0], [1, 0, 0, 1], classes=[0, 1], confidence=[0.9, 0.6, 1.0, float("nan")]
    )
    result = MajorityVote(confidence=True).fit(annotations)
    np.testing.assert_allclose(result.posteriors, [[0.35, 0.65], [1, 0], [0, 1]])  # (.9 + .4) / 2 for 1
    assert result.labels.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(MajorityVote(voting="hard", confidence=True).fit(annotations).posteriors[0], [0, 1])
    known = MajorityVote(confidence=True).fit(annotations, gold=[0, -1, -1])
    np.testing.assert_allclose(known.posteriors[0], [1, 0])


def test_the_rest_of_a_confidence_goes_evenly_to_the_other_classes():
    annotations = Annotations.from_arrays([0], [0], [2], classes=[0, 1, 2], confidence=[0.4])
    np.testing.assert_allclose(MajorityVote(confidence=True).fit(annotations).posteriors, [[0.3, 0.3, 0.4]])


def test_tasks_without_votes_get_the_mean_share_of_those_with_a_confidence():
    annotations = Annotations.from_arrays([0, 1], [0, 0], [0, 1], tasks=[0, 1, 2], confidence=[0.8, 0.6])
    found = MajorityVote(confidence=True).fit(annotations).posteriors[2]
    np.testing.assert_allclose(found, [(0.8 + 0.4 + 0.01) / 2.02, (0.2 + 0.6 + 0.01) / 2.02])


def test_votes_without_a_confidence_are_refused():
    with pytest.raises(DataError, match="needs annotations with a column `confidence`"):
        MajorityVote(confidence=True).fit(crowd())


@pytest.mark.parametrize("gold", [None, [1, 0, -1, -1, -1, -1]])
def test_classes_without_memory_for_matrices_leave_the_vote_as_it_is(gold, monkeypatch):
    random = np.random.default_rng(0)
    said = random.integers(0, 4, 30)
    crowd = Annotations.from_arrays(np.repeat(range(6), 5), np.tile(range(5), 6), [f"class {code}" for code in said])
    known = None if gold is None else np.array(gold)
    with_matrices = MajorityVote().fit(crowd, known)
    monkeypatch.setattr(process, "available_memory", lambda: 8 * 4 * (6 + 4))
    without = MajorityVote().fit(crowd, known)
    assert without.confusions is None
    np.testing.assert_array_equal(without.posteriors, with_matrices.posteriors)
    np.testing.assert_allclose(without.class_prior, with_matrices.class_prior, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::crowdzoo.errors.DataWarning")
def test_more_classes_than_memory_are_refused_before_the_work_by_their_number(monkeypatch):
    crowd = Annotations.from_arrays(range(3000), ["ann"] * 3000, [f"text {i}" for i in range(3000)])
    monkeypatch.setattr(process, "available_memory", lambda: 10**6)
    for method, needed in ((DawidSkene, 0.144), (MajorityVote, 0.072)):
        with pytest.raises(DataError, match=rf": 3,000 classes .* need about {needed} GB of memory, but 0.001 GB"):
            method().fit(crowd)
