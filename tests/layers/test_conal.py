"""CoNAL against the paper's equations, written out in NumPy with loops and float64."""

import numpy as np
import pytest
from keras import ops
from small_layers import softmax

from crowdzoo.layers.conal import CoNAL
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.testing import gradients

R, K, B, D, E = 5, 3, 4, 6, 4
# annotator 4 labels nothing; annotator 0 labels three tasks, annotator 3 one; task 2 nobody labelled
IDS = np.array([[0, 2, -1], [1, 0, -1], [-1, -1, -1], [3, 0, 1]], dtype="int32")
LABELS = np.array([[0, 2, -1], [1, 1, -1], [-1, -1, -1], [2, 0, 1]], dtype="int32")
TABLE = np.random.default_rng(3).normal(size=(R, 2)).tolist()

each_mixing = pytest.mark.parametrize("mixing", ["logits", "probabilities"])
each_variant = pytest.mark.parametrize(
    "more",
    [
        {},
        *(pytest.param(one, marks=pytest.mark.slow) for one in ({"normalize_instances": False}, {"separation": 0.0})),
        {"instance_hidden": 7},
        {"annotator_features": TABLE},
    ],
    ids=str,
)


def inputs(seed=0):
    """Bottleneck [B, K] and features [B, D]."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K), size=B).astype("float32"), rng.normal(size=(B, D)).astype("float32")


def made(seed=1, **arguments):
    """A built layer with random weights."""
    layer = CoNAL(R, **{"embedding_size": E, "separation": 0.1, **arguments})
    layer.build((None, K), (None, D))
    rng = np.random.default_rng(seed)
    fixed = {id(layer.annotators)} if layer.annotator_features is not None else set()
    for weight in layer.weights:
        if id(weight) not in fixed:
            weight.assign(rng.normal(size=weight.shape))
    return layer


def array(weight):
    return np.asarray(ops.convert_to_numpy(weight), dtype="float64")


def paper_omega(layer, r, v):
    """omega_ir = sigmoid(u_r . v_i); v is the embedding of the instance."""
    u = array(layer.annotators)[r]
    if layer.annotator_features is not None:
        u = u @ array(layer.annotator_map.kernel) + array(layer.annotator_map.bias)
    return 1 / (1 + np.exp(-(u / np.linalg.norm(u)) @ v))


def paper_embedding(layer, x):
    """v_i = A x_i + a, of length one."""
    x = np.asarray(x, dtype="float64")
    if layer.instance_hidden is not None:
        x = x @ array(layer.hidden_map.kernel) + array(layer.hidden_map.bias)
    v = x @ array(layer.instance_map.kernel) + array(layer.instance_map.bias)
    return v / np.linalg.norm(v) if layer.normalize_instances else v


def paper_answer(layer, p, omega, r):
    """Annotator r's label distribution for one task; kernels are [true, said], so the paper's W p is p W here."""
    common, own = array(layer.common), array(layer.kernel)[r]
    said_common = [sum(p[k] * common[k, label] for k in range(K)) for label in range(K)]
    said_own = [sum(p[k] * own[k, label] for k in range(K)) for label in range(K)]
    said_common, said_own = np.array(said_common), np.array(said_own)
    if layer.mixing == "logits":
        return softmax(omega * said_common + (1 - omega) * said_own)
    return omega * softmax(said_common) + (1 - omega) * softmax(said_own)


def answers(layer, p, x, ids=IDS):
    """What the layer says, as probabilities [B, M, K]."""
    logits = ops.convert_to_numpy(layer(p, annotators=ids, features=x)).astype("float64")
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


@each_variant
@each_mixing
def test_answers_are_the_papers(mixing, more):
    layer, (p, x) = made(mixing=mixing, **more), inputs()
    said = answers(layer, p, x)
    for i, m in np.argwhere(IDS >= 0):
        omega = paper_omega(layer, IDS[i, m], paper_embedding(layer, x[i]))
        np.testing.assert_allclose(said[i, m], paper_answer(layer, p[i], omega, IDS[i, m]), rtol=1e-4, atol=1e-6)


@each_variant
@each_mixing
def test_confusions_of_an_instance_are_its_answers_to_certain_truths(mixing, more):
    layer, (_, x) = made(mixing=mixing, **more), inputs()
    confusions = np.exp(ops.convert_to_numpy(layer.log_confusions(IDS, x)))
    for i, m in np.argwhere(IDS >= 0):
        omega = paper_omega(layer, IDS[i, m], paper_embedding(layer, x[i]))
        for true in range(K):
            expected = paper_answer(layer, np.eye(K)[true], omega, IDS[i, m])
            np.testing.assert_allclose(confusions[i, m, true], expected, rtol=1e-4, atol=1e-6)


def test_at_first_everybody_says_what_the_base_says():
    p, x = inputs()
    safe = max(1, np.log(0.65 / 0.35 * (K - 1)))  # P(right) is .65
    for factor, layer in ((safe, CoNAL(R)), (2, CoNAL(R, scale=2))):
        said = ops.convert_to_numpy(layer(p, annotators=IDS, features=x))
        np.testing.assert_allclose(said, np.broadcast_to(factor * p[:, None], said.shape), rtol=1e-5)


def test_an_omega_of_zero_or_one_leaves_finite_answers_and_gradients():
    p, x = inputs()
    for mixing in ("logits", "probabilities"):
        layer = made(mixing=mixing, normalize_instances=False)
        _, by_weights = gradients(
            layer, lambda said: MaskedCrowdCrossentropy()(LABELS, said), p, annotators=IDS, features=1e6 * x
        )
        assert all(np.isfinite(gradient).all() for gradient in by_weights)


# === The separation of common and own kernels ===


def penalty(layer, ids=IDS):
    p, x = inputs()
    layer(p, annotators=ids, features=x)
    return sum(float(ops.convert_to_numpy(loss)) for loss in layer.losses)


def test_the_penalty_counts_every_annotator_of_the_batch_once_and_no_padding():
    layer = made(separation=0.1)
    distances = [np.linalg.norm(array(layer.common) - array(layer.kernel)[r]) for r in range(R)]
    assert penalty(layer) == pytest.approx(-0.1 * sum(distances[:4]), rel=1e-5)  # annotator 4 is not there
    assert penalty(layer, np.full_like(IDS, -1)) == 0
    assert penalty(layer, None) == pytest.approx(-0.1 * sum(distances), rel=1e-5)


# === What was learnt ===


def test_training_calls_move_the_mean_instance_and_others_leave_it():
    layer, (p, x) = made(), inputs()
    layer.mean_instance.assign(np.zeros(E))
    expected = np.zeros(E)
    for seed in range(3):
        _, x = inputs(seed)
        layer(p, annotators=IDS, features=x)
        layer(p, annotators=IDS, features=x, training=True)
        batch = np.mean([paper_embedding(layer, row) for row in x], axis=0)
        expected += 0.1 * (batch - expected)
    np.testing.assert_allclose(array(layer.mean_instance), expected, rtol=1e-4)


@each_variant
@each_mixing
def test_annotators_confusions_and_shares_are_those_at_the_mean_instance(mixing, more):
    layer = made(mixing=mixing, **more)
    v = array(layer.mean_instance)
    confusions, shares = layer.annotator_confusions(), layer.common_shares()
    assert confusions.shape == (R, K, K)
    assert shares.shape == (R,)
    np.testing.assert_allclose(confusions.sum(axis=2), 1)
    for r in range(R):
        omega = paper_omega(layer, r, v)
        assert shares[r] == pytest.approx(omega, rel=1e-5)
        for true in range(K):
            expected = paper_answer(layer, np.eye(K)[true], omega, r)
            np.testing.assert_allclose(confusions[r, true], expected, rtol=1e-4, atol=1e-6)
