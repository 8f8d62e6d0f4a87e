"""Layers for preferences, against Davidson's model and its annotators written out in NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.aggregation.engine.comparisons import answer_probabilities
from crowdzoo.layers import PairAnnotators, PairProbabilities
from crowdzoo.testing import LAYER_CHECKS, LayerCase

R, B = 5, 4
IDS = np.array([[0, 2, -1], [1, -1, -1], [4, -1, -1], [3, 0, 1]], "int32")
SCORES = np.array([[1.0, 0.2], [-0.5, 0.5], [3.0, -3.0], [0.1, 0.0]], "float32")
PROBABILITIES = np.random.default_rng(0).dirichlet(np.ones(3), size=B).astype("float32")


@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
def test_the_battery_passes_for_probabilities(check):
    check(LayerCase(PairProbabilities, {"tie": 0.3}, SCORES, (B, 3)))


def test_probabilities_are_those_of_aggregation():
    found = keras.ops.convert_to_numpy(PairProbabilities(tie=-0.4)(SCORES))
    np.testing.assert_allclose(found, answer_probabilities(SCORES[:, 0] - SCORES[:, 1], -0.4, "davidson"), rtol=1e-5)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_answers_are_those_of_aggregation(form):
    layer = PairAnnotators(R, 10)
    layer.build((None, 3))
    kernel = np.random.default_rng(1).normal(size=(R, 3)).astype("float32")
    layer.set_weights([kernel])
    lead, tie = SCORES[:, 0] - SCORES[:, 1], 0.2
    p = answer_probabilities(lead, tie, "davidson")
    ids = np.tile(np.arange(R), (B, 1)) if form == "dense" else IDS
    found = keras.ops.convert_to_numpy(layer(p.astype("float32"), **({} if form == "dense" else {"annotators": ids})))
    for task, place in np.argwhere(ids >= 0):
        slope, bias, taste = kernel[ids[task, place]]
        wanted = answer_probabilities(np.array([(1 + slope) * lead[task] + bias]), tie + float(taste), "davidson")[0]
        np.testing.assert_allclose(np.exp(found[task, place]), wanted, rtol=2e-4)
    np.testing.assert_allclose([layer.slopes - 1, layer.biases, layer.tie_biases], kernel.T, atol=1e-6)


def test_the_loss_has_the_priors_per_annotation():
    layer = PairAnnotators(R, 10, slope_variance=0.5, bias_variance=0.25, tie_variance=2.0)
    layer.build((None, 3))
    layer.set_weights([np.full((R, 3), 2.0)])
    layer(PROBABILITIES, training=True)
    assert ops.convert_to_numpy(sum(layer.losses)) == pytest.approx(R * 4 * (1 / 0.5 + 1 / 0.25 + 1 / 2.0) / 2 / 10)
