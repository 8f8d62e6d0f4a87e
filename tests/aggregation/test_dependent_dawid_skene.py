import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from crowdzoo import Annotations
from crowdzoo.aggregation import (
    Aggregation,
    DawidSkene,
    DependentDawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    VotesWarning,
)
from crowdzoo.aggregation.engine import dependence
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.dependence import Groups, SharedTasks, dependent_groups, dependent_pairs
from crowdzoo.aggregation.engine.ordinal_rows import ordinal_rows
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.weighted_counts import weighted_counts
from crowdzoo.testing.aggregators import AGGREGATOR_CHECKS, simulated_crowd

SETTINGS = {"nominal": DependentDawidSkene(), "ordinal": DependentDawidSkene(ordinal=True)}


# classes in another order; .8 of the tasks right, which ordinal matrices miss where there is no order
OF_AN_ORDER = ("renaming_permutes", "result_is_sound")


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")  # the crowd has no order
@pytest.mark.parametrize(
    "check",
    [check for name, check in AGGREGATOR_CHECKS.items() if name not in OF_AN_ORDER],
    ids=[name for name in AGGREGATOR_CHECKS if name not in OF_AN_ORDER],
)
def test_battery_of_ordinal_classes(check):
    check(DependentDawidSkene(ordinal=True))


