"""Crowd layers in a plain Keras model: trained as they should be, or refused with the line to write."""

import keras
import numpy as np
import pytest

from crowdzoo.layers import (
    ConfusionMatrices,
    CrowdsourcedLayer,
    GeoCrowdNet,
    PooledConfusions,
    TraceRegularization,
    UnionNet,
)
from crowdzoo.models import METHODS, RATING_METHODS, SEQUENCE_METHODS, CrowdModel
from crowdzoo.training.methods import create_crowd_layer

B, T, K, R = 4, 3, 2, 3
P = np.full((B, K), 1 / K, "float32")
INPUTS = {"classification": P, "regression": P[:, :1], "sequence": np.repeat(P[:, None], T, axis=1)}
# trained by gradient descent on their answers, whoever trains them
DESCENT = {
    "classification": {
        "crowdsourced-layer", "ccem", "geo-crowd-net", "trace-regularization", "pooled-confusions", "union-net"
    },
    "regression": {"crowdsourced-layer"},
    "sequence": set(),
}  # fmt: skip
METHODS_OF = {"classification": METHODS, "regression": RATING_METHODS, "sequence": SEQUENCE_METHODS}


def train_plainly(layer, x):
    model = keras.Sequential([keras.Input(x.shape[1:]), layer])
    model.compile("sgd", loss=layer.default_loss(), run_eagerly=keras.backend.backend() != "jax")
    model.predict_on_batch(x)
    return model.train_on_batch(x, np.zeros((B, *x.shape[1:-1], R), "float32"))


@pytest.mark.parametrize("kind", METHODS_OF)
def test_a_method_that_is_more_than_gradient_descent_refuses_to_be_trained_without_fit(kind):
    features_first = {"conal", "lia"} if kind == "classification" else set()
    for method in {*METHODS_OF[kind]} - {"aggregated"} - features_first:
        layer = create_crowd_layer(method, R, K, kind=kind)
        name = type(layer).__name__
        if method in DESCENT[kind]:
            assert np.isfinite(train_plainly(layer, INPUTS[kind])), method
            continue
        line = rf"{name}: .*crowdzoo\.CrowdModel\(base, {name}\(\.\.\.\)\)\.fit\(x, annotations\)"
        with pytest.raises(ValueError, match=line):
            train_plainly(layer, INPUTS[kind])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"majority_epochs": 2}, "trained on the votes for 2 epochs"),
        ({"kind": "sequence"}, r"5 epochs \(majority_epochs=0 leaves them out\)"),
        ({"kind": "regression", "connection": "B", "anchor": True}, "anchored when fit ends"),
    ],
)
def test_what_fit_does_for_the_crowd_layer_is_not_left_out_silently(arguments, message):
    x = INPUTS[arguments.get("kind", "classification")]
    with pytest.raises(ValueError, match=message):
        train_plainly(CrowdsourcedLayer(R, **arguments), x)
    if "anchor" not in arguments:
        assert np.isfinite(train_plainly(CrowdsourcedLayer(R, **{**arguments, "majority_epochs": 0}), x))


@pytest.mark.parametrize("layer", [ConfusionMatrices, GeoCrowdNet, UnionNet, PooledConfusions, TraceRegularization])
def test_epochs_on_the_votes_are_not_left_out_silently(layer):
    x = INPUTS["classification"]
    with pytest.raises(ValueError, match=f"{layer.__name__}: the base is first trained on the votes for 3 epochs"):
        train_plainly(layer(R, majority_epochs=3), x)
    assert np.isfinite(train_plainly(layer(R), x))


def test_a_layer_that_is_not_trained_any_more_may_stand_anywhere():
    layer = create_crowd_layer("deep-em", R, K)
    layer.trainable = False
    base = keras.layers.Dense(K, activation="softmax")
    model = keras.Sequential([keras.Input((K,)), base, layer])
    model.compile("sgd", loss=layer.default_loss())
    assert np.isfinite(model.train_on_batch(P, np.zeros((B, R), "int32")))


def test_batches_of_ones_own_are_refused_where_they_would_be_trained_on_as_they_come():
    base = keras.Sequential([keras.Input((K,)), keras.layers.Dense(K, activation="softmax")])
    model = CrowdModel(base, create_crowd_layer("deep-em", R, K))
    batches = [({"instances": P, "annotators": np.zeros((B, 1), "int32")}, np.zeros((B, 1), "int32"))]
    with pytest.raises(ValueError, match=r"DeepEM\(\.\.\.\)\)\.fit\(x, annotations\)"):
        model.fit(iter(batches), verbose=0)
