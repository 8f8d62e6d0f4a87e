"""PooledConfusions against its table, written out in NumPy with loops and float64."""

import numpy as np
import pytest
from keras import ops
from small_layers import softmax

from crowdzoo.layers.pooled_confusions import PooledConfusions

R, K, B, J = 5, 4, 4, 2
# annotator 4 labels nothing; task 2 nobody labelled
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1]], "int32")
FORMS = [("full", True), ("diagonal", True), ("diagonal", False), ("low-rank", True), ("low-rank", False)]
each_form = pytest.mark.parametrize(("form", "per_class"), FORMS)


def bottleneck(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=B).astype("float32")


def made(form, per_class=True, seed=1, **more):
    """A layer with weights by chance."""
    layer = PooledConfusions(R, form, rank=J, per_class=per_class, **more)
    layer.build((None, K))
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        weight.assign(rng.normal(size=weight.shape).astype("float32"))
    return layer


def written_out(layer):
    """pi [R, K, K], float64, cell by cell from the class's table."""
    weights = {weight.name: ops.convert_to_numpy(weight).astype("float64") for weight in layer.weights}
    confusions = np.empty((R, K, K))
    for r in range(R):
        for k in range(K):
            if layer.form == "full":
                confusions[r, k] = softmax(weights["common_kernel"][k] + weights["kernel"][r, k])
                continue
            deviation = weights["right"][r, k if layer.per_class else 0]
            a = 1 / (1 + np.exp(-weights["common_right"][k] - deviation))
            for said in range(K):
                if layer.form == "diagonal":
                    confusions[r, k, said] = a if said == k else (1 - a) / (K - 1)
                else:
                    mix = softmax(weights["common_mix"][k] + weights["mix"][r])
                    error = sum(mix[j] * softmax(weights["errors"][j])[said] for j in range(J))
                    confusions[r, k, said] = a * (said == k) + (1 - a) * error
    return confusions


@each_form
def test_matrices_are_the_tables_and_their_rows_sum_to_one(form, per_class):
    layer = made(form, per_class)
    np.testing.assert_allclose(layer.annotator_confusions(), written_out(layer), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(written_out(layer).sum(axis=-1), 1)


@each_form
def test_answers_are_the_labels_likelihood(form, per_class):
    layer, p = made(form, per_class), bottleneck()
    confusions = written_out(layer)
    sparse = ops.convert_to_numpy(layer(p, annotators=IDS))
    dense = ops.convert_to_numpy(layer(p))
    for i in range(B):
        for r in range(R):
            expected = np.log([sum(p[i, k] * confusions[r, k, said] for k in range(K)) for said in range(K)])
            np.testing.assert_allclose(dense[i, r], expected, rtol=1e-4, atol=1e-5)
            for m in np.flatnonzero(IDS[i] == r):
                np.testing.assert_allclose(sparse[i, m], expected, rtol=1e-4, atol=1e-5)


@each_form
def test_the_joint_is_bayes_rule(form, per_class):
    layer, p = made(form, per_class), bottleneck()
    labels = np.where(IDS >= 0, np.arange(12).reshape(B, 3) % K, -1).astype("int32")
    labels[3, 1] = -1  # asked, but said nothing
    confusions = written_out(layer)
    joint = ops.convert_to_numpy(layer.log_joint(p, IDS, labels))
    for i in range(B):
        for k in range(K):
            expected = np.log(p[i, k]) + sum(
                np.log(confusions[r, k, said]) for r, said in zip(IDS[i], labels[i], strict=True) if said >= 0
            )
            assert joint[i, k] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("form", ["diagonal", "low-rank"])
def test_certain_annotators_stay_finite_and_exact(form):
    """One who is right but for e^-60, and one who is wrong but for it; float32 probabilities would round to 0 and 1."""
    layer = made(form)
    right = np.zeros((R, K), "float32")
    right[0], right[1] = 60, -60
    layer.right.assign(right)
    layer.common_right.assign(np.zeros(K, "float32"))
    ids, labels = np.array([[0, 1]] * K, "int32"), np.stack([np.arange(K), (np.arange(K) + 1) % K], axis=1)
    alone = ops.convert_to_numpy(layer.log_confusions(ids[:1]))[0]
    assert np.isfinite(alone).all()
    if form == "diagonal":
        assert alone[0, 0, 1] == pytest.approx(-60 - np.log(K - 1), rel=1e-5)
        assert alone[1, 0, 0] == pytest.approx(-60, rel=1e-5)
    assert np.isfinite(ops.convert_to_numpy(layer(np.eye(K, dtype="float32"), annotators=ids))).all()
    assert np.isfinite(ops.convert_to_numpy(layer.log_joint(np.eye(K, dtype="float32"), ids, labels))).all()


def test_a_thousand_classes_and_many_annotators_need_no_matrices():
    """60 labels of 1,000 classes; the matrices would be 240 MB a copy, and 40 GB for all annotators."""
    classes, annotators = 1000, 10_000
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), size=20).astype("float32")
    ids = rng.integers(annotators, size=(20, 3)).astype("int32")
    for form in ("diagonal", "low-rank"):
        layer = PooledConfusions(annotators, form, rank=4, per_class=False)
        answers = ops.convert_to_numpy(layer(p, annotators=ids))
        assert answers.shape == (20, 3, classes)
        np.testing.assert_allclose(np.exp(answers).sum(axis=-1), 1, rtol=1e-4)
        assert layer.count_params() < 2 * annotators * (1 + 4)
        assert np.isfinite(ops.convert_to_numpy(layer.log_joint(p, ids, rng.integers(classes, size=(20, 3))))).all()


# === Annotators of few labels ===


def test_the_penalty_of_all_batches_is_the_ridge_once_an_annotator():
    layer = made("full", ridge=3.0)
    batches = [IDS[:2], IDS[2:]]
    layer.set_counts(np.bincount(IDS[IDS >= 0], minlength=R))
    total = 0.0
    for ids in batches:
        layer(bottleneck()[: len(ids)], annotators=ids)
        (penalty,) = layer.losses
        total += float(penalty) * (ids >= 0).sum()
    deviations = ops.convert_to_numpy(layer.kernel).astype("float64")[:4]  # annotator 4 labelled nothing
    assert total == pytest.approx(3.0 / 2 * (deviations**2).sum(), rel=1e-5)
    layer(bottleneck())
    of_all = ops.convert_to_numpy(layer.kernel).astype("float64")
    assert float(layer.losses[0]) * (IDS >= 0).sum() == pytest.approx(1.5 * (of_all**2).sum(), rel=1e-5)


@each_form
def test_padding_and_a_batch_of_nothing_else_cost_nothing(form, per_class):
    layer = made(form, per_class)
    layer(bottleneck(), annotators=np.full((B, 2), -1, "int32"))
    assert float(layer.losses[0]) == 0
    assert made(form, per_class, ridge=0.0).losses == []


def test_accuracies_are_the_diagonals_of_the_matrices():
    accuracies = made("diagonal").annotator_accuracies()
    np.testing.assert_allclose(accuracies, np.diagonal(written_out(made("diagonal")), axis1=1, axis2=2), rtol=1e-5)
