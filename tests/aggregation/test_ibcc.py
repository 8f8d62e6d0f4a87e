import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

from crowdzoo.aggregation import ConvergenceWarning
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

AUTHORS = {"prior": 1.0, "diagonal": 3.0}  # for any number of classes


# === The equations, written once more ===


def reference(annotations, rounds, prior=1.0, diagonal=3.0, class_prior=1.0, gold=None):
    """Variational Bayes in loops, with SciPy's digamma; posteriors and means after so many rounds."""
    n, r, k = annotations.num_tasks, annotations.num_annotators, annotations.num_classes
    rows = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    q = np.zeros((n, k))
    for task, _, label in rows:
        q[task, label] += 1
    q /= q.sum(axis=1, keepdims=True)
    known = np.flatnonzero(gold >= 0) if gold is not None else []
    for task in known:
        q[task] = np.eye(k)[gold[task]]
    for _ in range(rounds):
        cells = np.full((r, k, k), prior)
        for true in range(k):
            cells[:, true, true] += diagonal
        for task, annotator, label in rows:
            cells[annotator, :, label] += q[task]
        classes = class_prior + q.sum(axis=0)
        score = np.tile(digamma(classes) - digamma(classes.sum()), (n, 1))
        for task, annotator, label in rows:
            for true in range(k):
                cell = cells[annotator, true]
                score[task, true] += digamma(cell[label]) - digamma(cell.sum())
        q = np.exp(score - logsumexp(score, axis=1, keepdims=True))
        for task in known:
            q[task] = np.eye(k)[gold[task]]
    return q, cells / cells.sum(axis=2, keepdims=True), classes / classes.sum()


@pytest.mark.parametrize("rounds", [2, 3, 8])
@pytest.mark.parametrize("known", [False, True])
def test_as_the_equations_say(rounds, known):
    annotations, truth = simulated_crowd(num_tasks=25, redundancy=3)
    gold = np.where(np.arange(25) < 6, (truth + 1) % 3, -1) if known else None
    settings = {"prior": 0.7, "diagonal": 2.0, "class_prior": 1.5}
    posteriors, confusions, class_prior = reference(annotations, rounds, **settings, gold=gold)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = IBCC(tol=0, max_iter=rounds - 1, **settings).fit(annotations, gold=gold)
    np.testing.assert_allclose(result.posteriors, posteriors, atol=1e-10)
    np.testing.assert_allclose(result.confusions, confusions, atol=1e-10)
    np.testing.assert_allclose(result.class_prior, class_prior, atol=1e-10)


def log_evidence(annotations, truth, prior=1.0, diagonal=3.0, class_prior=1.0):
    """log p(annotations, truth), the parameters integrated out: Polya's urn, row by row."""
    k = annotations.num_classes
    cells = np.zeros((annotations.num_annotators, k, k))
    np.add.at(cells, (annotations.annotator_ids, truth[annotations.task_ids], annotations.labels), 1)
    a = prior + diagonal * np.eye(k)

    def beta(values):
        return (gammaln(values).sum(axis=-1) - gammaln(values.sum(axis=-1))).sum()

    classes = np.full(k, class_prior)
    result = beta(cells + a) - annotations.num_annotators * beta(a)
    return result + beta(classes + np.bincount(truth, minlength=k)) - beta(classes)


def test_bound_is_exact_where_every_class_is_known():
    """Then nothing is approximated, and the bound is the log evidence."""
    annotations, truth = simulated_crowd(num_tasks=40)
    result = IBCC(**AUTHORS).fit(annotations, gold=truth)
    assert result.history[-1] == pytest.approx(log_evidence(annotations, truth), rel=1e-12)
    assert result.history[0] == pytest.approx(result.history[-1], rel=1e-12)
    wrong = IBCC(**AUTHORS).fit(annotations, gold=truth, initial=np.eye(3)[(truth + 1) % 3])  # gold counts for more
    assert wrong.history[0] == pytest.approx(result.history[-1], rel=1e-12)


def test_tasks_without_annotations_are_no_data():
    annotations, _ = simulated_crowd()
    longer = replace(annotations, tasks=np.arange(annotations.num_tasks + 500))
    short, long = IBCC().fit(annotations), IBCC().fit(longer)
    np.testing.assert_allclose(long.history, short.history, rtol=1e-12)
    assert long.log_likelihood == pytest.approx(short.log_likelihood, rel=1e-12)
    known = np.append(np.full(60, -1), np.zeros(500, np.int64))
    assert IBCC().fit(longer, gold=known).class_prior[0] > 0.8  # a known class is data


def test_log_likelihood_is_that_of_the_means():
    annotations, _ = simulated_crowd(num_tasks=20)
    result = IBCC().fit(annotations)
    by_hand = 0.0
    for task in range(20):
        rows = annotations.task_ids == task
        said = result.confusions[annotations.annotator_ids[rows], :, annotations.labels[rows]]
        by_hand += np.log((result.class_prior * said.prod(axis=0)).sum())
    assert result.log_likelihood == pytest.approx(by_hand, rel=1e-12)


def test_annotators_without_annotations_have_the_prior_mean():
    annotations, _ = simulated_crowd()
    more = replace(annotations, annotators=np.arange(annotations.num_annotators + 1))
    result = IBCC(**AUTHORS).fit(more)
    np.testing.assert_allclose(result.confusions[-1], np.full((3, 3), 1 / 6) + np.eye(3) / 2)


# === Published figures ===
