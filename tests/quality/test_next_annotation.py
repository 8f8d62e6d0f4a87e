"""Expected information against Bayes' rule in loops, and the choice of pairs against all pairs."""

import numpy as np
import pytest

from crowdzoo.aggregation import MajorityVote
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import CrowdzooError
from crowdzoo.quality import sure_tasks
from crowdzoo.quality.next_annotation import information_gain, next_annotations

N, R, K = 7, 5, 3


def crowd(seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K), size=N), rng.dirichlet(np.ones(K), size=(R, K))


def entropy(distribution):
    return -sum(p * np.log(p) for p in distribution if p > 0)


def expected_drop(posterior, confusion):
    """Entropy now, minus the mean over the answers of the entropy that Bayes' rule leaves."""
    drop = entropy(posterior)
    for said in range(K):
        joint = [posterior[true] * confusion[true, said] for true in range(K)]
        if sum(joint) > 0:
            drop -= sum(joint) * entropy(np.array(joint) / sum(joint))
    return drop


def all_pairs(posteriors, confusions):
    pairs = [(expected_drop(posteriors[i], confusions[r]), i, r) for i in range(N) for r in range(R)]
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))


def test_the_gain_is_the_expected_drop_of_the_posteriors_entropy():
    posteriors, confusions = crowd()
    gains = information_gain(posteriors[:, None], confusions)
    assert gains.shape == (N, R)
    for i in range(N):
        for r in range(R):
            np.testing.assert_allclose(gains[i, r], expected_drop(posteriors[i], confusions[r]), rtol=1e-9)


def test_nothing_is_learnt_of_a_certain_task_nor_from_who_answers_blindly():
    blind = np.tile([0.2, 0.3, 0.5], (K, 1))
    assert information_gain(np.eye(K)[1], np.full((K, K), 1 / K)) == 0
    np.testing.assert_allclose(information_gain([0.5, 0.3, 0.2], blind), 0, atol=1e-12)
    np.testing.assert_allclose(information_gain(np.eye(K), np.eye(K)), 0, atol=1e-12)


@pytest.fixture(params=[1, 50, 2**21])
def chunks(request, monkeypatch):
    """Matrices of so many numbers are looked at together."""
    monkeypatch.setattr("crowdzoo.quality.next_annotation.CELLS_AT_ONCE", request.param)


@pytest.mark.usefixtures("chunks")
def test_the_best_pairs_of_all_are_found():
    posteriors, confusions = crowd()
    found = next_annotations(posteriors, confusions, 8)
    expected = all_pairs(posteriors, confusions)[:8]
    np.testing.assert_allclose(found.gains, [gain for gain, _, _ in expected], rtol=1e-9)
    assert list(zip(found.tasks, found.annotators, strict=True)) == [pair[1:] for pair in expected]


@pytest.mark.usefixtures("chunks")
def test_nobody_is_asked_twice():
    posteriors, confusions = crowd()
    best = all_pairs(posteriors, confusions)
    done = best[:4] + best[9:12]
    asked = Annotations.from_arrays(
        np.array([i for _, i, _ in done]), np.array([r for _, _, r in done]), np.zeros(len(done), int),
        tasks=np.arange(N), annotators=np.arange(R), classes=np.arange(K),
    )  # fmt: skip
    found = next_annotations(posteriors, confusions, N * R, annotations=asked)
    left = [pair[1:] for pair in best if pair not in done]
    assert list(zip(found.tasks, found.annotators, strict=True)) == left


def test_only_those_who_can_be_asked_are_and_no_task_gets_more_than_its_share():
    posteriors, confusions = crowd()
    found = next_annotations(posteriors, confusions, N * R, annotators=[4, 1], per_task=1)
    assert sorted(found.tasks) == list(range(N))
    for task, annotator, gain in zip(found.tasks, found.annotators, found.gains, strict=True):
        drops = {r: expected_drop(posteriors[task], confusions[r]) for r in (4, 1)}
        assert annotator == max(drops, key=drops.get)
        np.testing.assert_allclose(gain, drops[annotator], rtol=1e-9)


