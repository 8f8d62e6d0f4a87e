import math
from dataclasses import replace

import numpy as np
import pytest

from crowdzoo.aggregation import MACE, Block
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene, params_of
from crowdzoo.aggregation.engine.right_wrong import Answers, Cells, answers_of, posteriors_of
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


def reference(table, num_tasks, num_annotators, num_classes, rounds, right, wrong, estimated, gold=None):
    """EM in loops: M-step from the votes, E-step, and so on; products of probabilities."""
    gold = gold or {}
    q = []
    for task in range(num_tasks):
        votes = [sum(t == task and label == k for t, _, label in table) for k in range(num_classes)]
        q.append([vote / sum(votes) for vote in votes])
        if task in gold:
            q[task] = [float(k == gold[task]) for k in range(num_classes)]
    history = []
    for _ in range(rounds):
        skill = []
        for annotator in range(num_annotators):
            own = [(t, label) for t, r, label in table if r == annotator]
            skill.append((sum(q[t][label] for t, label in own) + right) / (len(own) + right + wrong))
        rho = [1 / num_classes] * num_classes
        if estimated:
            rho = [(sum(q[t][k] for t in range(num_tasks)) + 0.01) / (num_tasks + 0.01 * num_classes)
                   for k in range(num_classes)]  # fmt: skip
        penalty = sum(right * math.log(s) + wrong * math.log((1 - s) / (num_classes - 1)) for s in skill)
        penalty += 0.01 * sum(map(math.log, rho)) if estimated else 0.0
        likelihood = 0.0
        for task in range(num_tasks):
            joint = []
            for k in range(num_classes):
                product = rho[k] if gold.get(task, k) == k else 0.0
                for t, r, label in table:
                    if t == task:
                        product *= skill[r] if label == k else (1 - skill[r]) / (num_classes - 1)
                joint.append(product)
            likelihood += math.log(sum(joint))
            q[task] = [product / sum(joint) for product in joint]
        history.append(likelihood + penalty)
    return q, skill, rho, history


@pytest.mark.parametrize("gold", [{}, {1: 0, 3: 1, 7: 2}])
@pytest.mark.parametrize("class_prior", ["uniform", "estimated"])
@pytest.mark.parametrize(("right", "wrong"), [(0.5, 0.25), (2, 1)])
@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_em_equals_the_model_in_loops(num_classes, right, wrong, class_prior, gold):
    annotations, _ = simulated_crowd(25, 6, num_classes, redundancy=3, seed=5)
    gold = {task: label % num_classes for task, label in gold.items()}
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    q, skill, rho, history = reference(table, 25, 6, num_classes, 5, right, wrong, class_prior == "estimated", gold)
    known = np.array([gold.get(task, -1) for task in range(25)])
    model = OneCoinDawidSkene(max_iter=4, tol=0, right=right, wrong=wrong, class_prior=class_prior)
    result = model.fit(annotations, gold=known)
    np.testing.assert_allclose(result.posteriors, q, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.skills, skill, rtol=1e-9)
    np.testing.assert_allclose(result.class_prior, rho, rtol=1e-9)
    np.testing.assert_allclose(result.history, history, rtol=1e-9)


# === The kernel that MACE uses too ===


def brute(block, cells):
    """Every class of every task, in loops, in log space."""
    num_classes = len(cells.class_prior)
    right, wrong = np.zeros_like(cells.right), np.zeros_like(cells.right)
    classes, q, total = np.zeros(num_classes), [], 0.0
    for t in range(len(block.tasks)):
        rows = range(block.starts[t], block.starts[t + 1])
        cell = [(block.annotator_ids[i], *([block.labels[i]] if cells.right.ndim == 2 else [])) for i in rows]
        labels = [int(block.labels[i]) for i in rows]
        score = np.log(cells.class_prior)
        for k in range(num_classes):
            score[k] += sum((cells.right if y == k else cells.wrong)[c] for c, y in zip(cell, labels, strict=True))
        if block.gold is not None and block.gold[t] >= 0:
            score[np.arange(num_classes) != block.gold[t]] = -np.inf
        evidence = np.logaddexp.reduce(score)
        q.append(np.exp(score - evidence))
        if labels or (block.gold is not None and block.gold[t] >= 0):
            total += evidence
            classes += q[-1]
        for c, y in zip(cell, labels, strict=True):
            right[c] += q[-1][y]
            wrong[c] += 1 - q[-1][y]
    return Answers(right, wrong, classes, total, len(block)), np.array(q)


@pytest.mark.parametrize("spread", [0.5, 3.0, 300.0])
@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("num_classes", [1, 2, 3, 40, 300])
def test_kernel_equals_loops_over_all_classes(num_classes, by_label, spread):
    rng = np.random.default_rng(num_classes)
    annotations, _ = simulated_crowd(30, 7, num_classes, redundancy=4, seed=1)
    gold = np.where(np.arange(32) % 5 == 0, rng.integers(num_classes, size=32), -1)
    columns = (annotations.task_ids + 1, annotations.annotator_ids, annotations.labels)  # task 0 has no annotations
    shape = (7, num_classes) if by_label else (7,)
    cells = Cells(
        -spread * rng.random(shape), -spread * rng.random(shape), rng.dirichlet(np.full(num_classes, 0.3)) + 1e-12
    )  # many annotators are worse than chance
    for block in (Block(*columns, np.arange(32), gold), Block(*columns, np.arange(32))):
        expected, q = brute(block, cells)
        found = answers_of([block], cells)
        for name in ("right", "wrong", "classes", "log_likelihood", "num_annotations"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(posteriors_of(block, cells), q, rtol=1e-9, atol=1e-12)


def test_classes_that_nobody_said_keep_their_digits():
    # liars deny class 0, whose prior is nearly one: what decides is the sum of the others' tiny priors
    block = Block(np.zeros(3, int), np.arange(3), np.zeros(3, int))
    for prior in ([1.0, 2e-16, 1e-16], [0.2, 0.5, 0.3]):
        cells = params_of(np.full(3, 1e-6), np.full(3, 1 - 1e-6), np.array(prior))
        expected, q = brute(block, cells)
        np.testing.assert_allclose(posteriors_of(block, cells), q, rtol=1e-9)
        assert answers_of([block], cells).log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)


# === The model ===


def test_confusions_are_those_of_the_skills():
    annotations, _ = simulated_crowd(100, 3, 3, redundancy=3)
    result = OneCoinDawidSkene().fit(annotations)
    for annotator, skill in enumerate(result.skills):
        expected = np.full((3, 3), (1 - skill) / 2) + np.eye(3) * (skill - (1 - skill) / 2)
        np.testing.assert_allclose(result.confusions[annotator], expected)
    np.testing.assert_allclose(result.annotator_accuracy(), result.skills)


@pytest.mark.parametrize("method", [OneCoinDawidSkene, MACE])
def test_confusions_that_would_be_huge_are_left_out(method):
    annotations, _ = simulated_crowd(num_classes=128)
    for number, is_left_out in ((1024, False), (1025, True)):  # 2**24 cells, and more
        result = method().fit(replace(annotations, annotators=np.arange(number)))
        assert (result.confusions is None) == is_left_out
        assert result.class_prior is not None
