"""AUM and WAUM against their equations, written with loops, and on tasks that are known to be bad."""

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.quality.aum import Waum, label_margins, label_trust, trusted_votes, weighted_margins

N, K, R = 6, 3, 4
# task 2 has one label, task 4 none; annotator 3 and class 2 never occur
TASKS = np.array([0, 0, 0, 1, 1, 2, 3, 3, 5, 5])
WHO = np.array([0, 1, 2, 0, 2, 1, 0, 1, 1, 2])
LABELS = np.array([0, 0, 1, 1, 1, 0, 1, 0, 0, 1])


def some_scores(seed=0, epochs=None):
    shape = (N,) if epochs is None else (epochs, N)
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=shape)


def some_confusions(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=(R, K))


def crowd(rows=slice(None)):
    return Annotations("classification", TASKS[rows], WHO[rows], LABELS[rows], np.arange(N), np.arange(R), np.arange(K))


# === Margins ===


@pytest.mark.parametrize(
    ("scores", "label", "top_2", "pleiss"),
    [
        ([0.7, 0.2, 0.1], 0, 0.5, 0.5),  # on top: both are the lead
        ([0.7, 0.2, 0.1], 1, 0.0, -0.5),  # second: the label's own score is the second largest
        ([0.7, 0.2, 0.1], 2, -0.1, -0.6),
        ([0.4, 0.4, 0.2], 0, 0.0, 0.0),  # shares the top
        ([0.4, 0.4, 0.2], 1, 0.0, 0.0),
        ([0.4, 0.4, 0.2], 2, -0.2, -0.2),
        ([0.6, 0.2, 0.2], 1, 0.0, -0.4),  # shares the second place
        ([3.0, -1.0, 5.0], 0, 0.0, -2.0),  # logits
    ],
)
def test_margins_by_hand(scores, label, top_2, pleiss):
    assert label_margins([scores], [label], margin="top-2") == pytest.approx([top_2])
    assert label_margins([scores], [label], margin="pleiss") == pytest.approx([pleiss])


# === Trust, WAUM, soft labels ===


def test_trust_is_skill_on_what_the_network_believes():
    scores, confusions = some_scores(), some_confusions()
    expected = [sum(confusions[r, k, k] * scores[i, k] for k in range(K)) for i, r in zip(TASKS, WHO, strict=True)]
    np.testing.assert_allclose(label_trust(confusions, scores, TASKS, WHO), expected)
    perfect = np.tile(np.eye(K), (R, 1, 1))
    np.testing.assert_allclose(label_trust(perfect, scores, TASKS, WHO), 1)


def test_waum_by_hand():
    aum, trust, tasks = np.array([0.5, -0.25, 0.1]), np.array([0.9, 0.3, 0.5]), np.array([0, 0, 2])
    by_trust = weighted_margins(aum, trust, tasks, 3)
    assert by_trust[[0, 2]] == pytest.approx([(0.9 * 0.5 - 0.3 * 0.25) / 1.2, 0.1])  # one label: its own AUM
    by_number = weighted_margins(aum, trust, tasks, 3, "redundancy")
    assert by_number[[0, 2]] == pytest.approx([(0.9 * 0.5 - 0.3 * 0.25) / 2, 0.05])
    assert np.isnan(by_trust[1])  # nobody labelled
    assert np.isnan(by_number[1])


def test_soft_labels_are_the_equation():
    confusions = some_confusions()
    found = trusted_votes(confusions, TASKS, WHO, LABELS, N)
    for i in range(N):
        votes = np.zeros(K)
        for row in range(len(TASKS)):
            if TASKS[row] == i:
                votes[LABELS[row]] += confusions[WHO[row], LABELS[row], LABELS[row]]
        np.testing.assert_allclose(found[i], votes / votes.sum() if votes.sum() else votes, rtol=1e-6)
    assert (found[4] == 0).all()


# === Ranking ===


def ranked(scores):
    return Waum(np.array(scores), np.zeros(0), np.zeros(0), crowd(slice(0, 0)))


def test_the_worst_are_the_lowest_and_unlabelled_tasks_are_never_among_them():
    scores = ranked([0.3, np.nan, -0.2, 0.1, 0.1, 0.9])
    np.testing.assert_array_equal(scores.worst(0.6), [2, 3, 4])  # of five; ties in the order of the codes
    np.testing.assert_array_equal(scores.worst(1.0), [2, 3, 4, 0, 5])
    assert len(scores.worst(0.0)) == 0


def test_tasks_up_to_the_quantile_are_prunable():
    scores = ranked([0.3, np.nan, -0.2, 0.1, 0.1, 0.9])
    np.testing.assert_array_equal(np.flatnonzero(scores.prunable(0.01)), [2])  # the lowest at least
    np.testing.assert_array_equal(np.flatnonzero(scores.prunable(0.25)), [2, 3, 4])  # the quantile itself, with its tie
    assert not scores.prunable(0.0).any()


# === What does not fit ===


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: label_margins([[1.0], [2.0]], [0, 0]), DataError, "K at least 2"),
        (lambda: label_margins(np.zeros((3, 2)), [0, 0]), DataError, "one label for every row"),
        (lambda: label_margins(np.zeros((2, 2)), [0, 0], margin="top2"), ConfigError, "Did you mean 'top-2'"),
        (lambda: weighted_margins(np.zeros(1), np.ones(1), np.zeros(1, int), 1, "trusts"), ConfigError, "'trust'"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
