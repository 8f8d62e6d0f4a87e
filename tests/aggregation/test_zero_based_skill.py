import warnings

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import ConvergenceWarning
from crowdzoo.aggregation.classes.wawa import Wawa
from crowdzoo.aggregation.classes.zero_based_skill import ZeroBasedSkill
from crowdzoo.testing.aggregators import simulated_crowd


def reference(table, num_tasks, num_annotators, num_classes, iterations, step, every, factor, gold=None):
    gold = gold or {}
    skills = [1 / num_classes] * num_annotators
    for iteration in range(1, iterations + 2):
        shares = []
        for task in range(num_tasks):
            votes = [0.0] * num_classes
            for other, annotator, label in table:
                if other == task:
                    votes[label] += skills[annotator]
            shares.append([v / sum(votes) for v in votes])
            if task in gold:
                shares[task] = [float(k == gold[task]) for k in range(num_classes)]
        if iteration > iterations:
            return shares, skills
        if iteration % every == 0:
            step = step * factor
        for annotator in range(num_annotators):
            credits = []
            for task, other, label in table:
                if other == annotator:
                    best = max(shares[task])
                    tied = [k for k in range(num_classes) if shares[task][k] > best - 1e-9]
                    credits.append((label in tied) / len(tied))
            skills[annotator] += step * (sum(credits) / len(credits) - skills[annotator])


@pytest.mark.parametrize(("step", "every", "factor"), [(1.0, 20, 0.5), (0.5, 2, 0.7), (0.3, 100, 1.0)])
@pytest.mark.parametrize("iterations", [1, 2, 7])
@pytest.mark.parametrize("gold", [{}, {3: 1, 8: 0}])
def test_equals_the_recursion_in_loops(step, every, factor, iterations, gold):
    annotations, _ = simulated_crowd(num_tasks=20, num_annotators=8, num_classes=3, redundancy=4, seed=3)
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    shares, skills = reference(table, 20, 8, 3, iterations, step, every, factor, gold)
    known = np.array([gold.get(task, -1) for task in range(20)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        aggregator = ZeroBasedSkill(max_iter=iterations, tol=0, step=step, step_every=every, step_factor=factor)
        result = aggregator.fit(annotations, gold=known)
    np.testing.assert_allclose(result.posteriors, shares, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.skills, skills, rtol=1e-9)


def test_whole_steps_are_rounds_of_wawa():
    annotations, _ = simulated_crowd(redundancy=3, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = ZeroBasedSkill(max_iter=2, tol=0).fit(annotations)
    np.testing.assert_allclose(result.posteriors, Wawa(num_rounds=2).fit(annotations).posteriors)


def test_converged_skills_are_the_agreement():
    annotations, _ = simulated_crowd(seed=2)
    result = ZeroBasedSkill(step=0.5, tol=1e-7).fit(annotations)
    assert result.converged
    won = result.posteriors >= result.posteriors.max(axis=1, keepdims=True) - 1e-9
    agreed = (won / won.sum(axis=1, keepdims=True))[annotations.task_ids, annotations.labels]
    counts = np.bincount(annotations.annotator_ids)
    agreement = np.bincount(annotations.annotator_ids, weights=agreed) / counts
    np.testing.assert_allclose(result.skills, agreement, atol=1.1e-7)


def test_annotators_without_annotations_keep_the_first_skill():
    annotations = Annotations.from_arrays([0, 0, 1], [0, 1, 1], [0, 0, 1], annotators=range(3))
    np.testing.assert_allclose(ZeroBasedSkill().fit(annotations).skills, [1, 1, 0.5])


def test_initial_takes_the_place_of_the_plain_vote():
    truth = np.random.default_rng(0).integers(2, size=40)
    annotations = Annotations.from_dense(np.stack([truth, 1 - truth], axis=1))
    np.testing.assert_array_equal(ZeroBasedSkill().fit(annotations, initial=np.eye(2)[truth]).labels, truth)
    with pytest.raises(DataError, match="initial"):
        ZeroBasedSkill().fit(annotations, initial=np.ones((40, 2)))


# === Beside others ===
