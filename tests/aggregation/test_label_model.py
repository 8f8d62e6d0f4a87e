import itertools
import math
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import ConvergenceWarning, MajorityVote
from crowdzoo.aggregation.classes import label_model
from crowdzoo.aggregation.classes.label_model import LabelModel
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.pairs import LabelPairs
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


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


def reference(rows, confusions, balance, rounds, prior, fixed_balance, accuracies):
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
        if not fixed_balance:
            objective += prior * sum(math.log(share) for share in balance)
        objectives.append(objective)
        if last == rounds:
            break
        confusions = []
        for matrix in counts:
            if accuracies:
                right = sum(matrix[k][k] for k in range(num_classes)) / sum(map(sum, matrix))
                off = (1 - right) / (num_classes - 1)
                confusions.append([[right if k == a else off for a in range(num_classes)] for k in range(num_classes)])
            else:
                confusions.append([[cell / sum(row) for cell in row] for row in matrix])
        if not fixed_balance:
            balance = [value / sum(classes) for value in classes]
    return confusions, balance, objectives


@pytest.mark.parametrize("learns", ["confusions", "accuracies"])
def test_em_on_pairs_equals_the_model_in_loops(learns):
    annotations, _ = labelling_functions(30, some_functions(5), [0.5, 0.3, 0.2], [0.6] * 5)
    rows = [
        tuple(int(code) for code in row)
        for row in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True)
    ]
    first = MajorityVote().fit(annotations)
    confusions, balance = first.confusions, first.class_prior
    if learns == "accuracies":
        right = np.trace(confusions, axis1=1, axis2=2)[:, None, None] / 3
        confusions = np.where(np.eye(3, dtype=bool), right, (1 - right) / 2)
        balance = np.full(3, 1 / 3)
    start = (confusions.tolist(), balance.tolist())
    confusions, balance, objectives = reference(rows, *start, 6, 0.1, learns == "accuracies", learns == "accuracies")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = LabelModel(learns=learns, prior=0.1, max_iter=6, tol=0).fit(annotations)
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


def test_label_pairs_count_what_two_functions_said():
    annotations, _ = labelling_functions(40, some_functions(4), [0.4, 0.4, 0.2], [0.7] * 4)
    gold = np.where(np.arange(40) < 10, 1, -1)
    counted = {}
    for task in range(40):
        here = annotations.task_ids == task
        answers = sorted(zip(annotations.annotator_ids[here], annotations.labels[here], strict=True))
        answers += [(4, 1)] if task < 10 else []
        for (i, a), (j, b) in itertools.combinations(answers, 2):
            counted[i, j, a, b] = counted.get((i, j, a, b), 0) + 1
    found = LabelPairs.of(whole_block(annotations, gold), 4, 3)
    columns = (found.left, found.right, found.left_label, found.right_label)
    assert dict(zip(zip(*columns, strict=True), found.count, strict=True)) == counted


def test_triplets_equal_the_closed_form_in_loops():
    annotations, _ = labelling_functions(200, some_functions(6), [0.4, 0.3, 0.3], [0.5] * 6)
    answers = annotations.to_dense()
    correlation = np.full((6, 6), np.nan)
    for i, j in itertools.permutations(range(6), 2):
        both = (answers[:, i] >= 0) & (answers[:, j] >= 0)
        correlation[i, j] = (3 * (answers[both, i] == answers[both, j]).mean() - 1) / 2
    skill = []
    for i in range(6):
        others = [j for j in range(6) if j != i]
        found = [
            math.sqrt(abs(correlation[i, j] * correlation[i, k] / correlation[j, k]))
            for j, k in itertools.combinations(others, 2)
        ]
        skill.append(np.median(found))
    accuracy = (1 + 2 * np.array(skill)) / 3
    result = LabelModel(learns="triplets").fit(annotations)
    np.testing.assert_allclose(result.reliability, accuracy, rtol=1e-9)
    np.testing.assert_allclose(result.confusions[:, 0, 1], (1 - accuracy) / 2, rtol=1e-9)
    assert result.history == ()


# === Recovery ===


def test_class_balance_is_given_or_roughly_found():
    annotations, truth = labelling_functions(6000, some_functions(8, 2), [0.9, 0.1], [0.7] * 8)
    estimated, given = LabelModel().fit(annotations), LabelModel(class_balance=(0.9, 0.1)).fit(annotations)
    assert estimated.class_prior[0] == pytest.approx(0.9, abs=0.12)  # pairs alone leave it open
    assert estimated.expected_accuracy(truth) > 0.94
    np.testing.assert_allclose(given.class_prior, [0.9, 0.1])
    assert given.expected_accuracy(truth) > 0.98
    uniform = LabelModel(class_balance="uniform").fit(annotations)
    np.testing.assert_allclose(uniform.class_prior, 0.5)
    assert uniform.expected_accuracy(truth) < 0.7
    for learns in ("accuracies", "triplets"):
        assert LabelModel(learns=learns).fit(annotations).expected_accuracy(truth) > 0.97
    with pytest.raises(DataError, match="3 probabilities for 2 classes"):
        LabelModel(class_balance=(0.5, 0.3, 0.2)).fit(annotations)


