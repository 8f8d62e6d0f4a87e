"""ConfusionMatrices (CCEM) against the paper's likelihood, written out in NumPy with loops and float64."""

import numpy as np
import pytest
from keras import ops
from slopes import finite_differences
from small_layers import IDS, LABELS, B, K, R, bottleneck, some_kernel

from crowdzoo.layers import LIA, GeoCrowdNet, TraceRegularization
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.testing import gradients

DENSE = np.full((B, R), -1, "int32")
for task, place in np.argwhere(IDS >= 0):
    DENSE[task, IDS[task, place]] = LABELS[task, place]


def made(kernel, **arguments):
    layer = ConfusionMatrices(R, **arguments)
    layer.build((None, K))
    layer.set_weights([kernel])
    return layer


def probabilities(kernel):
    """The paper's A_r, transposed to [annotator, true, said]: every row a softmax."""
    found = np.zeros(kernel.shape)
    for r in range(R):
        for k in range(K):
            odds = [np.exp(kernel[r, k, said]) for said in range(K)]
            found[r, k] = np.array(odds) / sum(odds)
    return found


def paper_loss(p, kernel):
    """Equation 4 of the paper: the mean over observed labels of -log (A_r f(x_i))[y_ir]."""
    pi, costs = probabilities(kernel), []
    for i, row in enumerate(IDS):
        for m, r in enumerate(row):
            if r >= 0:
                costs.append(-np.log(sum(p[i, k] * pi[r, k, LABELS[i, m]] for k in range(K))))
    return sum(costs) / len(costs)


def test_answers_are_the_likelihood_of_every_label():
    p, kernel = bottleneck(), some_kernel()
    answers = np.exp(ops.convert_to_numpy(made(kernel)(p)))
    pi = probabilities(kernel)
    for i in range(B):
        for r in range(R):
            for said in range(K):
                expected = sum(float(p[i, k]) * pi[r, k, said] for k in range(K))
                np.testing.assert_allclose(answers[i, r, said], expected, rtol=1e-5)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_loss_and_gradients_are_the_papers(form):
    p, kernel, loss = bottleneck(), some_kernel(), MaskedCrowdCrossentropy()
    layer = made(kernel)
    more = {"annotators": IDS} if form == "sparse" else {}
    labels = LABELS if form == "sparse" else DENSE
    assert isinstance(layer.default_loss(), MaskedCrowdCrossentropy)
    np.testing.assert_allclose(ops.convert_to_numpy(loss(labels, layer(p, **more))), paper_loss(p, kernel), rtol=1e-5)
    by_p, (by_kernel,) = gradients(layer, lambda answers: loss(labels, answers), p, **more)
    # the loss' softmax takes away what moves a whole row of p, so directions within the simplex are compared
    expected = finite_differences(lambda p: paper_loss(p / p.sum(axis=1, keepdims=True), kernel), p)
    by_p = by_p - (by_p * p).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(by_p, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(by_kernel, finite_differences(lambda x: paper_loss(p, x), kernel), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("diagonal", [0.2, 0.5, 0.95])
def test_everybody_starts_with_the_diagonal_and_even_mistakes(diagonal):
    layer = ConfusionMatrices(R, diagonal)
    layer.build((None, K))
    expected = np.where(np.eye(K, dtype=bool), diagonal, (1 - diagonal) / (K - 1))
    np.testing.assert_allclose(layer.annotator_confusions(), np.stack([expected] * R), rtol=1e-5)


def test_confusions_are_annotator_then_true_then_said():
    # Annotator 1 calls class 0 class 2, and knows the rest; a transposed matrix would put class 2's answers at 0.
    kernel = np.stack([np.eye(K)] * R) * 20
    kernel[1, 0] = [0, 0, 20]
    layer = made(kernel)
    confusions = layer.annotator_confusions()
    assert confusions.shape == (R, K, K)
    assert confusions.dtype == np.float64
    np.testing.assert_allclose(confusions[1], [[0, 0, 1], [0, 1, 0], [0, 0, 1]], atol=1e-6)
    certain = np.eye(K, dtype="float32")
    np.testing.assert_allclose(np.exp(ops.convert_to_numpy(layer(certain)))[0, 1], [0, 0, 1], atol=1e-6)


def test_confusions_that_are_set_are_those_that_are_given_back():
    given = np.random.default_rng(0).dirichlet(np.ones(K), size=(R, K))
    given[2] = np.eye(K)
    layer = made(some_kernel())
    layer.set_confusions(given)
    np.testing.assert_allclose(layer.annotator_confusions(), given, atol=3e-6)
    assert np.isfinite(layer.get_weights()[0]).all()


# === Answers with a confidence ===


@pytest.mark.parametrize("layer", [GeoCrowdNet, TraceRegularization, LIA])
def test_its_kin_take_a_confidence_and_keep_it_in_their_configuration(layer):
    made = layer(3, confidence=True)
    assert type(made).from_config(made.get_config()).confidence
    assert type(made.default_loss()).__name__ == "MaskedCrowdEvidence"
