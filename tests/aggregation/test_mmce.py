import math
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import ConvergenceWarning
from crowdzoo.aggregation.classes.mmce import MMCE, _climb, _Rows, _Tables
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === The paper in loops ===


def said_if(task_row, annotator_row):
    """softmax of the sum of two rows."""
    powers = [math.exp(a + b) for a, b in zip(task_row, annotator_row, strict=True)]
    return [power / sum(powers) for power in powers]


def climbed(row, seen, ridge):
    """Maximises sum of weight * log softmax(row + other)[label] - ridge / 2 |row|^2 by many small gradient steps."""
    step = 1 / (sum(weight for weight, _, _ in seen) / 2 + ridge)
    for _ in range(400):
        gradient = [-ridge * value for value in row]
        for weight, other, label in seen:
            for k, p in enumerate(said_if(row, other)):
                gradient[k] += weight * ((k == label) - p)
        row = [value + step * slope for value, slope in zip(row, gradient, strict=True)]
        if max(abs(slope) for slope in gradient) < 1e-8:
            break
    return row


def reference(table, num_tasks, num_annotators, num_classes, rounds, gamma, gold=None):
    """Posteriors, annotators' confusions, tables of tasks, log-likelihood and objective after `rounds` M-steps."""
    gold, classes = gold or {}, range(num_classes)
    alpha = gamma * num_classes**2
    beta = alpha * (len(table) / num_annotators) / (len(table) / num_tasks)
    q = []
    for task in range(num_tasks):
        votes = [sum(label == k for other, _, label in table if other == task) for k in classes]
        q.append([votes[k] / sum(votes) if task not in gold else float(gold[task] == k) for k in classes])
    a = [[[0.0] * num_classes for _ in classes] for _ in range(num_tasks)]
    b = [[[0.0] * num_classes for _ in classes] for _ in range(num_annotators)]
    for _ in range(rounds):
        for r in range(num_annotators):
            for k in classes:
                seen = [(q[task][k], a[task][k], label) for task, other, label in table if other == r]
                b[r][k] = climbed(b[r][k], seen, alpha)
        for i in range(num_tasks):
            for k in classes:
                seen = [(q[i][k], b[r][k], label) for task, r, label in table if task == i]
                a[i][k] = climbed(a[i][k], seen, beta)
        likelihood = 0.0
        for i in range(num_tasks):
            joint = [1 / num_classes if gold.get(i, k) == k else 0.0 for k in classes]
            for task, r, label in table:
                if task == i:
                    joint = [joint[k] * said_if(a[i][k], b[r][k])[label] for k in classes]
            likelihood += math.log(sum(joint))
            q[i] = [value / sum(joint) for value in joint]
    ridge = sum(alpha / 2 * v * v for m in b for row in m for v in row)
    ridge += sum(beta / 2 * v * v for m in a for row in m for v in row)
    zero = [0.0] * num_classes
    return (
        q,
        [[said_if(zero, b[r][k]) for k in classes] for r in range(num_annotators)],
        a,
        likelihood,
        likelihood - ridge,
    )