@pytest.mark.parametrize("learns", ["confusions", "accuracies", "triplets"])
def test_declared_copies_do_not_outvote_the_others(learns):
    accuracy = np.array([0.6, 0.75, 0.75, 0.75])
    confusions = accuracy[:, None, None] * np.eye(2) + (1 - accuracy)[:, None, None] * (1 - np.eye(2))
    honest, truth = labelling_functions(3000, confusions, [0.5, 0.5], [1.0] * 4)
    first = honest.annotator_ids == 0
    tasks = np.concatenate([honest.task_ids] + [honest.task_ids[first]] * 3)  # the worst one, four times
    annotators = np.concatenate([honest.annotator_ids] + [np.full(3000, copy) for copy in (4, 5, 6)])
    labels = np.concatenate([honest.labels] + [honest.labels[first]] * 3)
    names = {"tasks": np.arange(3000), "annotators": list("abcdxyz"), "classes": [0, 1]}
    codes = {"tasks": tasks, "annotators": np.array(list("abcdxyz"))[annotators]}
    annotations = Annotations.from_arrays(codes["tasks"], codes["annotators"], labels, **names)
    declared = tuple(itertools.combinations("axyz", 2))
    result = LabelModel(learns=learns, dependencies=declared).fit(annotations)
    fooled = LabelModel(learns=learns).fit(annotations)
    assert result.expected_accuracy(truth) > fooled.expected_accuracy(truth) + 0.1
    np.testing.assert_allclose(result.reliability, [0.6, 0.75, 0.75, 0.75, 0.6, 0.6, 0.6], atol=0.05)
    alone = LabelModel(learns=learns).fit(honest)
    assert (result.labels == alone.labels).mean() > 0.97  # as if the copies were not there
    assert result.log_likelihood is None


@pytest.mark.parametrize("learns", ["confusions", "accuracies", "triplets"])
def test_known_classes_teach_about_functions(learns):
    accuracy = np.array([0.2, 0.25, 0.3, 0.2, 0.7])  # most are worse than chance
    confusions = accuracy[:, None, None] * np.eye(2) + (1 - accuracy)[:, None, None] * (1 - np.eye(2))
    annotations, truth = labelling_functions(400, confusions, [0.5, 0.5], [0.8] * 5)
    assert LabelModel(learns=learns).fit(annotations).expected_accuracy(truth) < 0.4
    gold = np.where(np.arange(400) < 200, truth, -1)
    result = LabelModel(learns=learns).fit(annotations, gold=gold)
    assert (result.labels[200:] == truth[200:]).mean() > 0.75
    unlinked = np.where(np.arange(402) >= 400, 0, -1)  # known classes of tasks that nobody labelled
    longer = Annotations.from_arrays(
        annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks=np.arange(402)
    )
    assert LabelModel(learns=learns).fit(longer, gold=unlinked).labels[400] == 0


def test_moments_in_parts_add_up(monkeypatch):
    annotations, _ = simulated_crowd(200, 8, 3)
    whole = LabelModel().fit(annotations)
    monkeypatch.setattr(label_model, "CELLS", 1)
    assert len(LabelPairs.of(whole_block(annotations), 8, 3).count) > 3 * 2 * 9 * 3  # several parts
    parts = LabelModel().fit(annotations)
    np.testing.assert_allclose(parts.history, whole.history, rtol=1e-12)
    np.testing.assert_allclose(parts.confusions, whole.confusions, rtol=1e-9)


def test_initial_posteriors_are_where_it_begins():
    annotations, truth = simulated_crowd(80, 10, 3, redundancy=5, seed=6)
    other = LabelModel().fit(annotations, initial=np.eye(3)[(truth + 1) % 3])
    assert (other.labels == (truth + 1) % 3).mean() > 0.8
    with pytest.raises(DataError, match="shape"):
        LabelModel().fit(annotations, initial=np.eye(3))


# === Real crowds, elsewhere ===


# === Settings ===


def test_dependencies_name_annotators():
    with pytest.raises(DataError, match="unknown annotator 'nobody'"):
        LabelModel(dependencies=((0, "nobody"),)).fit(simulated_crowd()[0])


def test_too_many_triplets_are_refused(monkeypatch):
    monkeypatch.setattr(label_model, "MAX_TRIPLETS", 20)
    with pytest.raises(DataError, match=r"168 triplets.*accuracies"):
        LabelModel(learns="triplets").fit(simulated_crowd()[0])
