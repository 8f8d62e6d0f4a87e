"""UnionNet against the paper's union of annotators, written out in NumPy with loops and float64."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers.union_net import MaskedNegativeLogLikelihood, UnionNet
from crowdzoo.metrics import confusion_recovery
from crowdzoo.models import CrowdModel
from crowdzoo.testing import LAYER_CHECKS, LayerCase, finite_differences, gradients

R, K, B = 5, 3, 4
# annotator 4 labels nothing; task 2 nobody labelled
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1]], "int32")
LABELS = np.array([[2, 0, -1], [1, -1, -1], [-1, -1, -1], [0, 1, 1]], "int32")
NOBODY = np.full_like(IDS, -1)


def bottleneck():
    return np.random.default_rng(0).dirichlet(np.ones(K), size=B).astype("float32")


def some_kernel():
    return np.random.default_rng(1).normal(size=(R, K, K))


def made(kernel):
    layer = UnionNet(R)
    layer.build((None, K))
    layer.set_weights([kernel])
    return layer


def union(kernel):
    """The paper's matrix T of R K rows and K columns: every column, a true class, is one softmax over all rows."""
    rows = np.array([[kernel[r, k, said] for k in range(K)] for r in range(R) for said in range(K)])
    for k in range(K):
        odds = np.exp(rows[:, k])
        rows[:, k] = odds / odds.sum()
    return rows


def paper_loss(p, kernel):
    """Mean over labels of -log (T f(x_i)) in the row of annotator and label."""
    t = union(kernel)
    costs = [
        -np.log(t[IDS[i, m] * K + LABELS[i, m]] @ p[i]) for i in range(B) for m in range(IDS.shape[1]) if IDS[i, m] >= 0
    ]
    return sum(costs) / len(costs)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
def test_the_battery_passes(check, form):
    arguments = {"num_annotators": R, "diagonal": 0.7}
    if form == "dense":
        check(LayerCase(UnionNet, arguments, bottleneck(), (B, R, K)))
    else:
        check(LayerCase(UnionNet, arguments, bottleneck(), (B, 3, K), {"annotators": IDS}))


def test_answers_are_rows_of_the_union_and_sum_to_one_over_all_annotators():
    p, kernel = bottleneck(), some_kernel()
    answers = np.exp(ops.convert_to_numpy(made(kernel)(p)))
    np.testing.assert_allclose(answers.reshape(B, R * K), p @ union(kernel).T, rtol=1e-4)
    np.testing.assert_allclose(answers.sum(axis=(1, 2)), 1, rtol=1e-5)


def test_sparse_answers_are_the_dense_ones_of_who_was_asked():
    layer, p = made(some_kernel()), bottleneck()
    dense, sparse = ops.convert_to_numpy(layer(p)), ops.convert_to_numpy(layer(p, annotators=IDS))
    for i, m in np.argwhere(IDS >= 0):
        np.testing.assert_allclose(sparse[i, m], dense[i, IDS[i, m]], rtol=1e-5, atol=1e-6)


def test_loss_and_gradients_are_the_papers():
    p, kernel = bottleneck(), some_kernel()
    layer = made(kernel)
    loss = layer.default_loss()
    value = ops.convert_to_numpy(loss(LABELS, layer(p, annotators=IDS)))
    np.testing.assert_allclose(value, paper_loss(p, kernel), rtol=1e-5)
    by_p, (by_kernel,) = gradients(layer, lambda answers: loss(LABELS, answers), p, annotators=IDS)
    np.testing.assert_allclose(by_p, finite_differences(lambda p: paper_loss(p, kernel), p), rtol=1e-3, atol=1e-5)
    expected = finite_differences(lambda kernel: paper_loss(p, kernel), kernel)
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(by_kernel[4]).max() > 1e-3  # annotators compete: who does not label becomes less likely


def test_a_batch_of_padding_costs_nothing_and_moves_nothing():
    layer, p = made(some_kernel()), bottleneck()
    loss = layer.default_loss()
    assert ops.convert_to_numpy(loss(NOBODY, layer(p, annotators=NOBODY))) == 0
    by_p, (by_kernel,) = gradients(layer, lambda answers: loss(NOBODY, answers), p, annotators=NOBODY)
    np.testing.assert_array_equal(by_p, np.zeros_like(by_p))
    np.testing.assert_array_equal(by_kernel, np.zeros_like(by_kernel))


def test_large_weights_and_certain_predictions_stay_finite():
    layer, p = made(300 * some_kernel()), np.eye(K, dtype="float32")[[0, 0, 1, 2]]
    loss = layer.default_loss()
    assert np.isfinite(ops.convert_to_numpy(layer(p, annotators=IDS))).all()
    by_p, (by_kernel,) = gradients(layer, lambda answers: loss(LABELS, answers), p, annotators=IDS)
    assert np.isfinite(by_p).all()
    assert np.isfinite(by_kernel).all()