def test_a_function_knows_annotators_who_treat_tasks_differently():
    # annotator 0 knows even tasks only, annotator 1 odd ones only
    def confusions(tasks, annotators):
        knows = (tasks[:, None] + annotators) % 2 == 0
        return np.where(knows[..., None, None], np.eye(2), np.full((2, 2), 0.5))

    found = next_annotations(np.full((6, 2), 0.5), confusions, 6, annotators=[0, 1])
    np.testing.assert_allclose(found.gains, np.log(2))
    np.testing.assert_array_equal(found.tasks, np.arange(6))
    np.testing.assert_array_equal(found.annotators, np.arange(6) % 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"posteriors": np.ones(3)}, r"posteriors have the shape \[tasks, classes\], got \(3,\)"),
        ({"confusions": np.ones((2, 2, 2))}, r"confusions have the shape \[annotators, 3, said\], got \(2, 2, 2\)"),
        ({"confusions": lambda tasks, annotators: None}, "give annotators or annotations"),
        ({"number": 0}, "number must be an integer of at least 1.*, got 0"),
        ({"per_task": 0}, "per_task must be an integer of at least 1.*, got 0"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    posteriors, confusions = crowd()
    with pytest.raises(CrowdzooError, match=message):
        next_annotations(**{"posteriors": posteriors, "confusions": confusions, **arguments})


@pytest.mark.parametrize("limits", [(None, None, 5.0), (1, None, 7.0), (2, 2, 100.0), (None, 1, None), (1, 3, 4.5)])
def test_limits_take_the_best_pairs_that_fit(limits):
    per_task, per_annotator, budget = limits
    posteriors, confusions = crowd(seed=4)
    costs = np.array([1.0, 2.0, 0.5, 4.0, 1.0])
    left, of_task, of_annotator, expected = budget or np.inf, np.zeros(N), np.zeros(R), []
    for gain, i, r in sorted(
        all_pairs(posteriors, confusions), key=lambda pair: (-pair[0] / costs[pair[2]], *pair[1:])
    ):
        if costs[r] <= left and of_task[i] < (per_task or N * R) and of_annotator[r] < (per_annotator or N * R):
            expected.append((i, r, gain))
            left, of_task[i], of_annotator[r] = left - costs[r], of_task[i] + 1, of_annotator[r] + 1
    found = next_annotations(
        posteriors, confusions, 1000, per_task=per_task, per_annotator=per_annotator, costs=costs, budget=budget
    )
    np.testing.assert_allclose(np.stack([found.tasks, found.annotators, found.gains], axis=1), expected)
    np.testing.assert_array_equal(found.costs, costs[found.annotators])


def test_of_many_annotators_those_who_tell_most_are_considered():
    rng = np.random.default_rng(5)
    right = np.full(600, 0.4)  # of two classes: as much as .6 tells
    right[rng.choice(600, 20, replace=False)] = 0.9
    confusions = np.stack([np.array([[p, 1 - p], [1 - p, p]]) for p in right])
    found = next_annotations(np.full((50, 2), 0.5), confusions, 50, per_task=1, per_annotator=5)
    assert len(found.tasks) == 50
    assert (right[found.annotators] == 0.9).all()
    assert np.bincount(found.annotators).max() == 5


def test_a_task_with_one_annotation_is_never_sure():
    annotations = Annotations.from_arrays([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 0, 0, 0, 1], tasks=range(4))
    result = MajorityVote().fit(annotations)
    assert result.posteriors.max(axis=1)[:3].tolist() == [1, 1, 0.5]
    assert sure_tasks(result, 0.99).tolist() == [False, True, False, False]
    assert sure_tasks(result, 0.5).tolist() == [False, True, True, False]
