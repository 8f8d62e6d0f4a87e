"""LIA against the paper's equations, written out in NumPy with loops and float64."""

import keras
import numpy as np
import pytest
from keras import ops
from small_layers import bottleneck

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.lia import LIA
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.models import CrowdModel
from crowdzoo.testing import gradients

B, K, D, R = 4, 3, 5, 6
# annotator 4 labels nothing; task 2 nobody labelled; annotator 1 labels one task
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 5]], dtype="int32")
LABELS = np.array([[1, 1, -1], [0, -1, -1], [-1, -1, -1], [2, 0, 2]], dtype="int32")
KNOWN = np.round(np.random.default_rng(9).normal(size=(R, 2)), 3).tolist()

FORMS = pytest.mark.parametrize(
    ("form", "latent", "known"),
    [
        pytest.param("additive", 1, None, marks=pytest.mark.slow),
        ("additive", 2, None),
        pytest.param("product", 2, None, marks=pytest.mark.slow),
        ("additive", 1, KNOWN),
    ],
    ids=["additive", "latent", "product", "annotator-features"],
)


def features(seed=1):
    return np.random.default_rng(seed).normal(size=(B, D)).astype("float32")


def made(form="additive", latent=1, known=None, seed=2, **more):
    """A layer whose weights are random, and of a size that matters."""
    layer = LIA(R, hidden=(4, 3), annotator_embedding=2, latent=latent, form=form, annotator_features=known, **more)
    layer.build((None, K), (None, D))
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        weight.assign(rng.normal(0, 0.8, weight.shape))
    return layer


# === The paper, in loops ===


def network(layers, x):
    """A plain network with SELU between its layers, float64."""
    x = np.asarray(x, dtype="float64")
    for number, layer in enumerate(layers):
        kernel, bias = (np.asarray(ops.convert_to_numpy(weight), "float64") for weight in (layer.kernel, layer.bias))
        x = np.array([sum(x[d] * kernel[d, u] for d in range(len(x))) + bias[u] for u in range(len(bias))])
        if number < len(layers) - 1:
            x = np.where(x > 0, 1.05070098735548 * x, 1.05070098735548 * 1.67326324235438 * (np.exp(x) - 1))
    return x


def paper_q(layer, i, r):
    """Q_ir [true, said]: the paper's equation 1 with D and C as exponentials (additive), or our product form."""
    shape = (K, K, layer.latent)
    difficulty = network(layer._difficulty, features()[i]).reshape(shape)
    if layer.annotator_features is None:
        embedding = ops.convert_to_numpy(layer.embedding)[r]
    else:
        embedding = network(layer._embedding, layer.annotator_features[r])
    competence = network(layer._competence, embedding).reshape(shape)
    q = np.zeros((K, K))
    for true in range(K):
        for said in range(K):
            if layer.form == "additive":
                q[true, said] = sum(np.exp(difficulty[true, said, m] + competence[true, said, m])
                                    for m in range(layer.latent))  # fmt: skip
            else:
                q[true, said] = np.exp(sum(difficulty[true, said, m] * competence[true, said, m]
                                           for m in range(layer.latent)))  # fmt: skip
        q[true] /= q[true].sum()
    return q


def paper_joint(layer, p):
    """log p_i(k) + sum_r log Q_ir[k, y_ir], float64 [B, K]."""
    joint = np.zeros((B, K))
    for i in range(B):
        for k in range(K):
            joint[i, k] = np.log(p[i, k])
            for m in range(IDS.shape[1]):
                if LABELS[i, m] >= 0:
                    joint[i, k] += np.log(paper_q(layer, i, IDS[i, m])[k, LABELS[i, m]])
    return joint


@FORMS
def test_answers_are_the_marginal_likelihood_of_a_label(form, latent, known):
    layer, p = made(form, latent, known), bottleneck()
    dense = ops.convert_to_numpy(layer(p, features=features()))
    sparse = ops.convert_to_numpy(layer(p, annotators=IDS, features=features()))
    assert dense.shape == (B, R, K)
    for i in range(B):
        for r in range(R):
            q = paper_q(layer, i, r)
            expected = [np.log(sum(p[i, k] * q[k, said] for k in range(K))) for said in range(K)]
            np.testing.assert_allclose(dense[i, r], expected, rtol=1e-4, atol=1e-5)
    for i, m in np.argwhere(IDS >= 0):
        np.testing.assert_allclose(sparse[i, m], dense[i, IDS[i, m]], rtol=1e-5, atol=1e-6)


