import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from slow_cases import quick

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import (
    Aggregation,
    DawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    Robust,
    calibrate,
)
from crowdzoo.aggregation.engine.kernel_logistic import kernel_logistic


def judges(seed, num_tasks=600, num_judges=10):
    """Graders of an ordered scale of four who misread the same tasks, in two families, and their true grades."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, num_tasks, p=[0.45, 0.3, 0.15, 0.1])
    shared = rng.normal(0.4, 0.8, num_tasks)[:, None] + rng.normal(0, 0.5, (num_tasks, 2))[:, np.arange(num_judges) % 2]
    seen = truth[:, None] + shared + rng.normal(0, 0.5, num_judges) + rng.normal(0, 0.5, (num_tasks, num_judges))
    return Annotations.from_dense(np.clip(np.rint(seen), 0, 3).astype(int), classes=range(4)), truth


def drawn(truth, number, seed=0):
    """Gold of some random tasks, and which tasks have none."""
    known = np.random.default_rng(seed).permutation(len(truth))[:number]
    gold = np.full(len(truth), -1)
    gold[known] = truth[known]
    return gold, gold < 0


def test_it_is_the_mode_of_the_penalised_likelihood():
    rng = np.random.default_rng(0)
    truth = np.eye(3)[rng.integers(0, 3, 40)]
    offsets = np.stack([truth * 2 + rng.normal(size=(40, 3)), rng.normal(size=(40, 3))], axis=2)
    offsets -= offsets.mean(axis=1, keepdims=True)
    points = rng.normal(size=(40, 5))
    mean, covariance = np.array([0.5, -0.2]), np.array([[0.5, -0.3], [-0.3, 0.8]])

    def loss(flat):
        scores = offsets @ flat[:2] + points @ flat[2:].reshape(5, 3)
        slopes = (flat[:2] - mean) @ np.linalg.inv(covariance) @ (flat[:2] - mean)
        return -(truth * log_softmax(scores, axis=1)).sum() + (slopes + (flat[2:] ** 2).sum()) / 2

    best = minimize(loss, np.zeros(17), tol=1e-10)
    found = kernel_logistic(offsets, points @ points.T, truth, mean, covariance)
    np.testing.assert_allclose(found.slopes, best.x[:2], atol=5e-3)
    np.testing.assert_allclose(points.T @ found.dual, best.x[2:].reshape(5, 3), atol=5e-3)
    scores = offsets @ best.x[:2] + points @ best.x[2:].reshape(5, 3)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(found.probabilities(offsets, points @ points.T), expected, atol=5e-3)


@pytest.mark.parametrize(
    "method", quick(MajorityVote(), slow=[OneCoinDawidSkene(), DawidSkene()]), ids=lambda one: type(one).__name__
)
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_probabilities_of_dependent_judges_become_those_of_being_right(method):
    gaps, before, gains = [], [], []
    for seed in range(4):
        crowd, truth = judges(seed, num_tasks=500)
        gold, others = drawn(truth, 200, seed)
        raw = method.fit(crowd)
        found = calibrate(raw, crowd, gold)
        right = found.labels[others] == truth[others]
        gaps.append(found.posteriors[others].max(axis=1).mean() - right.mean())
        raw_right = raw.labels[others] == truth[others]
        before.append(raw.posteriors[others].max(axis=1).mean() - raw_right.mean())
        gains.append(right.mean() - raw_right.mean())
        np.testing.assert_array_equal(found.posteriors[~others], np.eye(4)[truth[~others]])
        np.testing.assert_array_equal(found.labels[~others], truth[~others])
        np.testing.assert_allclose(found.posteriors.sum(axis=1), 1)
    # 200 gold tasks tell an accuracy of .6 to .035, and four draws of them to .017
    assert abs(np.mean(gaps)) < 0.07
    assert np.mean(before) > 2.5 * abs(np.mean(gaps))
    assert np.mean(gains) > 0.03


def test_few_gold_tasks_nearly_give_the_probabilities_of_the_model_that_made_the_answers():
    above, before = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = rng.integers(12, size=300)
        said_by = np.argsort(rng.random((300, 12)), axis=1)[:, :3]
        slips = (truth[:, None] + rng.integers(1, 12, (300, 3))) % 12
        said = np.where(rng.random((300, 3)) < 0.6, truth[:, None], slips)
        crowd = Annotations.from_arrays(np.repeat(np.arange(300), 3), said_by.ravel(), said.ravel(), classes=range(12))
        votes = (said[:, :, None] == np.arange(12)).sum(axis=1)
        scores = votes * np.log(0.6 / (0.4 / 11))  # Bayes' rule with what is drawn from above
        least = log_softmax(scores, axis=1)
        gold, others = drawn(truth, 50, seed)
        raw = Robust().fit(crowd)
        rows = np.flatnonzero(others), truth[others]
        above.append((least[rows] - np.log(calibrate(raw, crowd, gold).posteriors[rows])).mean())
        before.append((least[rows] - np.log(raw.posteriors[rows])).mean())
    assert np.mean(before) > 0.15
    assert 0 < np.mean(above) < 0.05  # .072 by the kernel models alone


@pytest.mark.parametrize("minority_is_right", [True, False])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_fifty_gold_tasks_tell_whether_the_majority_or_a_coherent_minority_is_right(minority_is_right):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 400)

    def like(view, share):
        return np.where(rng.random(400) < share, view, rng.integers(0, 3, 400))

    view = truth if minority_is_right else (truth + (rng.random(400) < 0.75)) % 3
    crowd = Annotations.from_dense(
        np.stack([*(like(truth, 0.35) for _ in range(8)), *(like(view, 0.93) for _ in range(3))], axis=1)
    )
    gold, others = drawn(truth, 50)
    hidden = np.where(others, truth, -1)
    minority = HierarchicalDawidSkene().fit(crowd)
    assert (minority.accuracy(hidden) > 0.9) == minority_is_right
    assert minority_is_right or minority.accuracy(hidden) < 0.3
    votes = MajorityVote().fit(crowd)
    best = max(votes.accuracy(hidden), minority.accuracy(hidden))
    for raw in (votes, minority, DawidSkene().fit(crowd)):
        assert calibrate(raw, crowd, gold).accuracy(hidden) > best - 0.01


def test_fifty_correct_gold_tasks_of_fifty_leave_an_error_of_some_percent_possible():
    """The lower end of Wilson's interval is n / (n + t²), with Student's t of 49 degrees of freedom: .925."""
    truth = np.tile([0, 1], 1000)
    crowd = Annotations.from_dense(np.stack([truth] * 5, axis=1))
    _, low, high = calibrate(MajorityVote().fit(crowd), crowd, drawn(truth, 50)[0]).accuracy_interval
    assert low == pytest.approx(50 / (50 + 2.0096**2), abs=0.003)
    assert high == 1


@pytest.mark.slow
def test_sparse_crowds_tasks_without_annotations_and_more_gold_than_is_used(monkeypatch):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    tasks = np.repeat(np.arange(390), 3)
    said = np.where(rng.random(tasks.size) < 0.8, truth[tasks], 1 - truth[tasks])
    said_by = (tasks * 7 + np.tile([0, 50, 100], 390)) % 200
    crowd = Annotations.from_arrays(tasks, said_by, said, tasks=range(400))
    gold, _ = drawn(truth, 150)
    raw = MajorityVote().fit(crowd)
    found = calibrate(raw, crowd, gold)
    empty = (crowd.redundancy == 0) & (gold < 0)
    shares = np.bincount(gold[(gold >= 0) & (crowd.redundancy > 0)], minlength=2) + 1
    np.testing.assert_allclose(found.posteriors[empty], np.tile(shares / shares.sum(), (empty.sum(), 1)))
    np.testing.assert_allclose(found.posteriors, calibrate(raw, crowd, gold).posteriors, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(sys.modules["crowdzoo.aggregation.calibration"], "MOST_GOLD", 100)
    part = calibrate(raw, crowd, gold)
    assert (part.labels == found.labels).mean() > 0.9
    assert (part.labels[gold >= 0] == truth[gold >= 0]).all()


def test_a_task_does_not_see_its_place_in_the_table():
    crowd, truth = judges(3, num_tasks=200)
    gold, _ = drawn(truth, 80)
    raw = MajorityVote().fit(crowd)
    rows = np.random.default_rng(0).permutation(len(crowd))
    shuffled = calibrate(raw, crowd.select_rows(rows), gold)
    np.testing.assert_allclose(shuffled.posteriors, calibrate(raw, crowd, gold).posteriors, atol=1e-9)


def test_all_tasks_with_gold_and_all_right_still_have_an_interval():
    truth = np.tile([0, 1], 30)
    crowd = Annotations.from_dense(np.stack([truth] * 4, axis=1))
    found = calibrate(MajorityVote().fit(crowd), crowd, truth)
    value, low, high = found.accuracy_interval
    assert low < value <= high == 1
    np.testing.assert_array_equal(found.labels, truth)


def test_it_is_written_and_read_back(tmp_path):
    crowd, truth = judges(0, num_tasks=100)
    found = calibrate(MajorityVote().fit(crowd), crowd, drawn(truth, 40)[0])
    read = Aggregation.from_parquet(found.to_parquet(tmp_path / "result"))
    assert read.accuracy_interval == found.accuracy_interval
    np.testing.assert_array_equal(read.posteriors, found.posteriors)


def test_what_does_not_fit_is_refused():
    crowd, truth = judges(0, num_tasks=100)
    raw = MajorityVote().fit(crowd)
    gold, _ = drawn(truth, 40)
    for result, table, known, reason in (
        (raw, crowd, drawn(truth, 19)[0], "19 annotated tasks have gold"),
        (raw, crowd, None, "0 annotated tasks have gold"),
        (MajorityVote().fit(crowd, gold), crowd, gold, "fit it without gold"),
        (raw, crowd.select_tasks(np.arange(50)), gold[:50], "other tasks than the aggregation"),
        (raw, crowd, gold[:50], "gold is one integer class code per task"),
    ):
        with pytest.raises(DataError, match=reason):
            calibrate(result, table, known)
    with pytest.raises(ConfigError, match="level"):
        calibrate(raw, crowd, gold, level=95)
