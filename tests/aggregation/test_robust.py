import warnings

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from crowdzoo import Annotations
from crowdzoo.aggregation import (
    DawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    Robust,
    VotesWarning,
)
from crowdzoo.aggregation.against_votes import share_against_votes
from crowdzoo.aggregation.classes.robust import vote_weights
from crowdzoo.aggregation.engine import correlated_votes as correlated
from crowdzoo.aggregation.engine.correlated_votes import correlated_votes, weighted_votes
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS, simulated_crowd


@pytest.mark.parametrize("check", AGGREGATOR_CHECKS.values(), ids=AGGREGATOR_CHECKS)
def test_battery(check):
    check(Robust())


def shares_drawn(concentration, right=0.7, num_tasks=3000, votes=8, seed=0):
    """Votes of three classes from a Dirichlet-multinomial, [N, 3], and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    means = np.where(np.eye(3) > 0, right, (1 - right) / 2)[truth]
    shares = np.stack([rng.dirichlet(concentration * mean) for mean in means])
    return np.stack([rng.multinomial(votes, share) for share in shares]).astype(float), truth


@pytest.mark.parametrize("concentration", [2.0, 10.0])
def test_share_and_concentration_come_back(concentration):
    votes, truth = shares_drawn(concentration)
    known = np.arange(len(votes)) % 2 == 0  # half of the classes are told: the votes alone say little at c = 2
    begin = np.where(known[:, None], np.eye(3)[truth], votes / votes.sum(axis=1, keepdims=True))
    found = correlated_votes(votes, begin, known)
    assert found.concentration == pytest.approx(concentration, rel=0.2)
    assert found.right == pytest.approx(0.7, abs=0.03)
    np.testing.assert_array_equal(found.posteriors[known], np.eye(3)[truth[known]])


def test_posteriors_are_those_of_the_dirichlet_multinomial():
    votes, _ = shares_drawn(4.0, num_tasks=50)
    found = correlated_votes(votes, votes / votes.sum(axis=1, keepdims=True), np.zeros(50, bool))
    alpha = found.concentration * np.where(np.eye(3) > 0, found.right, (1 - found.right) / 2)
    score = np.stack([(gammaln(votes + a) - gammaln(a)).sum(axis=1) for a in alpha], axis=1)
    ratio = np.log(found.posteriors) - (score - logsumexp(score, axis=1, keepdims=True))
    # what is left is the log class prior, the same for all tasks up to each one's normaliser
    np.testing.assert_allclose(ratio - ratio[:, :1], np.broadcast_to(ratio[0] - ratio[0, 0], ratio.shape), atol=1e-9)


def test_the_two_numbers_are_fitted_on_a_part_of_many_tasks(monkeypatch):
    votes, _ = shares_drawn(5.0)
    begin, known = votes / votes.sum(axis=1, keepdims=True), np.zeros(len(votes), bool)
    whole = correlated_votes(votes, begin, known)
    monkeypatch.setattr(correlated, "MOST_TASKS", 1500)
    part = correlated_votes(votes, begin, known)
    assert part.concentration != whole.concentration
    assert part.concentration == pytest.approx(whole.concentration, rel=0.15)
    assert (part.posteriors.argmax(axis=1) == whole.posteriors.argmax(axis=1)).mean() > 0.95


def test_weights_are_log_odds_and_never_negative():
    np.testing.assert_allclose(vote_weights(np.array([0.9, 0.5, 0.2]), 2), [np.log(9), 0, 0])
    np.testing.assert_allclose(vote_weights(np.array([0.5]), 5), [np.log(4)])
    table = weighted_votes(np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([0.5, 2.0, 1.0]), 3, 2)
    np.testing.assert_array_equal(table, [[0, 2.5], [1, 0], [0, 0]])


def mean_of_parts(crowd, *, one_coin):
    """The mean, from its parts; `one_coin`: whether the posteriors of one coin are among them."""
    coin = OneCoinDawidSkene().fit(crowd)
    weights = vote_weights(coin.reliability, crowd.num_classes)[crowd.annotator_ids]
    shape = crowd.num_tasks, crowd.num_classes
    votes = weighted_votes(crowd.task_ids, crowd.labels, weights / weights.mean(), *shape)
    matrices = [method().fit(crowd, initial=coin.posteriors) for method in (HierarchicalDawidSkene, DawidSkene)]
    parts = [
        1.5 * np.mean([one.posteriors for one in matrices], axis=0),
        correlated_votes(votes, coin.posteriors, np.zeros(crowd.num_tasks, bool)).posteriors,
        MajorityVote().fit(crowd).posteriors,
        *([coin.posteriors] if one_coin else []),
    ]
    return np.sum(parts, axis=0) / (4.5 if one_coin else 3.5)


def test_with_many_annotations_an_annotator_it_is_the_mean_of_matrices_and_votes():
    crowd, _ = simulated_crowd(seed=2)
    np.testing.assert_allclose(Robust().fit(crowd).posteriors, mean_of_parts(crowd, one_coin=False), atol=1e-12)


def copies(num_tasks=600, seed=0):
    """Ten honest annotators, right for 65 %, and twelve copies of a judge who is right for half of the tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, num_tasks)
    own = [np.where(rng.random(num_tasks) < 0.65, truth, rng.integers(0, 4, num_tasks)) for _ in range(10)]
    judge = np.where(rng.random(num_tasks) < 0.5, truth, rng.integers(0, 4, num_tasks))
    said = [*own, *(np.where(rng.random(num_tasks) < 0.95, judge, rng.integers(0, 4, num_tasks)) for _ in range(12))]
    tasks = np.tile(np.arange(num_tasks), 22)
    return Annotations.from_arrays(tasks, np.repeat(np.arange(22), num_tasks), np.concatenate(said)), truth


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_it_is_less_certain_than_dawid_skene_where_annotators_copy_each_other():
    crowd, truth = copies()
    ours, theirs = Robust().fit(crowd), DawidSkene().fit(crowd)
    our_gap, their_gap = (one.posteriors.max(axis=1).mean() - one.expected_accuracy(truth) for one in (ours, theirs))
    assert ours.expected_accuracy(truth) >= theirs.expected_accuracy(truth)
    assert their_gap > 0.3
    assert abs(our_gap) < 0.85 * their_gap