@pytest.mark.parametrize(("num_classes", "gamma"), [(2, 0.25), (3, 0.05)])
@pytest.mark.parametrize("gold", [{}, {1: 0, 4: 1}])
def test_equals_the_paper_in_loops(num_classes, gamma, gold):
    annotations, _ = simulated_crowd(
        num_tasks=9, num_annotators=5, num_classes=num_classes, redundancy=4 if num_classes == 2 else 3, seed=4
    )
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    known = np.array([gold.get(task, -1) for task in range(9)])
    for rounds in (2, 3):
        q, confusions, a, likelihood, objective = reference(table, 9, 5, num_classes, rounds, gamma, gold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = MMCE(class_prior="uniform", gamma=gamma, max_iter=rounds - 1, tol=0).fit(annotations, gold=known)
        np.testing.assert_allclose(result.posteriors, q, atol=1e-5)
        np.testing.assert_allclose(result.confusions, confusions, atol=1e-5)
        np.testing.assert_allclose(result.skills, np.trace(confusions, axis1=1, axis2=2) / num_classes, atol=1e-5)
        assert result.log_likelihood == pytest.approx(likelihood, abs=1e-4)
        assert result.history[-1] == pytest.approx(objective, abs=1e-4)
        assert result.num_iterations == rounds - 1
        zero = [0.0] * num_classes
        easy = [sum(q[i][k] * said_if(a[i][k], zero)[k] for k in range(num_classes)) for i in range(9)]
        np.testing.assert_allclose(result.difficulty, 1 - np.array(easy), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_no_newton_step_worsens_the_objective_however_far_it_is_from_the_optimum(seed):
    # tables of other owners far from zero: curvature is next to nothing here and large elsewhere
    rng = np.random.default_rng(seed)
    other, q = rng.normal(0, 6, (7, 3, 3)), rng.dirichlet(np.ones(3), 7)
    labels, tasks = rng.integers(3, size=7), np.arange(7)
    own, ridge = np.zeros((1, 3, 3)), 1e-3

    def objective():
        summed = own + other
        log_said = summed[tasks, :, labels] - np.log(np.exp(summed).sum(axis=2))
        return (q * log_said).sum() - ridge / 2 * (own**2).sum()

    values = [objective()]
    for _ in range(60):
        _climb(np.array([0, 7]), tasks, tasks, labels, q, own, other, ridge, 1)
        values.append(objective())
    assert (np.diff(values) > -1e-12).all()
    assert values[-1] > values[0] + 1
    assert values[-1] - values[-2] < 1e-9


# === Cross-validation ===


def test_score_is_the_probability_of_what_was_left_out():
    annotations, _ = simulated_crowd(num_tasks=40, num_annotators=6, num_classes=3, redundancy=4, seed=2)
    rows = _Rows.of(annotations, None)
    parts = rows.folds(3, seed=5)
    total = 0.0
    for part in range(3):
        state = _Tables(rows.only(parts != part), 0.1, None, "uniform")
        for _ in range(500):
            state.step()
        for place in np.flatnonzero(parts == part):
            task, annotator, label = rows.tasks[place], rows.annotators[place], rows.labels[place]
            rows_of_q = [said_if(a, b) for a, b in zip(state.tasks[task], state.annotators[annotator], strict=True)]
            total += math.log(sum(q * row[label] for q, row in zip(state.posteriors[task], rows_of_q, strict=True)))
    scores = MMCE(class_prior="uniform", gamma=(0.1, 5.0), folds=3, seed=5).cross_validate(annotations)
    assert list(scores) == [0.1, 5.0]
    assert scores[0.1] == pytest.approx(total / len(annotations), abs=2e-3)  # folds stop earlier than 500 iterations
    assert scores[0.1] > scores[5.0]


def test_the_most_probable_gamma_is_taken():
    annotations, _ = simulated_crowd(num_tasks=200, num_annotators=10, num_classes=3, redundancy=5, seed=2)
    aggregator = MMCE(class_prior="uniform", gamma=(4.0, 0.02, 0.5))
    scores = aggregator.cross_validate(annotations)
    best = max(scores, key=scores.get)
    assert best != 4.0
    np.testing.assert_array_equal(
        aggregator.fit(annotations).posteriors, MMCE(class_prior="uniform", gamma=best).fit(annotations).posteriors
    )
    nothing = Annotations.from_arrays([], [], [], tasks=[0], annotators=[0], classes=[0, 1])
    assert set(aggregator.cross_validate(nothing).values()) == {0.0}


# === What it is for ===


def test_tasks_and_annotators_without_annotations():
    annotations, _ = simulated_crowd()
    longer = Annotations.from_arrays(
        annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks=range(62), annotators=range(9)
    )
    result = MMCE(class_prior="uniform", gamma=0.25).fit(longer)
    np.testing.assert_allclose(result.posteriors[60:], 1 / 3)
    np.testing.assert_allclose(result.difficulty[60:], 2 / 3)
    np.testing.assert_allclose(result.confusions[8], 1 / 3)
    assert result.log_likelihood == pytest.approx(
        MMCE(class_prior="uniform", gamma=0.25).fit(annotations).log_likelihood
    )


def test_tables_beyond_the_limit_are_refused():
    annotations = Annotations.from_arrays([0, 1], [0, 0], [0, 1], classes=range(20_000))
    with pytest.raises(DataError, match=r"20000 x 20000 .* 1,200,000,000 numbers"):
        MMCE().fit(annotations)


# === Beside others ===
