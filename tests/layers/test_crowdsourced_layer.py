"""CrowdsourcedLayer against the paper's equations, written out in NumPy with loops and float64."""

import keras
import numpy as np
import pytest
from keras import ops
from slopes import finite_differences

from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.losses import MaskedCrowdCrossentropy, MaskedCrowdMeanSquaredError
from crowdzoo.testing import gradients

R, K, B, T = 5, 3, 4, 2
CONNECTIONS = [
    *(("classification", connection) for connection in ("MW", "VW", "VB", "VW+B", "S")),
    ("sequence", "MW"),
    *(pytest.param("sequence", connection, marks=pytest.mark.slow) for connection in ("VW", "VB", "VW+B", "S")),
    *(("regression", connection) for connection in ("S", "B", "S+B")),
]
# annotator 4 labels nothing; task 2 nobody labelled
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1]])

each_connection = pytest.mark.parametrize(("kind", "connection"), CONNECTIONS)


FACTOR = np.array(1.7)  # of VB, which is not trained


def bottleneck(kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "regression":
        return rng.normal(size=(B, 1)).astype("float32")
    shape = (B, T, K) if kind == "sequence" else (B, K)
    return rng.dirichlet(np.ones(K), size=shape[:-1]).astype("float32")


def some_weights(kind, connection, seed=1):
    """Kernel and bias as the paper has them, one array each or None."""
    rng = np.random.default_rng(seed)
    vector = (R,) if kind == "regression" else (R, K)
    kernels = {"MW": (R, K, K), "VW": vector, "VW+B": vector, "S": (R,), "S+B": (R,)}
    kernel = rng.normal(1, 1, size=kernels[connection]) if connection in kernels else None
    bias = rng.normal(size=vector) if connection.endswith("B") else None
    return kernel, bias


def made(kind, connection, kernel, bias, **more):
    layer = CrowdsourcedLayer(R, connection, kind, **more)
    layer.build(bottleneck(kind).shape)
    layer.set_weights(
        [weight for weight in (kernel, bias, FACTOR if connection == "VB" else None) if weight is not None]
    )
    return layer


def answer(connection, p, r, kernel, bias):
    """Annotator r's activation g_r(p) for one task or token: the table of the paper, word for word."""
    if connection == "MW":
        # W_r p with W_r[said, true]; our kernel is [annotator, true, said]
        return np.array([sum(kernel[r, true, said] * p[true] for true in range(K)) for said in range(K)])
    if connection in ("VW", "S"):
        return kernel[r] * p
    if connection == "VB":
        return FACTOR * p + bias[r]
    if connection == "B":
        return p + bias[r]
    return kernel[r] * p + bias[r]


def paper_answers(kind, connection, p, kernel, bias):
    """Dense answers, float64: [B, R, K], [B, T, R, K] or [B, R]."""
    p = np.asarray(p, dtype="float64")
    if kind == "regression":
        return np.array([[answer(connection, p[i, 0], r, kernel, bias) for r in range(R)] for i in range(B)])
    if kind == "classification":
        return np.array([[answer(connection, p[i], r, kernel, bias) for r in range(R)] for i in range(B)])
    return np.array(
        [[[answer(connection, p[i, t], r, kernel, bias) for r in range(R)] for t in range(T)] for i in range(B)]
    )


def labels_of(kind, seed=2):
    """Dense labels with the observed pairs of IDS, and the same labels beside IDS."""
    rng = np.random.default_rng(seed)
    tokens = (T,) if kind == "sequence" else ()
    missing = np.nan if kind == "regression" else -1
    dense = np.full((B, *tokens, R), missing)
    sparse = np.full((B, *tokens, IDS.shape[1]), missing)
    for i, row in enumerate(IDS):
        for m, r in enumerate(row):
            if r < 0:
                continue
            label = rng.normal() if kind == "regression" else rng.integers(K, size=tokens)
            if kind == "sequence" and r == 0:
                label[1] = -1  # a token that this annotator left out
            dense[i, ..., r] = label
            sparse[i, ..., m] = label
    dtype = "float32" if kind == "regression" else "int32"
    return dense.astype(dtype), sparse.astype(dtype)


def paper_loss(kind, answers, labels):
    """Mean over observed labels of -log softmax(a)[y], or of (y - a)^2; float64 scalar."""
    costs = []
    for cell in np.ndindex(labels.shape):
        if kind == "regression":
            if not np.isnan(labels[cell]):
                costs.append((labels[cell] - answers[cell]) ** 2)
        elif labels[cell] >= 0:
            a = answers[cell]
            costs.append(np.log(np.exp(a).sum()) - a[labels[cell]])
    return sum(costs) / max(len(costs), 1)


def loss_of(kind):
    return MaskedCrowdMeanSquaredError() if kind == "regression" else MaskedCrowdCrossentropy()


@each_connection
def test_answers_are_the_papers(kind, connection):
    kernel, bias = some_weights(kind, connection)
    p = bottleneck(kind)
    answers = ops.convert_to_numpy(made(kind, connection, kernel, bias)(p))
    np.testing.assert_allclose(answers, paper_answers(kind, connection, p, kernel, bias), rtol=1e-5, atol=1e-6)


@each_connection
def test_gradients_through_the_loss_equal_finite_differences(kind, connection):
    kernel, bias = some_weights(kind, connection)
    p, loss = bottleneck(kind), loss_of(kind)
    labels, sparse_labels = labels_of(kind)

    def cost(p, kernel, bias):
        return paper_loss(kind, paper_answers(kind, connection, p, kernel, bias), labels)

    layer = made(kind, connection, kernel, bias)
    value = ops.convert_to_numpy(loss(sparse_labels, layer(p, annotators=IDS)))
    np.testing.assert_allclose(value, cost(p, kernel, bias), rtol=1e-5)
    by_p, by_weights = gradients(layer, lambda answers: loss(sparse_labels, answers), p, annotators=IDS)
    expected = [finite_differences(lambda x: cost(x, kernel, bias), p)]
    if kernel is not None:
        expected.append(finite_differences(lambda x: cost(p, x, bias), kernel))
    if bias is not None:
        expected.append(finite_differences(lambda x: cost(p, kernel, x), bias))
    for found, wanted in zip([by_p, *by_weights], expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@each_connection
def test_at_first_every_annotator_says_what_the_base_says(kind, connection):
    p = bottleneck(kind)
    answers = ops.convert_to_numpy(CrowdsourcedLayer(R, connection, kind)(p))
    said = p if kind == "regression" else np.expand_dims(p, -2)
    factor = 1.0
    if (
        kind == "classification"
    ):  # the right class of three has .65 of a softmax, each other one .175, where that is more
        factor = max(1.0, np.log(0.65 / 0.175))
    np.testing.assert_allclose(answers, np.broadcast_to(factor * said, answers.shape), rtol=1e-5)


@pytest.mark.parametrize(("kind", "connection"), [case for case in CONNECTIONS if case[0] != "regression"])
def test_confusions_are_the_softmax_of_the_answers_to_a_certain_truth(kind, connection):
    kernel, bias = some_weights(kind, connection)
    confusions = made(kind, connection, kernel, bias).annotator_confusions()
    assert confusions.dtype == np.float64
    np.testing.assert_allclose(confusions.sum(axis=2), 1, rtol=1e-12)
    for r in range(R):
        for true in range(K):
            a = answer(connection, np.eye(K)[true], r, kernel, bias)
            np.testing.assert_allclose(confusions[r, true], np.exp(a) / np.exp(a).sum(), rtol=1e-5)


def test_a_model_with_connection_vb_from_before_its_factor_keeps_its_answers():
    p = bottleneck("classification")
    layer, bias = CrowdsourcedLayer(R, "VB"), some_weights("classification", "VB")[1]
    layer.build(p.shape)
    layer.load_own_variables({"0": bias})
    np.testing.assert_allclose(ops.convert_to_numpy(layer(p)), p[:, None] + bias, rtol=1e-5)
    store = {}
    layer.save_own_variables(store)
    again = CrowdsourcedLayer(R, "VB")
    again.build(p.shape)
    again.load_own_variables(store)
    np.testing.assert_allclose(ops.convert_to_numpy(again(p)), p[:, None] + bias, rtol=1e-5)


@pytest.mark.parametrize("connection", ["S", "B", "S+B"])
def test_a_regression_shows_scales_and_biases(connection):
    kernel, bias = some_weights("regression", connection)
    layer = made("regression", connection, kernel, bias)
    np.testing.assert_allclose(layer.annotator_scales(), np.ones(R) if kernel is None else kernel, rtol=1e-6)
    np.testing.assert_allclose(layer.annotator_biases(), np.zeros(R) if bias is None else bias, rtol=1e-6)


def test_a_mask_of_padded_tokens_ends_at_the_layer_without_a_warning(recwarn):
    model = keras.Sequential(
        [keras.Input((T,)), keras.layers.Embedding(5, K, mask_zero=True), CrowdsourcedLayer(R, kind="sequence")]
    )
    model(np.array([[1, 0]]))
    assert not [warning for warning in recwarn if "mask" in str(warning.message)]
