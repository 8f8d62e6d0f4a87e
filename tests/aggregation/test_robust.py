import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote, Robust
from crowdzoo.aggregation.classes import robust
from crowdzoo.aggregation.classes.robust import Agreement
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.learned_step import readout, softmax


def test_weights_are_numbers_and_fit_into_four_megabytes():
    assert robust.WEIGHTS.stat().st_size < 2**22
    assert all(np.isfinite(weights).all() for weights in np.load(robust.WEIGHTS).values())


def test_agreement_is_counted_task_by_task():
    """Two of three said 0, one said 1; one task has one annotation."""
    crowd = Annotations.from_arrays([0, 0, 0, 1], [0, 1, 2, 0], [0, 0, 1, 1])
    found = Agreement.zero(3, 2)
    found.add(whole_block(crowd))
    np.testing.assert_array_equal(found.said, [[1, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(found.agree, [[0.5, 0], [0.5, 0], [0, 0]])
    np.testing.assert_array_equal(found.agreed, [[1, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(found.sizes, [2, 1])


def test_the_last_look_is_a_mixture_of_probabilities():
    rng = np.random.default_rng(0)
    weights = {name: values.astype(float) for name, values in np.load(robust.WEIGHTS).items()}
    sums, votes = rng.normal(size=(50, 3)) * 5, rng.integers(0, 4, (50, 3)).astype(float)
    context = np.tile(rng.uniform(size=len(weights["0/context/bias"])), (50, 1))
    found = readout(np, weights, sums, votes, context)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    # who calls classes by other numbers gets the same, in these numbers
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(readout(np, weights, sums[:, order], votes[:, order], context), found[:, order])
    np.testing.assert_allclose(softmax(np, np.log(found)), found)


@pytest.mark.parametrize("seed", range(3))
def test_annotators_who_say_one_class_only_do_no_harm(flaggers, seed):
    """The older default, and one-coin, had .39 to .52 on such a crowd."""
    crowd, truth = flaggers(seed)
    result = Robust().fit(crowd)
    assert result.accuracy(truth) > MajorityVote().fit(crowd).accuracy(truth)
    assert "use only one class" in " ".join(result.notes)


@pytest.mark.parametrize(("seed", "num_tasks"), [(0, 600), (1, 600), (9, 10_000)])
def test_a_rare_class_is_found_as_with_the_true_parameters(rare_crowd, seed, num_tasks):
    crowd, truth, bayes = rare_crowd(seed, num_tasks)
    labels = Robust().fit(crowd).labels
    assert (labels == truth).mean() > (bayes == truth).mean() - 0.01
    assert _f1(labels == 1, truth) > _f1(bayes, truth) - 0.1


def _f1(found, truth):
    return 2 * (found & (truth == 1)).sum() / (found.sum() + truth.sum())


def test_sure_answers_are_right_and_some_of_them_had_divided_votes(rare_crowd):
    """Of a class that is frequent, two of three votes may be enough."""
    crowd, truth, _ = rare_crowd(3, 3000)
    result = Robust().fit(crowd)
    sure = result.posteriors.max(axis=1) >= 0.95
    divided = MajorityVote().fit(crowd).posteriors.max(axis=1) < 1
    assert (result.labels == truth)[sure].mean() > 0.93
    assert (sure & divided).mean() > 0.02


def test_honest_annotators_who_met_no_task_of_a_rare_class_are_not_one_sided():
    rng = np.random.default_rng(0)
    truth = (rng.random(2000) < 0.05).astype(int)
    tasks = np.repeat(np.arange(2000), 3)
    who = np.concatenate([rng.choice(600, 3, replace=False) for _ in range(2000)])
    said = np.where(rng.random(6000) < 0.95, truth[tasks], 1 - truth[tasks])
    crowd = Annotations.from_arrays(tasks, who, said)
    assert not Robust().fit(crowd).notes


def test_known_classes_tell_what_annotators_are_like():
    """Without them nobody can know which half of the annotators exchanges the classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    said = np.where(np.arange(6) < 3, truth[:, None], 1 - truth[:, None])
    crowd, known = Annotations.from_dense(said), np.where(np.arange(300) < 60, truth, -1)
    result = Robust().fit(crowd, known)
    assert result.accuracy(np.where(known < 0, truth, -1)) > 0.95
    assert (result.confusions[:3, 0, 0] > 0.9).all()
    assert (result.confusions[3:, 0, 0] < 0.1).all()
