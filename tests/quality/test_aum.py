"""AUM and WAUM against their equations, written with loops, and on tasks that are known to be bad."""

import dataclasses

import keras
import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import DawidSkene
from crowdzoo.datasets import simulate_annotations
from crowdzoo.models import FeatureClassifier
from crowdzoo.quality import task_table, waum
from crowdzoo.quality.aum import (
    Waum,
    area_under_margin,
    label_margins,
    label_trust,
    trusted_votes,
    weighted_margins,
)

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


def test_margins_of_annotations_are_the_equations():
    scores = some_scores()
    top_2, pleiss = (label_margins(scores, LABELS, TASKS, margin) for margin in ("top-2", "pleiss"))
    for row, (i, y) in enumerate(zip(TASKS, LABELS, strict=True)):
        assert top_2[row] == pytest.approx(scores[i, y] - sorted(scores[i])[-2])
        assert pleiss[row] == pytest.approx(scores[i, y] - max(scores[i, k] for k in range(K) if k != y))


def test_aum_of_one_label_a_task_is_the_mean_margin_of_the_logits():
    logits = np.random.default_rng(1).normal(size=(4, N, K))
    labels = np.array([0, 1, 2, 0, 1, 2])
    expected = [
        sum(logits[t, i, y] - max(logits[t, i, k] for k in range(K) if k != y) for t in range(4)) / 4
        for i, y in enumerate(labels)
    ]
    np.testing.assert_allclose(area_under_margin(logits, labels), expected)
    assert (area_under_margin(logits, labels, "top-2") >= area_under_margin(logits, labels)).all()


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


def test_waum_is_the_equation():
    rng = np.random.default_rng(2)
    aum, trust = rng.uniform(-1, 1, len(TASKS)), rng.random(len(TASKS))
    for denominator in ("trust", "redundancy"):
        found = weighted_margins(aum, trust, TASKS, N, denominator)
        for i in set(range(N)) - {4}:
            rows = [row for row in range(len(TASKS)) if TASKS[row] == i]
            below = sum(trust[row] for row in rows) if denominator == "trust" else len(rows)
            assert found[i] == pytest.approx(sum(trust[row] * aum[row] for row in rows) / below)


def test_where_nobody_has_any_trust_all_labels_count_alike():
    found = weighted_margins(np.array([0.4, -0.2, 0.3]), np.array([0.0, 0.0, 0.5]), np.array([0, 0, 1]), 2)
    assert found == pytest.approx([0.1, 0.3])


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


def test_tasks_that_are_all_tied_are_all_kept():
    assert not ranked([0.5, 0.5, np.nan, 0.5]).prunable(0.3).any()
    assert not ranked([np.nan, np.nan]).prunable(0.3).any()


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(bad):
    with pytest.raises(ValueError, match="fraction must be a number from 0 to 1"):
        ranked([0.0]).worst(bad)
    with pytest.raises(ValueError, match="quantile must be a number from 0 to below 1"):
        ranked([0.0]).prunable(bad)


def test_the_table_names_each_tasks_label_that_fits_least():
    aum = np.array([0.5, 0.4, -0.3, 0.2, 0.2, 0.1, -0.4, 0.6, 0.0, 0.1])
    table = Waum.of(crowd(), aum, np.full(10, 0.5)).table().to_pydict()
    assert table["task"] == list(range(N))
    assert table["annotations"] == [3, 2, 1, 2, 0, 2]
    assert table["aum"] == [pytest.approx(0.2), 0.2, 0.1, pytest.approx(0.1), None, 0.05]
    assert table["waum"] == [value if value is None else pytest.approx(value) for value in table["aum"]]  # equal trust
    assert table["lowest_aum"] == [-0.3, 0.2, 0.1, -0.4, None, 0.0]
    assert table["lowest_annotator"] == [2, 0, 1, 0, None, 1]
    assert table["trust"] == [0.5, 0.5, 0.5, 0.5, None, 0.5]
    empty = Waum.of(crowd(slice(0, 0)), np.zeros(0), np.zeros(0)).table().to_pydict()
    assert empty["waum"] == [None] * N


# === From a network ===


def a_base(dropout=0.5):
    return FeatureClassifier(2, K, hidden=(8,), dropout=dropout)


def points(seed=0, number=N):
    return np.random.default_rng(seed).normal(size=(number, 2)).astype("float32")


@pytest.mark.usefixtures("eager")
def test_a_network_that_does_not_learn_gives_the_equations_of_its_probabilities_in_evaluation_mode():
    x, annotations = points(), crowd()
    keras.utils.set_random_seed(3)
    scores = a_base().predict(x, verbose=0).astype("float64")  # dropout is off
    confusions = DawidSkene(prior=0.02, diagonal=0.0).fit(annotations).confusions
    for denominator in ("trust", "redundancy"):
        found = waum(
            a_base, x, annotations, epochs=2, optimizer=keras.optimizers.SGD(0.0), denominator=denominator,
            smoothing=0.02, seed=3,
        )  # fmt: skip
        np.testing.assert_allclose(found.aum, label_margins(scores, LABELS, TASKS), atol=1e-6)
        np.testing.assert_allclose(found.trust, label_trust(confusions, scores, TASKS, WHO), atol=1e-6)
        np.testing.assert_allclose(
            found.waum, weighted_margins(found.aum, found.trust, TASKS, N, denominator), atol=1e-6
        )


