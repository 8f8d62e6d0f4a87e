"""A training that begins with the weights of another one: annotators are matched by name, new ones answer as all do."""

import keras
import numpy as np
import pytest

from crowdzoo.layers import CoNAL, CrowdsourcedLayer
from crowdzoo.models import CrowdModel
from crowdzoo.training.methods import create_crowd_layer, methods_of
from crowdzoo.training.warm_start import warm_start

K, D = 3, 4
BEFORE, AFTER = ["ann", "bob", "cy"], ["cy", "dee", "ann", "bob"]  # as many as classes, and one more


def a_model(crowd, seed, width=K):
    keras.utils.set_random_seed(seed)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(width, "softmax")])
    model = CrowdModel(base, crowd)
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(rng.uniform(0.1, 1, weight.shape))
    return model


def crowds(method, kind):
    return [create_crowd_layer(method, len(names), K, kind=kind) for names in (BEFORE, AFTER)]


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param(method, kind, marks=[] if method in ("crowdsourced-layer", "deep-em") else pytest.mark.slow)
        for kind in ("classification", "regression")
        for method in methods_of(kind)
        if method != "aggregated"
    ],
)
def test_annotators_keep_their_weights_by_name_whatever_the_method(method, kind):
    one, two = crowds(method, kind)
    width = K if kind == "classification" else 1
    before, after = a_model(one, 1, width), a_model(two, 2, width)
    made = [np.array(weight) for weight in map(keras.ops.convert_to_numpy, after.crowd.weights)]
    assert warm_start(after, before, BEFORE, AFTER) == 1
    for left, right in zip(before.base.get_weights(), after.base.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    rows = 0
    for old, new, start in zip(before.crowd.get_weights(), after.crowd.get_weights(), made, strict=True):
        if old.shape == new.shape:  # not the annotators'
            np.testing.assert_array_equal(new, old)
            continue
        rows += 1
        np.testing.assert_array_equal(new[[2, 3, 0]], old)
        expected = start[1] if method == "pooled-confusions" else old.mean(axis=0)
        np.testing.assert_allclose(new[1], expected, rtol=1e-6)
    assert rows or not any(len(AFTER) in weight.shape for weight in made)


def test_an_annotator_never_seen_answers_by_the_common_matrix():
    before, after = a_model(CrowdsourcedLayer(3), 1), a_model(CrowdsourcedLayer(4), 2)
    warm_start(after, before, BEFORE, AFTER)
    same = a_model(CrowdsourcedLayer(1), 3)
    same.crowd.kernel.assign(keras.ops.convert_to_numpy(before.crowd.kernel).mean(axis=0, keepdims=True))
    confusions = after.crowd.annotator_confusions()
    np.testing.assert_allclose(confusions[1], same.crowd.annotator_confusions()[0], rtol=1e-5)
    np.testing.assert_allclose(confusions[[2, 3, 0]], before.crowd.annotator_confusions(), rtol=1e-5)


def test_other_layers_or_classes_change_nothing():
    before = a_model(CrowdsourcedLayer(3), 1)
    for other in (a_model(CoNAL(3), 2), a_model(None, 2), a_model(CrowdsourcedLayer(3), 2, width=5),
                  a_model(CrowdsourcedLayer(3, connection="VW"), 2)):  # fmt: skip
        weights = other.get_weights()
        assert warm_start(other, before, BEFORE, BEFORE) is None
        for one, two in zip(weights, other.get_weights(), strict=True):
            np.testing.assert_array_equal(one, two)
