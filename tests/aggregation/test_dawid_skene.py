import dataclasses
import math

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import DawidSkene, OneCoinDawidSkene
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


FOUR_TASKS = [
    (0, 0, 0), (0, 1, 0), (0, 2, 1),
    (1, 0, 1), (1, 1, 2),
    (2, 0, 2), (2, 1, 2), (2, 2, 0),
    (3, 1, 1), (3, 2, 1), (3, 0, 0),
]  # fmt: skip


CONFIDENCE = [0.9, 1.0, 0.6, 0.5, float("nan"), 0.8, 0.7, 0.3, 0.0, 0.95, 0.4]  # of `FOUR_TASKS`


def reference(table, confidence, num_tasks, num_annotators, num_classes, rounds, prior, gold):
    """EM in loops, without logarithms; an annotation is a distribution over the classes, all on one if it is certain.

    Returns the posteriors after `rounds` M-steps and E-steps, the confusions, the class prior and the log-likelihood.
    """
    rows = []
    for (task, annotator, label), sure in zip(table, confidence, strict=True):
        own = 1.0 if math.isnan(sure) else sure
        rows.append(
            (task, annotator, [own if k == label else (1 - own) / (num_classes - 1) for k in range(num_classes)])
        )
    q = []
    for task in range(num_tasks):
        answers = [said for other, _, said in rows if other == task]
        mean = [sum(said[k] for said in answers) / len(answers) for k in range(num_classes)]
        q.append([float(k == gold[task]) for k in range(num_classes)] if task in gold else mean)
    old = [[[1.0] * num_classes for _ in range(num_classes)] for _ in range(num_annotators)]
    for _ in range(rounds):
        rho = [sum(row[k] for row in q) + prior for k in range(num_classes)]
        rho = [value / sum(rho) for value in rho]
        pi = [[[prior] * num_classes for _ in range(num_classes)] for _ in range(num_annotators)]
        for task, annotator, said in rows:
            for k in range(num_classes):
                inner = [said[label] * old[annotator][k][label] for label in range(num_classes)]
                for label in range(num_classes):
                    pi[annotator][k][label] += q[task][k] * inner[label] / sum(inner)
        old = pi = [[[cell / sum(row) for cell in row] for row in matrix] for matrix in pi]
        likelihood = 0.0
        for task in range(num_tasks):
            joint = []
            for k in range(num_classes):
                product = rho[k] if gold.get(task, k) == k else 0.0
                for other, annotator, said in rows:
                    if other == task:
                        product *= sum(said[label] * pi[annotator][k][label] for label in range(num_classes))
                joint.append(product)
            likelihood += math.log(sum(joint))
            q[task] = [product / sum(joint) for product in joint]
    return q, pi, rho, likelihood


@pytest.mark.parametrize("rounds", [2, 3, 6])
@pytest.mark.parametrize("prior", [0.01, 0.5])
@pytest.mark.parametrize("gold", [{}, {1: 0, 3: 1}])
@pytest.mark.parametrize("confidence", [None, CONFIDENCE], ids=["certain", "with a confidence"])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_em_on_four_tasks_equals_the_paper_in_loops(rounds, prior, gold, confidence):
    q, pi, rho, likelihood = reference(FOUR_TASKS, confidence or [1.0] * 11, 4, 3, 3, rounds, prior, gold)
    known = np.array([gold.get(task, -1) for task in range(4)])
    annotations = Annotations.from_arrays(*zip(*FOUR_TASKS, strict=True), confidence=confidence)
    method = DawidSkene(max_iter=rounds - 1, tol=0, prior=prior, diagonal=0.0, confidence=confidence is not None)
    result = method.fit(annotations, gold=known)  # the start is the first round
    np.testing.assert_allclose(result.posteriors, q, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.confusions, pi, rtol=1e-9)
    np.testing.assert_allclose(result.class_prior, rho, rtol=1e-9)
    assert result.log_likelihood == pytest.approx(likelihood, rel=1e-9)
    assert result.num_iterations == rounds - 1