def copied(num_classes=2, num_annotators=20, copies=6, right=0.3, redundancy=8, num_tasks=1000, seed=0, own=0.0):
    """Annotators who are right for three tasks in four; the first ones say what one judge says, but for a share."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, num_classes, num_tasks)

    def said(skill, *shape):
        slips = (truth[:, None] + rng.integers(1, num_classes, (num_tasks, *shape))) % num_classes
        return np.where(rng.random((num_tasks, *shape)) < skill, truth[:, None], slips)

    labels = said(0.75, num_annotators)
    alone = rng.random((num_tasks, copies)) < own
    labels[:, :copies] = np.where(alone, labels[:, :copies], said(right, 1))
    who = np.argsort(rng.random(labels.shape), axis=1)[:, :redundancy]
    tasks = np.repeat(np.arange(num_tasks), redundancy)
    names = {"tasks": range(num_tasks), "annotators": range(num_annotators), "classes": range(num_classes)}
    return Annotations.from_arrays(tasks, who.ravel(), np.take_along_axis(labels, who, 1).ravel(), **names), truth


# === The pass over the annotations ===


def test_a_weighted_pass_is_that_of_numpy():
    crowd, truth = simulated_crowd(seed=3)
    rng = np.random.default_rng(0)
    gold = np.where(np.arange(60) < 7, (truth + 1) % 3, -1)
    block = whole_block(crowd, gold)
    params = Params.from_probabilities(rng.dirichlet(np.ones(3), (8, 3)), rng.dirichlet(np.ones(3)))
    weights = rng.uniform(0.1, 1, len(block))
    counts, posteriors = weighted_counts(block, weights, params)
    logs = np.tile(params.log_class_prior, (60, 1))
    np.add.at(logs, block.index, weights[:, None] * params.log_confusions[block.annotator_ids, :, block.labels])
    likelihood = np.where(gold >= 0, logs[np.arange(60), gold], logsumexp(logs, axis=1)).sum()
    expected = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    expected[gold >= 0] = np.eye(3)[gold[gold >= 0]]
    table = np.zeros((8, 3, 3))
    np.add.at(table, (block.annotator_ids, block.labels), weights[:, None] * expected[block.index])
    np.testing.assert_allclose(posteriors, expected, atol=1e-13)
    np.testing.assert_allclose(counts.table, table, atol=1e-12)
    np.testing.assert_allclose(counts.classes, expected.sum(axis=0), atol=1e-12)
    assert counts.log_likelihood == pytest.approx(likelihood, rel=1e-13)


# === Pairs and groups ===


def test_pairs_by_hand():
    #           annotators 0 and 1 share tasks 0 to 2 and agree on two; 2 shares task 0 with both
    block = whole_block(Annotations.from_arrays([0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 1]))
    shared = SharedTasks.of(block, 3)
    np.testing.assert_array_equal(np.stack([shared.left, shared.right]), [[0, 0, 1], [1, 2, 2]])
    np.testing.assert_array_equal(shared.shared, [3, 1, 1])
    np.testing.assert_allclose(shared.agreement, [2 / 3, 0, 0])
    posteriors = np.array([[1.0, 0], [0, 1], [0.5, 0.5]])
    confusions = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]]])
    expected = shared.expected(Params.from_probabilities(confusions, [0.5, 0.5]), posteriors)
    # both say the same of class 0 in .9 * .7 + .1 * .3 = .66 of cases, of class 1 in .2 * .4 + .8 * .6 = .56
    np.testing.assert_allclose(expected, [(0.66 * 1.5 + 0.56 * 1.5) / 3, 0.5, 0.5], atol=1e-12)


def pairs_of(left, right, shared, agreement):
    none = np.empty(0, np.int64)
    numbers = (np.array(each, float) for each in (shared, agreement))
    return SharedTasks(*map(np.array, (left, right)), *numbers, none, none, none)


def test_a_pair_is_found_from_as_many_tasks_as_the_bound_asks_for():
    """With expected agreement one half, n times the same has probability 2^-n: below .05 / 2 from six tasks on."""
    for number, found in ((5, False), (6, True)):
        pairs = pairs_of([0, 0], [1, 2], [number, 10], [1.0, 0.5])
        np.testing.assert_array_equal(dependent_pairs(pairs, np.full(2, 0.5), 0.0), [found, False])
    pairs = pairs_of([0, 0], [1, 2], [1000, 10], [0.59, 0.5])
    np.testing.assert_array_equal(dependent_pairs(pairs, np.full(2, 0.5), 0.0), [True, False])
    np.testing.assert_array_equal(dependent_pairs(pairs, np.full(2, 0.5), 0.2), [False, False])


def test_who_is_linked_by_one_false_pair_leaves_the_group():
    left, right = np.triu_indices(5, 1)
    same = right < 4  # annotators 0 to 3
    pairs = pairs_of(left, right, np.full(10, 100), np.where(same, 0.95, 0.5))
    pairs.agreement[(left == 3) & (right == 4)] = 0.7
    found = dependent_groups(pairs, np.full(10, 0.5), same | ((left == 3) & (right == 4)), 5)
    np.testing.assert_array_equal(found.members, [0, 0, 0, 0, 1])
    np.testing.assert_allclose(found.correlation, [0.9, 0])


def test_a_group_counts_for_its_effective_number():
    block = whole_block(Annotations.from_arrays([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [0, 0, 1, 1, 1]))
    groups = Groups(np.array([0, 0, 1]), np.array([0.5, 0.0]))
    np.testing.assert_allclose(groups.weights(block), [1 / 1.5, 1 / 1.5, 1, 1, 1])
    np.testing.assert_allclose(Groups(np.array([0, 0, 1]), np.array([1.0, 0.0])).weights(block), [0.5, 0.5, 1, 1, 1])
    np.testing.assert_array_equal(Groups(np.array([0, 1, 1]), np.array([0.0, 1.0])).largest_first, [1, 0, 0])


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_too_many_pairs_are_compared_on_some_tasks(monkeypatch):
    crowd, _ = copied()
    block = whole_block(crowd)
    monkeypatch.setattr(dependence, "MOST_PAIRS", 10_000)  # of 28,000
    some = SharedTasks.of(block, 20)
    assert 9_000 < len(some.pairs) <= 10_000
    assert len(np.unique(some.tasks)) < 400
    found = DependentDawidSkene().fit(crowd)
    np.testing.assert_array_equal(np.flatnonzero(found.clusters == 0), np.arange(6))


# === The method ===


def test_without_dependence_it_is_hierarchical_dawid_skene():
    crowd, _ = simulated_crowd(num_tasks=300, num_annotators=12, redundancy=4, seed=5)
    ours, theirs = DependentDawidSkene().fit(crowd), HierarchicalDawidSkene().fit(crowd)
    np.testing.assert_allclose(ours.posteriors, theirs.posteriors, atol=1e-9)
    np.testing.assert_allclose(ours.confusions, theirs.confusions, atol=1e-9)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood)
    np.testing.assert_array_equal(ours.clusters, np.arange(12))
    np.testing.assert_array_equal(ours.effective_votes, np.full(300, 4.0))
    assert ours.notes == ()


@pytest.mark.parametrize("sort", [(60, 3, 4), (10, 4, 2)], ids=["sparse", "dense"])
def test_independent_annotators_form_no_groups(sort):
    num_annotators, redundancy, num_classes = sort
    for seed in range(10):
        crowd, _ = simulated_crowd(400, num_annotators, num_classes, redundancy, seed=seed)
        assert len(np.unique(DependentDawidSkene().fit(crowd).clusters)) == num_annotators


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_ring_that_dawid_skene_believes_is_found(seed):
    """Twenty annotators, of whom six copy one who is right for three tasks in ten."""
    crowd, truth = copied(seed=seed)
    found = DependentDawidSkene().fit(crowd)
    np.testing.assert_array_equal(np.flatnonzero(found.clusters == 0), np.arange(6))
    assert found.expected_accuracy(truth) > 0.87
    assert found.expected_accuracy(truth) > DawidSkene().fit(crowd).expected_accuracy(truth) + 0.1
    assert abs(found.posteriors.max(axis=1).mean() - found.expected_accuracy(truth)) < 0.05
    assert found.effective_votes.mean() < 7
    assert found.log_likelihood is None


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_known_classes_are_kept_and_help():
    crowd, truth = copied(num_annotators=9, copies=6, right=0.5, redundancy=9, num_tasks=300, seed=4)
    gold = np.where(np.arange(300) < 20, truth, -1)
    found = DependentDawidSkene().fit(crowd, gold)
    np.testing.assert_array_equal(found.labels[:20], truth[:20])
    np.testing.assert_array_equal(found.posteriors[:20], np.eye(2)[truth[:20]])
    np.testing.assert_array_equal(np.flatnonzero(found.clusters == 0), np.arange(6))


def test_the_note_names_the_group(tmp_path):
    crowd, _ = copied(seed=1)
    found = DependentDawidSkene().fit(crowd)
    assert found.notes[0].startswith(
        "6 annotators answer alike, in 1 group (the largest: 0, 1, 2, 3, 4, 5): they make the same errors, or are "
        "right where the others err together. This method counts the 8 annotations of a task as "
    )
    found.to_parquet(tmp_path / "labels")
    again = Aggregation.from_parquet(tmp_path / "labels")
    np.testing.assert_array_equal(again.effective_votes, found.effective_votes)
    np.testing.assert_array_equal(again.clusters, found.clusters)


def test_where_the_labels_contradict_weighted_votes_it_is_weighted_votes(misled):
    crowd, truth = misled
    with pytest.warns(VotesWarning, match="contradict the votes"):
        found = DependentDawidSkene().fit(crowd)
    assert found.notes[0].startswith("Confusion matrices contradict the votes")
    assert found.expected_accuracy(truth) >= MajorityVote().fit(crowd).expected_accuracy(truth) - 0.01


# === Ordinal classes ===


def test_ordinal_rows_are_the_most_probable_ones():
    rng = np.random.default_rng(0)
    counts = rng.gamma(1.0, 5.0, (4, 5, 5)) + 0.1
    said, true = np.arange(5)[:, None], np.arange(5)

    def logs(weights):
        scores = -weights[0] * (said - true) ** 2 / 2 + weights[1] * (said - 2) + weights[2] * (said - 2) ** 2
        return scores - logsumexp(scores, axis=0)

    found = ordinal_rows(counts)
    for table, rows in zip(counts, found, strict=True):
        best = minimize(lambda weights, table=table: -(table * logs(weights)).sum(), np.zeros(3), tol=1e-12)
        np.testing.assert_allclose(rows, logs(best.x), atol=1e-4)
        assert (table * rows).sum() >= -best.fun - 1e-8


def graded(seed, num_annotators=30, redundancy=3):
    """Grades 0 to 4 by annotators who are harsh or mild, and more or less exact."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, 500)
    lean, spread = rng.normal(0, 0.4, num_annotators), rng.uniform(0.4, 0.9, num_annotators)
    grades = np.rint(truth[:, None] + lean + rng.normal(0, 1, (500, num_annotators)) * spread).clip(0, 4).astype(int)
    who = np.argsort(rng.random(grades.shape), axis=1)[:, :redundancy]
    return Annotations.from_arrays(
        np.repeat(np.arange(500), redundancy), who.ravel(), np.take_along_axis(grades, who, 1).ravel(), classes=range(5)
    ), truth


def test_ordinal_matrices_need_fewer_annotations():
    crowds = [graded(seed) for seed in range(4)]
    found = {
        name: np.mean([method.fit(crowd).expected_accuracy(truth) for crowd, truth in crowds])
        for name, method in SETTINGS.items()
    }
    assert found["ordinal"] > found["nominal"] + 0.02
