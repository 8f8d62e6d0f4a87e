import itertools
import math
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, MajorityVote
from crowdzoo.testing.aggregators import check_aggregator

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("label_model")


def test_it_is_a_sound_aggregator(script):
    check_aggregator(script.LabelModel())


def labelling_functions(num_tasks, confusions, balance, coverage, seed=0):
    """Functions that abstain on a share of the tasks, whatever their class."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(balance), size=num_tasks, p=balance)
    tasks, annotators, labels = [], [], []
    for function, confusion in enumerate(np.asarray(confusions)):
        covered = np.flatnonzero(rng.random(num_tasks) < coverage[function])
        tasks.append(covered)
        annotators.append(np.full(covered.size, function))
        labels.append((rng.random(covered.size)[:, None] > confusion[truth[covered]].cumsum(axis=1)).sum(axis=1))
    columns = (np.concatenate(column) for column in (tasks, annotators, labels))
    names = {
        "tasks": np.arange(num_tasks),
        "annotators": np.arange(len(confusions)),
        "classes": np.arange(len(balance)),
    }
    return Annotations.from_arrays(*columns, **names), truth


def some_functions(number=8, num_classes=3, seed=1):
    rng = np.random.default_rng(seed)
    right = rng.uniform(0.5, 0.85, (number, num_classes))
    confusions = rng.dirichlet(np.ones(num_classes), (number, num_classes)) * (1 - right)[:, :, None]
    return confusions + right[:, :, None] * np.eye(num_classes)


# === Against the model in loops ===


def reference(rows, confusions, balance, rounds, prior):
    """EM on pairs of annotations in loops: confusions `[function][true][said]`, balance, and the objectives."""
    number, num_classes = len(confusions), len(balance)
    by_task = {}
    for task, annotator, label in rows:
        by_task.setdefault(task, []).append((annotator, label))
    pairs = [pair for answers in by_task.values() for pair in itertools.combinations(answers, 2)]
    objectives = []
    for last in range(rounds + 1):
        counts = [[[prior] * num_classes for _ in range(num_classes)] for _ in range(number)]
        classes = [prior] * num_classes
        objective = 0.0
        for (i, a), (j, b) in pairs:
            joint = [balance[k] * confusions[i][k][a] * confusions[j][k][b] for k in range(num_classes)]
            objective += math.log(sum(joint))
            for k in range(num_classes):
                counts[i][k][a] += joint[k] / sum(joint)
                counts[j][k][b] += joint[k] / sum(joint)
                classes[k] += joint[k] / sum(joint)
        objective += prior * sum(math.log(cell) for matrix in confusions for row in matrix for cell in row)
        objective += prior * sum(math.log(share) for share in balance)
        objectives.append(objective)
        if last == rounds:
            break
        confusions = []
        for matrix in counts:
            confusions.append([[cell / sum(row) for cell in row] for row in matrix])
        balance = [value / sum(classes) for value in classes]
    return confusions, balance, objectives


def test_em_on_pairs_equals_the_model_in_loops(script):
    annotations, _ = labelling_functions(30, some_functions(5), [0.5, 0.3, 0.2], [0.6] * 5)
    rows = [
        tuple(int(code) for code in row)
        for row in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True)
    ]
    first = MajorityVote().fit(annotations)
    confusions, balance = first.confusions, first.class_prior
    start = (confusions.tolist(), balance.tolist())
    confusions, balance, objectives = reference(rows, *start, 6, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = script.LabelModel(prior=0.1, max_iter=6, tol=0).fit(annotations)
    np.testing.assert_allclose(result.history, objectives, rtol=1e-10)
    np.testing.assert_allclose(result.confusions, confusions, rtol=1e-8)
    np.testing.assert_allclose(result.class_prior, balance, rtol=1e-8)
    # naive Bayes, where an absent function says nothing
    log_likelihood = 0.0
    for task in range(30):
        joint = list(balance)
        for _, annotator, label in (row for row in rows if row[0] == task):
            joint = [value * confusions[annotator][k][label] for k, value in enumerate(joint)]
        np.testing.assert_allclose(result.posteriors[task], np.array(joint) / sum(joint), rtol=1e-7)
        log_likelihood += math.log(sum(joint))
    assert result.log_likelihood == pytest.approx(log_likelihood)


# === Recovery ===
