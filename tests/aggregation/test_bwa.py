import math
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, MajorityVote
from crowdzoo.aggregation.classes.bwa import BWA
from crowdzoo.testing.aggregators import simulated_crowd


def reference(table, num_tasks, num_annotators, num_classes, iterations, a=15.0, strength=1.0, gold=None):
    """The updates in loops, one class after the other; posteriors, precisions [K][R] and the log density."""
    gold = gold or {}
    scores, precisions, density = [], [], 0.0
    for k in range(num_classes):
        z = []
        for task in range(num_tasks):
            named = [float(label == k) for other, _, label in table if other == task]
            z.append(float(gold[task] == k) if task in gold else sum(named) / len(named))
        b = a * sum((float(label == k) - z[task]) ** 2 for task, _, label in table) / len(table)
        b *= 4 * (1 - 1 / num_classes)
        for _ in range(iterations + 1):
            mu = sum(z) / num_tasks
            v = []
            for annotator in range(num_annotators):
                own = [(float(label == k) - z[task]) ** 2 for task, other, label in table if other == annotator]
                v.append((a + len(own)) / (b + sum(own)))
            before = list(z)
            for task in range(num_tasks):
                if task not in gold:
                    votes = [(v[annotator], label == k) for other, annotator, label in table if other == task]
                    voted = sum(weight for weight, named in votes if named)
                    z[task] = (strength * mu + voted) / (strength + sum(weight for weight, _ in votes))
        z = before
        density += sum(a / 2 * math.log(v[r]) - b / 2 * v[r] for r in range(num_annotators))
        for task, annotator, label in table:
            density += math.log(v[annotator]) / 2 - v[annotator] / 2 * (float(label == k) - z[task]) ** 2
        density -= sum(strength / 2 * (score - mu) ** 2 for score in z)
        scores.append(z)
        precisions.append(v)
    total = [sum(scores[k][task] for k in range(num_classes)) for task in range(num_tasks)]
    shares = [[scores[k][task] / total[task] for k in range(num_classes)] for task in range(num_tasks)]
    for task, known in gold.items():
        shares[task] = [float(k == known) for k in range(num_classes)]
    return shares, precisions, density


@pytest.mark.parametrize("gold", [{}, {2: 1, 7: 0}])
@pytest.mark.parametrize(("a", "strength"), [(15.0, 1.0), (3.0, 0.5)])
@pytest.mark.parametrize("num_classes", [2, 4])
def test_equals_the_updates_in_loops(num_classes, a, strength, gold):
    annotations, _ = simulated_crowd(num_tasks=20, num_annotators=8, num_classes=num_classes, redundancy=4, seed=3)
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    known = np.array([gold.get(task, -1) for task in range(20)])
    for iterations in (1, 2, 5):
        shares, precisions, density = reference(table, 20, 8, num_classes, iterations, a, strength, gold)
        earlier = reference(table, 20, 8, num_classes, iterations - 1, a, strength, gold)[2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            aggregator = BWA(annotator_prior=a, strength=strength, max_iter=iterations, tol=0)
            result = aggregator.fit(annotations, gold=known)
        np.testing.assert_allclose(result.posteriors, shares, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result.skills, 1 / np.mean(1 / np.array(precisions), axis=0), rtol=1e-9)
        # history leaves constants out, so compare a rise
        assert result.history[-1] - result.history[-2] == pytest.approx(density - earlier, rel=1e-6, abs=1e-9)


def test_tasks_and_annotators_without_annotations():
    annotations, _ = simulated_crowd()
    longer = Annotations.from_arrays(
        annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks=range(62), annotators=range(9)
    )
    result = BWA().fit(longer)
    short = BWA().fit(annotations)
    np.testing.assert_allclose(result.posteriors[:60], short.posteriors, atol=1e-12)
    votes = MajorityVote().fit(annotations).posteriors
    np.testing.assert_allclose(result.posteriors[60], short.posteriors.mean(axis=0), atol=0.01)
    variance = np.mean([np.mean((votes[annotations.task_ids, k] - (annotations.labels == k)) ** 2) for k in range(3)])
    assert result.skills[8] == pytest.approx(1 / (variance * 4 * 2 / 3))


# === Beside others ===
