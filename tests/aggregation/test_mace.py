import math

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === The paper in loops ===


def reference(table, num_tasks, num_annotators, num_classes, rounds, model, gold):
    """MACE over every truth and every state of every annotator; products of probabilities.

    The first M-step sees vote shares as posteriors, and annotators of whom half know and half say anything.
    """
    vb = model.inference == "vb"
    smoothing = model.smoothing / num_classes
    know, spam, strategy = [0.5] * num_annotators, [0.5] * num_annotators, np.full((num_annotators, num_classes), 1.0)
    strategy /= num_classes
    history, penalty, theta = [], 0.0, None
    for step in range(rounds + 1):
        knew, spammed = np.zeros(num_annotators), np.zeros((num_annotators, num_classes))
        likelihood, q = 0.0, np.zeros((num_tasks, num_classes))
        for task in range(num_tasks):
            own = [(r, label) for t, r, label in table if t == task]
            joint = np.full(num_classes, 1 / num_classes)
            for k in range(num_classes):
                for r, label in own:
                    joint[k] *= know[r] * (label == k) + spam[r] * strategy[r, label]
                if gold[task] not in (-1, k):
                    joint[k] = 0.0
            likelihood += math.log(joint.sum())
            q[task] = joint / joint.sum()
            if step == 0:
                q[task] = np.bincount([label for _, label in own], minlength=num_classes) / len(own)
                if gold[task] >= 0:
                    q[task] = np.eye(num_classes)[gold[task]]
            for r, label in own:
                for k in range(num_classes):
                    knows = know[r] * (label == k)
                    spams = spam[r] * strategy[r, label]
                    knew[r] += q[task, k] * knows / (knows + spams)
                    spammed[r, label] += q[task, k] * spams / (knows + spams)
        if step:
            history.append(likelihood + penalty)
        if step == rounds:
            return q, theta, history
        first, second = (model.know, model.spam) if vb else (smoothing, smoothing)
        each = model.strategy if vb else smoothing
        a, b, c = knew + first, spammed.sum(axis=1) + second, spammed + each
        theta = a / (a + b)
        total = c.sum(axis=1, keepdims=True)
        if vb:
            know, spam = np.exp(digamma(a) - digamma(a + b)), np.exp(digamma(b) - digamma(a + b))
            strategy = np.exp(digamma(c) - digamma(total))
            penalty = -sum(
                betaln(first, second) - betaln(a[r], b[r])
                + (a[r] - first) * math.log(know[r]) + (b[r] - second) * math.log(spam[r])
                + gammaln(total[r, 0]) - gammaln(c[r]).sum()
                - gammaln(num_classes * each) + num_classes * gammaln(each)
                + ((c[r] - each) * np.log(strategy[r])).sum()
                for r in range(num_annotators)
            )  # fmt: skip
        else:
            know, spam, strategy = theta, b / (a + b), c / total
            penalty = smoothing * (np.log(know) + np.log(spam) + np.log(strategy).sum(axis=1)).sum()
    raise AssertionError


@pytest.mark.parametrize("gold", [{}, {1: 0, 3: 1, 7: 2}])
@pytest.mark.parametrize("model", [{}, {"inference": "em"}, {"know": 2, "spam": 1, "strategy": 0.5}], ids=str)
@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_iterations_equal_the_paper_in_loops(num_classes, model, gold):
    annotations, _ = simulated_crowd(25, 6, num_classes, redundancy=3, seed=5)
    known = np.array([gold.get(task, -1) % (num_classes + 1) if task in gold else -1 for task in range(25)])
    known = np.where(known >= num_classes, 0, known)
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    model = MACE(max_iter=4, tol=0, class_prior="uniform", **model)
    q, theta, history = reference(table, 25, 6, num_classes, 5, model, known)
    result = model.fit(annotations, gold=known)
    np.testing.assert_allclose(result.posteriors, q, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.skills, theta, rtol=1e-9)
    np.testing.assert_allclose(result.history, history, rtol=1e-9)
    np.testing.assert_allclose(result.class_prior, 1 / num_classes)
    assert (result.log_likelihood is None) == (model.inference == "vb")


# === The model ===


def spammed_crowd(num_tasks, theta, strategy, seed=0):
    rng = np.random.default_rng(seed)
    num_classes = strategy.shape[1]
    truth = rng.integers(num_classes, size=num_tasks)
    said = np.stack([rng.choice(num_classes, num_tasks, p=row) for row in strategy], axis=1)
    return Annotations.from_dense(np.where(rng.random(said.shape) < theta, truth[:, None], said)), truth


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_simulated_competences_and_habits_are_recovered(inference):
    theta = np.array([0.95, 0.8, 0.6, 0.4, 0.2, 0.05, 0.02, 0.0])
    strategy = np.random.default_rng(3).dirichlet(np.full(4, 0.7), size=8)
    annotations, truth = spammed_crowd(4000, theta, strategy)
    result = MACE(inference=inference, tol=1e-7, max_iter=1000).fit(annotations)
    np.testing.assert_allclose(result.skills, theta, atol=0.04)
    expected = theta[:, None, None] * np.eye(4) + (1 - theta[:, None, None]) * strategy[:, None, :]
    np.testing.assert_allclose(result.confusions, expected, atol=0.04)
    assert result.accuracy(truth) > MajorityVote().fit(annotations).accuracy(truth) + 0.03
