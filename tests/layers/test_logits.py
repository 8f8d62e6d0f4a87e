"""Crowd layers that take probabilities refuse a model that ends without a softmax."""

import keras
import numpy as np
import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.layers import (
    ConfusionMatrices,
    CrowdsourcedLayer,
    GeoCrowdNet,
    PooledConfusions,
    TraceRegularization,
    UnionNet,
)
from crowdzoo.models import CrowdModel

D, K, R = 4, 3, 2
X = np.random.default_rng(0).normal(size=(8, D)).astype("float32")
Y = np.random.default_rng(1).integers(K, size=(8, R))
LAYERS = (ConfusionMatrices, CrowdsourcedLayer, GeoCrowdNet, PooledConfusions, TraceRegularization, UnionNet)
REFUSED = r"which are not probabilities of the classes\. End that model in .*Dense\(num_classes, activation='softmax'\)"
dense = keras.layers.Dense


@keras.saving.register_keras_serializable(package="tests")
class Opaque(keras.layers.Layer):
    """A layer of one's own, into which nobody sees."""

    def __init__(self, softmax, **kwargs):
        super().__init__(**kwargs)
        self.softmax = softmax
        self.inner = dense(K)

    def build(self, shape):
        self.inner.build(shape)

    def call(self, inputs):
        logits = self.inner(inputs)
        return keras.ops.softmax(logits) if self.softmax else logits


def a_model(*layers):
    return keras.Sequential([keras.Input((D,)), *layers])


def train(layer, *layers):
    model = a_model(*layers, layer)
    model.compile("sgd", loss=layer.default_loss())
    return model.fit(X, Y, epochs=1, verbose=0).history["loss"][0]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_plain_model_of_logits_is_refused_when_it_is_made(layer):
    for activation in (None, "relu", "sigmoid"):
        with pytest.raises(ConfigError, match=REFUSED):
            a_model(dense(K, activation), layer(R))
    with pytest.raises(
        ConfigError, match=f"{layer.__name__}: the model below this layer gives values of the activation"
    ):
        a_model(a_model(a_model(dense(K))), layer(R))
    one = keras.Input((D,))
    with pytest.raises(ConfigError, match=REFUSED):
        layer(R)(dense(K)(one))


@pytest.mark.parametrize(
    "layers",
    [
        lambda: [dense(K, "softmax")],
        lambda: [dense(K), keras.layers.Softmax()],
        lambda: [dense(K), keras.layers.Activation("softmax")],
        lambda: [dense(K, "softmax"), keras.layers.Activation("linear", dtype="float32")],
        lambda: [a_model(dense(K, "softmax"))],
    ],
)
def test_every_way_to_write_a_softmax_is_taken(layers):
    a_model(*layers(), ConfusionMatrices(R))


def test_logits_of_a_layer_that_nobody_sees_into_end_the_training():
    assert np.isfinite(train(ConfusionMatrices(R), Opaque(True)))
    with pytest.raises(Exception, match="which are not probabilities of the classes"):
        train(ConfusionMatrices(R), Opaque(False))


def test_values_are_refused_where_they_are_known_but_padding_is_not():
    layer = ConfusionMatrices(R, kind="sequence", majority_epochs=0)
    layer(np.array([[[0.2, 0.8], [0.0, 0.0]]], "float32"), training=True)
    layer = ConfusionMatrices(R)
    with pytest.raises(ConfigError, match=r"gives \[-1\.5, 2\.0\], " + REFUSED):
        layer(np.array([[0.2, 0.8], [-1.5, 2.0]], "float32"), training=True)
    ratings = CrowdsourcedLayer(R, "B", kind="regression")
    assert a_model(dense(1), ratings).output_shape == (None, R)


def test_a_crowd_model_on_a_base_of_logits_is_refused_when_it_is_made():
    with pytest.raises(ConfigError, match=REFUSED):
        CrowdModel(a_model(dense(K)), ConfusionMatrices(R))
    base = a_model(Opaque(False))
    with pytest.raises(ConfigError, match=REFUSED):
        CrowdModel(base, ConfusionMatrices(R)).fit(X, Y, verbose=0)