def test_confusions_are_what_an_annotator_says_given_that_they_label():
    kernel = some_kernel()
    kernel[1] += 3  # labels more often, of no other kind
    confusions = made(kernel).annotator_confusions()
    t = union(kernel).reshape(R, K, K)  # [annotator, said, true]
    for r in range(R):
        for k in range(K):
            np.testing.assert_allclose(confusions[r, k], t[r, :, k] / t[r, :, k].sum(), rtol=1e-5)


def test_the_posterior_is_that_of_the_union_of_annotators_and_labels():
    """q_i(k) ~ p_i(k) prod over the task's labels of T[(r, l), k], in float64."""
    p, kernel = bottleneck(), some_kernel()
    kernel[0, 1] += 2  # annotator 0 labels tasks of class 1 more often than others
    t = union(kernel)
    expected, without = p.astype("float64"), p.astype("float64")
    for i, m in np.argwhere(IDS >= 0):
        r, said = IDS[i, m], LABELS[i, m]
        expected[i] *= t[r * K + said]
        without[i] *= t[r * K + said] / t[r * K : (r + 1) * K].sum(axis=0)  # P(l | r, k) alone
    expected /= expected.sum(axis=1, keepdims=True)
    without /= without.sum(axis=1, keepdims=True)
    found = ops.convert_to_numpy(ops.softmax(made(kernel).log_joint(p, IDS, LABELS)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(found[2], p[2], rtol=1e-5)  # nobody labelled it
    assert np.abs(expected - without).max() > 0.1


def test_who_labels_tells_the_truth_where_annotators_label_one_class_each():
    kernel = np.zeros((R, K, K))  # labels by chance, so that only who labels says something
    kernel[[0, 1, 3], [0, 1, 2]] = 6
    found = ops.convert_to_numpy(ops.softmax(made(kernel).log_joint(np.full((B, K), 1 / K, "float32"), IDS, LABELS)))
    assert found[1, 1] > 0.99
    np.testing.assert_allclose(found[2], 1 / K, rtol=1e-5)
    np.testing.assert_allclose(found[3].max(), 1 / 3, rtol=1e-3)  # one of each


def test_the_loss_is_the_given_log_probability_of_the_observed_labels():
    logs = np.log(np.array([[[0.1, 0.2], [0.3, 0.4]], [[0.5, 0.1], [0.2, 0.2]]]))
    labels = np.array([[1, -1], [0, 1]])
    expected = -np.log([0.2, 0.5, 0.2])
    loss = MaskedNegativeLogLikelihood()
    np.testing.assert_allclose(ops.convert_to_numpy(loss(labels, logs)), expected.mean(), rtol=1e-5)
    weighted = ops.convert_to_numpy(loss(labels, logs, sample_weight=np.array([0.0, 3.0])))
    np.testing.assert_allclose(weighted, 3 * expected[1:].sum() / 3, rtol=1e-5)
    assert np.isnan(ops.convert_to_numpy(loss(np.array([[2, -1], [0, 1]]), logs)))
    with pytest.raises(ValueError, match="MaskedNegativeLogLikelihood: labels must have the predictions' shape"):
        loss(labels[0], logs)


# anchors: the classes lie apart; experts: annotators 0 and 1; annotator 3 has two classes the wrong way round
TRUE = np.array(
    [
        [[0.97, 0.02, 0.01], [0.02, 0.97, 0.01], [0.01, 0.01, 0.98]],
        [[0.9, 0.1, 0], [0, 0.95, 0.05], [0.1, 0, 0.9]],
        [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.15, 0.6]],
        [[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
        [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]],
    ]
)


def a_crowd(num_tasks):
    rng = np.random.default_rng(0)
    gold = rng.integers(K, size=num_tasks)
    x = (np.eye(K)[gold] + rng.normal(scale=0.1, size=(num_tasks, K))).astype("float32")
    labels = np.array([[rng.choice(K, p=TRUE[r, true]) for r in range(R)] for true in gold])
    return x, gold, Annotations.from_dense(labels, classes=range(K))


def trained(x, annotations, epochs):
    keras.utils.set_random_seed(0)
    base = keras.Sequential(
        [keras.Input((K,)), keras.layers.Dense(K, activation="softmax", kernel_initializer="zeros")]
    )
    model = CrowdModel(base, UnionNet(R))
    model.compile(keras.optimizers.Adam(0.05))
    model.fit(x, annotations, epochs=epochs, batch_size=100, verbose=0)
    return model


@pytest.mark.learning
def test_simulated_annotators_are_recovered_from_ten_thousand_labels():
    x, gold, annotations = a_crowd(2000)
    model = trained(x, annotations, epochs=12)
    assert confusion_recovery(TRUE, model.annotator_confusions()).mean_absolute_error < 0.03
    assert np.mean(model.predict(x, verbose=0).argmax(axis=1) == gold) > 0.98