@pytest.mark.slow
def test_one_epoch_more_adds_its_margin_to_the_mean():
    x, annotations = points(), crowd()

    def aum(epochs):
        return waum(a_base, x, annotations, epochs=epochs, optimizer=keras.optimizers.Adam(0.05), seed=1).aum

    def margins_after(epochs):
        """Of a network trained on the pairs themselves, in one batch, with Keras' own loss."""
        keras.utils.set_random_seed(1)
        base = a_base(dropout=0.0)
        base.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
        base.fit(x[TASKS], LABELS, epochs=epochs, batch_size=len(TASKS), verbose=0)
        return label_margins(base.predict(x, verbose=0), LABELS, TASKS)

    without_dropout = waum(
        lambda: a_base(dropout=0.0), x, annotations, epochs=3, optimizer=keras.optimizers.Adam(0.05), seed=1
    )
    expected = np.mean([margins_after(epochs) for epochs in (1, 2, 3)], axis=0)
    np.testing.assert_allclose(without_dropout.aum, expected, atol=1e-4)
    assert np.abs(aum(3) - aum(2)).max() > 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
@pytest.mark.usefixtures("eager")
def test_networks_of_their_own_judge_each_annotators_labels():
    x, annotations = points(), crowd()
    found = waum(a_base, x, annotations, epochs=2, per_annotator=True, seed=2)
    for r in (0, 2):
        own = np.flatnonzero(r == WHO)
        alone = waum(a_base, x, crowd(own), epochs=2, seed=2)
        np.testing.assert_allclose(found.aum[own], alone.aum, atol=1e-6)
    stacked = waum(a_base, x, annotations, epochs=2, seed=2)
    assert np.abs(found.aum - stacked.aum).max() > 1e-3


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_two_runs_agree_and_the_order_of_the_rows_does_not_matter():
    x, annotations = points(), crowd()
    first = waum(a_base, x, annotations, epochs=2, seed=4)
    np.testing.assert_array_equal(waum(a_base, x, annotations, epochs=2, seed=4).aum, first.aum)
    assert (waum(a_base, x, annotations, epochs=2, seed=5).aum != first.aum).any()
    order = np.random.default_rng(0).permutation(len(TASKS))
    shuffled = waum(a_base, x, crowd(order), epochs=2, seed=4)
    np.testing.assert_allclose(shuffled.aum, first.aum[order], atol=1e-6)
    np.testing.assert_allclose(shuffled.waum, first.waum, atol=1e-6)


def planted(seed=0, number=600, bad=60):
    """Three clouds far apart, annotators who are right in 4 of 5 cases, and tasks 0 to 59 that they are wrong about.

    Of the first 30 nobody has any idea. The other 30 look like one class and are taken for another by all.
    """
    rng = np.random.default_rng(seed)
    gold = rng.integers(K, size=number)
    x = (np.array([[0, 0], [7, 0], [0, 7]])[gold] + rng.normal(size=(number, 2))).astype("float32")
    said = np.where((np.arange(number) >= bad // 2) & (np.arange(number) < bad), (gold + 1) % K, gold)
    skilled = np.tile(np.full((K, K), 0.1) + 0.7 * np.eye(K), (12, 1, 1))
    annotations = simulate_annotations(said, skilled, 4, seed)
    guesses = rng.integers(K, size=len(annotations))
    labels = np.where(annotations.task_ids < bad // 2, guesses, annotations.labels)
    return x, dataclasses.replace(annotations, labels=labels), bad


@pytest.mark.slow
@pytest.mark.parametrize("margin", ["top-2", "pleiss"])
def test_tasks_that_annotators_are_wrong_about_rank_lowest_which_vote_entropy_does_not_see(margin):
    x, annotations, bad = planted()
    found = waum(
        lambda: FeatureClassifier(2, K, hidden=(16,), dropout=0.0), x, annotations,
        epochs=15, batch_size=64, optimizer=keras.optimizers.Adam(0.01), margin=margin,
    )  # fmt: skip
    assert len(found.worst(0.1)) == bad
    by_waum = (found.worst(0.1) < bad).mean()
    entropy = np.round(task_table(annotations)["entropy"].to_numpy(), 9)
    # ties broken at random: mean over the tied tasks
    cut = np.sort(entropy)[-bad]
    surely, tied = np.flatnonzero(entropy > cut), np.flatnonzero(entropy == cut)
    by_entropy = ((surely < bad).sum() + (bad - len(surely)) * (tied < bad).mean()) / bad
    assert by_waum > 2 * by_entropy
    assert by_waum > 0.6  # by chance .1
    assert np.nanmean(found.waum[:bad]) < np.nanmean(found.waum[bad:]) - 0.2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: label_margins([[1.0], [2.0]], [0, 0]), DataError, "K at least 2"),
        (lambda: label_margins(np.zeros((3, 2)), [0, 0]), DataError, "one label for every row"),
        (lambda: label_margins(np.zeros((2, 2)), [0, 0], margin="top2"), ConfigError, "Did you mean 'top-2'"),
        (lambda: area_under_margin(np.zeros((3, 2)), [0, 0]), DataError, "epochs, tasks, classes"),
        (lambda: weighted_margins(np.zeros(1), np.ones(1), np.zeros(1, int), 1, "trusts"), ConfigError, "'trust'"),
        (lambda: waum(a_base, points(), crowd(), denominator="votes"), ConfigError, "denominator"),
        (lambda: waum(a_base, points(), crowd(), margin="yang"), ConfigError, "margin"),
        (lambda: waum(a_base, points(), crowd(), epochs=0), ConfigError, "epochs"),
        (lambda: waum(lambda: FeatureClassifier(2, 5), points(), crowd()), DataError, "the base has 5 outputs"),
        (lambda: waum(a_base, points()[:3], crowd()), DataError, "x has 3 rows, the annotations are of 6 tasks"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