def test_where_matrices_contradict_the_votes_it_is_weighted_votes(misled):
    crowd, truth = misled
    with pytest.warns(
        VotesWarning,
        match="contradict the votes, weighted or not, on .* may make the same errors, or many answer at ran",
    ):
        found = Robust().fit(crowd)
    with pytest.warns(VotesWarning, match="differ from the plurality"):
        matrices = HierarchicalDawidSkene().fit(crowd)
    assert found.notes[0].startswith("Confusion matrices contradict the votes")
    assert found.expected_accuracy(truth) >= MajorityVote().fit(crowd).expected_accuracy(truth) - 0.01
    assert found.expected_accuracy(truth) > matrices.expected_accuracy(truth) + 0.05
    coin = OneCoinDawidSkene().fit(crowd)
    weights = vote_weights(coin.reliability, 4)[crowd.annotator_ids]
    votes = weighted_votes(crowd.task_ids, crowd.labels, weights / weights.mean(), crowd.num_tasks, 4)
    concentration = correlated_votes(votes, coin.posteriors, np.zeros(len(votes), bool)).concentration
    worth = 16 * (1 + concentration) / (16 + concentration)
    expected = (worth * votes / votes.sum(axis=1, keepdims=True) + 0.25) / (worth + 1)
    np.testing.assert_allclose(found.posteriors, expected, atol=1e-12)


def test_gold_that_contradicts_the_votes_says_nothing_of_the_confusion_matrices():
    crowd, truth = simulated_crowd(num_tasks=200, seed=2)
    gold = np.where(np.arange(200) < 50, (truth + 1) % 3, truth)  # the votes are wrong on a quarter of the tasks
    gold[150:] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VotesWarning)  # the labels, gold among them, are far from the votes
        found = Robust().fit(crowd, gold)
    assert not any("Confusion matrices contradict" in note for note in found.notes)
    np.testing.assert_array_equal(found.labels[:150], gold[:150])


def test_with_few_annotations_an_annotator_one_coin_is_another_part():
    rng = np.random.default_rng(0)
    truth = rng.choice(6, 150, p=[0.5, 0.25, 0.12, 0.07, 0.04, 0.02])
    tasks = np.repeat(np.arange(150), 2)
    said = np.where(rng.random(300) < 0.7, truth[tasks], rng.integers(0, 6, 300))
    annotators = (tasks + np.tile([0, 31], 150)) % 60  # 300 annotations, 60 annotators of 6 classes
    crowd = Annotations.from_arrays(tasks, annotators, said, classes=range(6))
    np.testing.assert_allclose(Robust().fit(crowd).posteriors, mean_of_parts(crowd, one_coin=True), atol=1e-12)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_very_different_annotators_are_no_reason_to_leave_the_matrices_out():
    """Good annotators against many who guess: one coin contradicts the votes, too, and is right."""
    rng, num_tasks = np.random.default_rng(3), 400
    truth = rng.integers(0, 2, num_tasks)
    said = np.where(rng.random((num_tasks, 9)) < [0.95, 0.95, *[0.5] * 7], truth[:, None], 1 - truth[:, None])
    crowd = Annotations.from_dense(said)
    found = Robust().fit(crowd)
    assert share_against_votes(crowd, found.labels, np.ones(num_tasks, bool)) > 0.2
    assert not any("Confusion matrices contradict" in note for note in found.notes)
    assert found.expected_accuracy(truth) > 0.93
