import math

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import Block
from crowdzoo.aggregation.classes.glad import GLAD, NOTHING, Abilities, expect, objective
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === The paper in loops ===


def rows_of(annotations):
    return list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))


def posterior(table, task, num_classes, alpha, b, class_prior, known=-1):
    """Posterior and evidence of one task: products of probabilities, section 2 of the paper."""
    joint = []
    for k in range(num_classes):
        product = class_prior[k] if known in (-1, k) else 0.0
        for t, r, label in table:
            if t == task:
                right = 1 / (1 + math.exp(-alpha[r] * math.exp(b[task])))
                product *= right if label == k else (1 - right) / max(num_classes - 1, 1)
        joint.append(product)
    return [value / sum(joint) for value in joint], sum(joint)


def penalised(table, num_classes, alpha, b, class_prior, priors, gold=None):
    total = 0.0
    for task in range(len(b)):
        known = -1 if gold is None else gold[task]
        total += math.log(posterior(table, task, num_classes, alpha, b, class_prior, known)[1])
    total -= sum((a - priors.alpha_mean) ** 2 for a in alpha) / (2 * priors.alpha_variance)
    return total - sum((x - priors.b_mean) ** 2 for x in b) / (2 * priors.b_variance)


def setting(num_classes, seed=0):
    """A crowd with random parameters: table, block, params, b, gold."""
    rng = np.random.default_rng(seed)
    annotations, _ = simulated_crowd(20, 6, num_classes, redundancy=4, seed=seed)
    gold = np.where(np.arange(20) % 6 == 1, rng.integers(num_classes, size=20), -1)
    params = Abilities(rng.normal(0.5, 1, 6), rng.dirichlet(np.ones(num_classes)))
    return rows_of(annotations), whole_block(annotations, gold), params, rng.normal(0, 1, 20), gold


@pytest.mark.parametrize("num_classes", [1, 2, 3, 30])
def test_e_step_and_objective_equal_the_paper_in_loops(num_classes):
    table, block, params, b, gold = setting(num_classes)
    priors = GLAD(alpha_mean=0.5, alpha_variance=2.0, b_mean=-0.3, b_variance=0.7)
    q = [posterior(table, t, num_classes, params.alpha, b, params.class_prior, gold[t])[0] for t in range(20)]
    posteriors = np.empty_like(q)
    expect([(block, b, NOTHING)], params, priors, posteriors)
    np.testing.assert_allclose(posteriors, q, rtol=1e-9, atol=1e-12)
    counts, _ = expect([(block, b, NOTHING)], params, priors)
    expected = penalised(table, num_classes, params.alpha, b, params.class_prior, priors, gold)
    assert objective(counts, params, priors) == pytest.approx(expected)
    np.testing.assert_allclose(counts.classes, np.sum(q, axis=0))
    assert counts.num_annotations == 80


@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize("class_prior", ["uniform", "estimated"])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_a_fit_to_the_end_is_a_top_of_the_papers_objective(num_classes, class_prior):
    annotations, _ = simulated_crowd(25, 6, num_classes, redundancy=4, seed=3)
    table, priors = rows_of(annotations), GLAD()
    result = GLAD(class_prior=class_prior, tol=0, max_iter=3000).fit(annotations)
    alpha, b = result.skills, -np.log(result.difficulty)
    top = penalised(table, num_classes, alpha, b, result.class_prior, priors)
    assert result.history[-1] == pytest.approx(top)
    for values in (alpha, b):
        for place in range(len(values)):
            here = values[place]
            heights = []
            for step in (-1e-3, 1e-3):
                values[place] = here + step
                heights.append(penalised(table, num_classes, alpha, b, result.class_prior, priors))
            values[place] = here
            assert abs(heights[1] - heights[0]) / 2e-3 < 1e-4  # the slope
            assert max(heights) <= top + 1e-9


# === The model ===


def test_a_task_of_which_nothing_is_known_has_the_priors_mean():
    annotations = Annotations.from_arrays([0, 1], [0, 0], [0, 1], tasks=[0, 1, 2])
    result = GLAD(alpha_mean=0.7, b_mean=0.3).fit(annotations)
    assert result.difficulty[2] == pytest.approx(math.exp(-0.3))
    np.testing.assert_allclose(result.posteriors[2], 0.5)


def test_gold_makes_a_task_hard_that_all_get_wrong():
    labels = np.zeros((12, 5), int)
    labels[6:] = 1
    gold = np.where(np.arange(12) == 0, 1, -1)
    result = GLAD().fit(Annotations.from_dense(labels), gold=gold)
    assert result.difficulty[0] > 1.5 * result.difficulty[1:].max()


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_other_tasks_begin_with_what_is_known_of_the_annotators():
    annotations, _ = simulated_crowd(200, redundancy=3)
    first = GLAD(tol=1e-6).fit(annotations)
    few = annotations.select_tasks(np.arange(10))
    result = GLAD(max_iter=1, tol=0).fit(few, initial=first)
    begin = penalised(rows_of(few), 3, first.skills, np.ones(10), np.full(3, 1 / 3), GLAD())
    assert result.history[0] == pytest.approx(begin)


def test_labels_beyond_the_classes_are_refused():
    params = Abilities(np.ones(2), np.full(2, 0.5))
    with pytest.raises(DataError, match="class 5"):
        expect([(Block([0], [1], [5]), np.ones(1), NOTHING)], params, GLAD())