def test_fixed_point_found_by_hand():
    # Shares (1, 0), (.5, .5), (0, 1), (0, 1) give rho = (3/8, 5/8); annotator 0: (1, 0), (1/5, 4/5); annotator 1:
    # (2/3, 1/3), (0, 1). Then task 1 has 3/8 * 1 * 1/3 = 5/8 * 1/5 * 1 = 1/8: the shares again. The evidence of the
    # tasks is 1/4, 1/4, 1/2, 1/2.
    annotations = Annotations.from_arrays([0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4, [0, 0, 0, 1, 1, 1, 1, 1])
    result = DawidSkene(prior=0, diagonal=0.0).fit(annotations)
    np.testing.assert_allclose(result.posteriors, [[1, 0], [0.5, 0.5], [0, 1], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(result.confusions, [[[1, 0], [0.2, 0.8]], [[2 / 3, 1 / 3], [0, 1]]], atol=1e-12)
    np.testing.assert_allclose(result.class_prior, [3 / 8, 5 / 8])
    assert result.log_likelihood == pytest.approx(-math.log(64))
    assert result.converged
    assert result.history == pytest.approx([-math.log(64)] * 2)


@pytest.mark.parametrize("prior", [0, 0.01, 1.0])
@pytest.mark.parametrize("diagonal", [0, 2.0])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_history_is_the_penalised_log_likelihood_and_never_falls(prior, diagonal):
    annotations, _ = simulated_crowd(redundancy=2, seed=3)
    result = DawidSkene(max_iter=60, tol=0, prior=prior, diagonal=diagonal).fit(annotations)
    assert len(result.history) == result.num_iterations + 1
    assert (np.diff(result.history) > -1e-9).all()
    assert result.history[-1] > result.history[0]
    penalty = 0.0
    for matrix in result.confusions:
        for k in range(3):
            for label in range(3):
                weight = prior + diagonal * (k == label)
                penalty += weight * math.log(matrix[k, label]) if weight else 0.0
    penalty += sum(prior * math.log(p) for p in result.class_prior) if prior else 0.0
    assert result.history[-1] == pytest.approx(result.log_likelihood + penalty)


def test_gold_of_a_task_without_annotations_counts_in_the_class_prior():
    annotations = Annotations.from_arrays([0, 1], [0, 0], [0, 1], tasks=[0, 1, 2, 3])
    result = DawidSkene().fit(annotations, gold=[0, 1, 1, -1])
    np.testing.assert_allclose(result.class_prior, [1.01 / 3.02, 2.01 / 3.02])
    np.testing.assert_allclose(result.posteriors[2:], [[0, 1], [1.01 / 3.02, 2.01 / 3.02]])


def test_warm_start_from_confusions_decides_which_camp_is_believed():
    truth = np.random.default_rng(0).integers(2, size=40)
    annotations = Annotations.from_dense(np.stack([truth, 1 - truth], axis=1))
    good, bad = np.eye(2) * 0.8 + 0.1, np.full((2, 2), 0.5)
    np.testing.assert_array_equal(DawidSkene().fit(annotations, initial=[good, bad]).labels, truth)
    np.testing.assert_array_equal(DawidSkene().fit(annotations, initial=[bad, good]).labels, 1 - truth)
    np.testing.assert_array_equal(DawidSkene().fit(annotations, initial=[np.eye(2), bad]).labels, truth)


def test_several_starts_keep_the_best_objective_and_repeat():
    annotations, _ = simulated_crowd(num_tasks=80, redundancy=2, seed=6)
    results = [DawidSkene(num_starts=n, seed=1, tol=1e-7, max_iter=2000).fit(annotations) for n in (1, 4, 8, 8)]
    finals = [result.history[-1] for result in results]
    assert finals[0] <= finals[1] <= finals[2]
    assert finals[0] < finals[2]
    np.testing.assert_allclose(results[2].posteriors, results[3].posteriors, rtol=1e-9, atol=1e-12)


def test_converged_within_the_tolerance():
    annotations, _ = simulated_crowd()
    result = DawidSkene(tol=1e-4).fit(annotations)
    rises = np.diff(result.history) / len(annotations)
    assert result.converged
    assert rises[-1] <= 1e-4
    assert (rises[:-1] > 1e-4).all()


# === Answers with a confidence ===


@pytest.mark.parametrize("num_starts", [1, 3])
def test_certain_answers_are_those_without_a_confidence(num_starts):
    annotations, _ = simulated_crowd(num_tasks=80, redundancy=3, seed=6)
    certain = dataclasses.replace(annotations, confidence=np.where(np.arange(len(annotations)) % 2, 1.0, np.nan))
    hard, soft = (DawidSkene(num_starts=num_starts, confidence=confidence).fit(certain) for confidence in (False, True))
    np.testing.assert_allclose(soft.posteriors, hard.posteriors, atol=1e-9)
    np.testing.assert_allclose(soft.confusions, hard.confusions, atol=1e-9)
    np.testing.assert_allclose(soft.history, hard.history)
    np.testing.assert_array_equal(soft.labels, hard.labels)


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        (None, "Dawid-Skene: confidence=True needs annotations with a column `confidence`"),
        ([float("nan")] * 3, "needs annotations with a column `confidence`"),
        ([0.5, 70, 1], "column 'confidence': 70 by annotator 1 for task 0 is not a probability"),
        ([-0.1, 0.5, 1], "column 'confidence': -0.1 by annotator 0 for task 0 .*1 such rows"),
    ],
)
def test_annotations_without_usable_confidence_are_refused(confidence, message):
    annotations = Annotations.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, 1], confidence=confidence)
    with pytest.raises(DataError, match=message):
        DawidSkene(confidence=True).fit(annotations)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_a_start_from_one_coin_is_its_posteriors_as_initial():
    annotations, truth = simulated_crowd(num_tasks=80, redundancy=3, num_classes=4, seed=5)
    gold = np.where(np.arange(80) < 10, truth, -1)
    for settings in ({"max_iter": 3, "tol": 0.0}, {"max_iter": 3, "tol": 0.0, "num_starts": 2}):
        begin = OneCoinDawidSkene().fit(annotations, gold).posteriors
        expected = DawidSkene(**settings).fit(annotations, gold, begin)
        found = DawidSkene(**settings, start="one-coin").fit(annotations, gold)
        np.testing.assert_allclose(found.posteriors, expected.posteriors, rtol=1e-9, atol=1e-12)
        assert found.history == pytest.approx(expected.history)
        assert not np.array_equal(found.posteriors, DawidSkene(**settings).fit(annotations, gold).posteriors)
    given = np.full((80, 4), 0.25)
    np.testing.assert_array_equal(
        DawidSkene(max_iter=3, tol=0.0, start="one-coin").fit(annotations, initial=given).posteriors,
        DawidSkene(max_iter=3, tol=0.0).fit(annotations, initial=given).posteriors,
    )