def test_the_default_loss_is_the_papers_equation_9():
    layer, p = made(), bottleneck()
    costs = [
        -np.log(p[i] @ paper_q(layer, i, IDS[i, m])[:, LABELS[i, m]]) for i, m in np.argwhere(LABELS >= 0)
    ]  # fmt: skip
    assert isinstance(layer.default_loss(), MaskedCrowdCrossentropy)
    found = layer.default_loss()(LABELS, layer(p, annotators=IDS, features=features()))
    np.testing.assert_allclose(ops.convert_to_numpy(found), np.mean(costs), rtol=1e-5)


@FORMS
def test_the_joint_and_so_the_e_step_are_the_papers(form, latent, known):
    layer, p = made(form, latent, known), bottleneck()
    found = ops.convert_to_numpy(layer.log_joint(p, IDS, LABELS, features()))
    expected = paper_joint(layer, p)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    odds = np.exp(expected)
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.softmax(found)), odds / odds.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(found[2], np.log(p[2]), rtol=1e-5)  # nobody labelled task 2


def base(num_features=D, classes=K, hidden=()):
    layers = [keras.layers.Dense(units, activation="selu") for units in hidden]
    return keras.Sequential([keras.Input((num_features,)), *layers, keras.layers.Dense(classes, activation="softmax")])


# === Answers that are probabilities ===


def unsure_crowd(confidence):
    """Six annotations with a confidence, one without, of four tasks; and each as a distribution, by its place."""
    task, annotator = np.array([0, 0, 1, 3, 3, 3]), np.array([0, 2, 1, 3, 0, 5])
    said, sure = np.array([1, 1, 0, 2, 0, 2]), np.array([0.7, 1.0, 0.2, np.nan, 0.5, 0.9])
    annotations = Annotations.from_arrays(
        task, annotator, said, tasks=np.arange(B), annotators=np.arange(R), classes=np.arange(K), confidence=sure
    )
    own = np.where(np.isnan(sure) | (not confidence), 1.0, sure)
    shares = [[own[a] if k == said[a] else (1 - own[a]) / (K - 1) for k in range(K)] for a in range(len(task))]
    return annotations, list(zip(task, annotator, np.array(shares), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [False, True])
@pytest.mark.usefixtures("eager")
def test_both_phases_are_the_equations_with_and_without_a_confidence(confidence):
    # plain gradient descent that does not move: the losses of both phases are the objectives at a known point
    annotations, answers = unsure_crowd(confidence)
    layer = made(marginal_epochs=1, epochs_per_round=1, confidence=confidence)
    keras.utils.set_random_seed(0)
    model = CrowdModel(base(), layer)
    model.compile(keras.optimizers.SGD(0.0), jit_compile=False)
    p = model.predict(features(), verbose=0).astype("float64")
    history = model.fit(features(), annotations, epochs=2, batch_size=4, verbose=0).history
    # equation 8: EM starts from the mean answer
    means = np.zeros((B, K))
    for i in (0, 1, 3):
        means[i] = np.mean([share for task, _, share in answers if task == i], axis=0)
    joint, costs = np.log(p), []
    for i, r, share in answers:
        q = paper_q(layer, i, r)
        joint[i] += np.log(q @ share)
        costs.append(-np.log(p[i] @ q @ share))
    odds = np.exp(joint)
    posteriors = odds / odds.sum(axis=1, keepdims=True)
    labelled = [0, 1, 3]
    first, second = (-np.mean([q[i] @ joint[i] for i in labelled]) for q in (means, posteriors))
    np.testing.assert_allclose(history["loss"], [first, second, np.mean(costs)], rtol=1e-5)
    np.testing.assert_allclose(history["log_likelihood"], [np.log(odds[labelled].sum(axis=1)).sum()], rtol=1e-5)
    np.testing.assert_allclose(model.posteriors(features(), annotations), posteriors, rtol=1e-4, atol=1e-6)


def test_confidence_needs_a_column():
    annotations = Annotations.from_arrays(np.arange(B), np.arange(B), [0, 1, 2, 0], annotators=np.arange(R))
    with pytest.raises(DataError, match="needs annotations with a column `confidence`"):
        CrowdModel(base(), LIA(R, confidence=True)).fit(features(), annotations, verbose=0)


def test_no_more_is_read_of_a_million_annotators_than_those_who_labelled():
    ids = np.random.default_rng(0).integers(1_000_000, size=(64, 3)).astype("int32")
    layer = LIA(1_000_000, hidden=(4,), annotator_embedding=2)
    p, x = np.full((64, K), 1 / K, "float32"), np.zeros((64, D), "float32")
    layer.build(p.shape, x.shape)
    labels = np.zeros((64, 3), "int32")
    loss = MaskedCrowdCrossentropy()
    _, by_weights = gradients(layer, lambda said: loss(labels, said), p, annotators=ids, features=x)
    by_embedding = next(gradient for gradient in by_weights if gradient.shape == (1_000_000, 2))
    assert set(np.flatnonzero(np.abs(by_embedding).sum(axis=1))) == set(ids.ravel())
