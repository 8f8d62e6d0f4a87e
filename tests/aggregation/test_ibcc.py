from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === The equations, written once more ===


def log_evidence(annotations, truth, prior, diagonal, class_prior):
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


@pytest.mark.parametrize(("prior", "diagonal", "class_prior"), [(1.0, 3.0, 1.0), (0.7, 2.0, 1.5)])
def test_bound_and_means_are_exact_where_every_class_is_known(prior, diagonal, class_prior):
    """Then nothing is approximated, and the bound is the log evidence."""
    annotations, truth = simulated_crowd(num_tasks=40)
    method = IBCC(prior=prior, diagonal=diagonal, class_prior=class_prior)
    result = method.fit(annotations, gold=truth)
    expected = log_evidence(annotations, truth, prior, diagonal, class_prior)
    assert result.history[-1] == pytest.approx(expected, rel=1e-12)
    assert result.history[0] == pytest.approx(result.history[-1], rel=1e-12)
    classes = np.bincount(truth, minlength=3) + class_prior
    np.testing.assert_allclose(result.class_prior, classes / classes.sum(), rtol=1e-12)
    wrong = method.fit(annotations, gold=truth, initial=np.eye(3)[(truth + 1) % 3])  # gold counts for more
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
