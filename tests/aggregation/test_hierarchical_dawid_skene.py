import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma, logsumexp

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, HierarchicalDawidSkene
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import start, update
from crowdzoo.aggregation.engine.confusions import Counts
from crowdzoo.testing.aggregators import simulated_crowd


def counts_of(crowd, q):
    """Expected counts, [annotator, true, said], by a loop."""
    counts = np.zeros((crowd.num_annotators, crowd.num_classes, crowd.num_classes))
    for task, annotator, label in zip(crowd.task_ids, crowd.annotator_ids, crowd.labels, strict=True):
        counts[annotator, :, label] += q[task]
    return counts


def within_votes(classes, votes):
    """argmax of sum classes * log p, each p within a factor of 1.5 of its share of the votes, by SciPy's optimiser."""
    shares = (votes + 1) / (votes + 1).sum()
    found = minimize(
        lambda p: -(classes / classes.sum() * np.log(p)).sum(),
        shares,
        jac=lambda p: -classes / classes.sum() / p,
        bounds=list(zip(shares / 1.5, np.minimum(shares * 1.5, 1), strict=True)),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x


def reference(crowd, rounds, annotators):
    """The equations of the class, written once more with SciPy: posteriors after so many rounds."""
    n, k = crowd.num_tasks, crowd.num_classes
    q = np.zeros((n, k))
    np.add.at(q, (crowd.task_ids, crowd.labels), 1)
    q /= q.sum(axis=1, keepdims=True)
    counts = counts_of(crowd, q)
    total = counts.sum(axis=0)
    right = (np.trace(total) + 1) / (total.sum() + k)
    coin = np.where(np.eye(k) > 0, right, (1 - right) / (k - 1))
    pooled = (total + coin) / (total + coin).sum(axis=1, keepdims=True)
    common, strength = (coin + pooled) / 2, 4.0
    for round_ in range(rounds + 1):
        alpha = counts + strength * common
        logs = digamma(alpha) - digamma(alpha.sum(axis=2, keepdims=True))
        score = np.tile(np.log(within_votes(q.sum(axis=0), np.bincount(crowd.labels, minlength=k))), (n, 1))
        for task, annotator, label in zip(crowd.task_ids, crowd.annotator_ids, crowd.labels, strict=True):
            score[task] += logs[annotator, :, label]
        q = np.exp(score - logsumexp(score, axis=1, keepdims=True))
        if round_ == rounds:
            return q
        counts = counts_of(crowd, q)
        prior = strength * common
        tables = (prior * (digamma(counts + prior) - digamma(prior))).sum(axis=0)
        slope = (digamma(counts.sum(axis=2) + strength) - digamma(strength)).sum()
        common = tables + annotators * coin
        common /= common.sum(axis=1, keepdims=True)
        strength = tables.sum() / slope


@pytest.mark.parametrize(("rounds", "rare"), [(1, False), (4, False), (4, True)])
def test_as_in_the_reference(rounds, rare, rare_crowd):
    crowd = rare_crowd(0, 120)[0] if rare else simulated_crowd(num_tasks=40, num_annotators=6)[0]
    expected = reference(crowd, rounds, 10.0)
    with pytest.warns(ConvergenceWarning):
        result = HierarchicalDawidSkene(max_iter=rounds, tol=0.0, annotators=10.0).fit(crowd)
    np.testing.assert_allclose(result.posteriors, expected, atol=1e-9)


def test_a_rare_class_stays_rare(rare_crowd):
    """Two votes for the frequent class and one for the other are not the rare class."""
    crowd, truth, _ = rare_crowd(0, 3000)
    result = HierarchicalDawidSkene().fit(crowd)
    assert result.accuracy(truth) > 0.97
    assert result.class_prior[1] == pytest.approx(0.05, abs=0.03)


def drawn(strength, num_annotators=60, each=120, seed=0):
    """Annotators whose rows are drawn around one matrix of two classes, who label tasks of known class."""
    rng = np.random.default_rng(seed)
    common = np.array([[0.8, 0.2], [0.35, 0.65]])
    truth = rng.integers(0, 2, 400)
    rows = []
    for annotator in range(num_annotators):
        matrix = np.stack([rng.dirichlet(strength * row) for row in common])
        for task in rng.choice(400, each, replace=False):
            rows.append((task, annotator, int(rng.random() < matrix[truth[task], 1])))
    tasks, annotators, labels = np.array(rows).T
    return Annotations.from_arrays(tasks, annotators, labels, tasks=np.arange(400)), truth, common


@pytest.mark.parametrize("strength", [3.0, 30.0])
def test_strength_and_common_matrix_come_back(strength):
    crowd, truth, common = drawn(strength)
    counts = Counts.zero(crowd.num_annotators, 2)
    counts.table[:] = counts_of(crowd, np.eye(2)[truth]).transpose(0, 2, 1)
    counts.classes[:] = np.bincount(truth)
    found = start(counts)
    for _ in range(300):
        found = update(counts, found, 1e-6)
    assert found.strength == pytest.approx(strength, rel=0.25)
    np.testing.assert_allclose(found.common.T, common, atol=0.05)


def test_an_annotator_with_few_annotations_is_taken_for_an_average_one():
    crowd, truth, _ = drawn(30.0)
    keep = (crowd.annotator_ids != 0) | (np.cumsum(crowd.annotator_ids == 0) <= 2)
    thin = crowd.select_rows(keep)
    pooled = HierarchicalDawidSkene().fit(thin)
    alone = DawidSkene().fit(thin)
    others = pooled.confusions[1:].mean(axis=0)
    assert np.abs(pooled.confusions[0] - others).max() < 0.1
    assert np.abs(alone.confusions[0] - others).max() > 0.2
    assert pooled.accuracy(truth) > 0.95


def test_without_counts_the_strength_stays():
    empty = Counts.zero(2, 3)
    first = start(empty)
    assert update(empty, first, 100.0).strength == first.strength
