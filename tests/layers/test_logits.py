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

    def __init__(self, softmax, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.softmax = softmax
        self.activation = keras.activations.get(activation)
        self.inner = dense(K)

    def build(self, shape):
        self.inner.build(shape)

    def call(self, inputs):
        logits = self.inner(self.activation(inputs))
        return keras.ops.softmax(logits) if self.softmax else logits


def a_model(*layers):
    return keras.Sequential([keras.Input((D,)), *layers])


def train(layer, *layers, **compiled):
    model = a_model(*layers, layer)
    model.compile("sgd", loss=layer.default_loss(), **compiled)
    return model.fit(X, Y, epochs=1, verbose=0).history["loss"][0]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_plain_model_of_logits_is_not_trained(layer):
    for activation in (None, "relu"):
        with pytest.raises(ConfigError, match=REFUSED):
            train(layer(R), dense(K, activation))
    with pytest.raises(
        ConfigError, match=f"{layer.__name__}: the model below this layer gives values of the activation"
    ):
        train(layer(R), a_model(a_model(dense(K))))
    assert np.isfinite(a_model(dense(K), layer(R)).predict(X, verbose=0)).all()  # such as one that was saved before


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
    assert np.isfinite(train(ConfusionMatrices(R), *layers()))


def test_logits_of_a_layer_that_nobody_sees_into_end_the_training():
    assert np.isfinite(train(ConfusionMatrices(R), Opaque(True)))
    with pytest.raises(Exception, match="which are not probabilities of the classes"):
        train(ConfusionMatrices(R), Opaque(False))
    with pytest.raises(ConfigError, match=REFUSED):  # with the values, which are known
        train(ConfusionMatrices(R), Opaque(False), run_eagerly=True, jit_compile=False)


@pytest.mark.parametrize("activation", ["relu", "softmax"])
def test_an_activation_inside_of_a_layer_of_ones_own_says_nothing_of_what_it_gives(activation):
    assert np.isfinite(train(ConfusionMatrices(R), Opaque(True, activation)))
    with pytest.raises(Exception, match="which are not probabilities of the classes"):
        train(ConfusionMatrices(R), Opaque(False, activation))


def test_values_are_refused_where_they_are_known_but_padding_is_not():
    layer = ConfusionMatrices(R, kind="sequence", majority_epochs=0)
    layer(np.array([[[0.2, 0.8], [0.0, 0.0]]], "float32"), training=True)
    layer = ConfusionMatrices(R)
    with pytest.raises(ConfigError, match=r"gives \[-1\.5, 2\.0\], " + REFUSED):
        layer(np.array([[0.2, 0.8], [-1.5, 2.0]], "float32"), training=True)
    ratings = CrowdsourcedLayer(R, "B", kind="regression")
    assert a_model(dense(1), ratings).output_shape == (None, R)


def test_a_crowd_model_on_a_base_of_logits_is_not_trained_on_annotations_or_on_batches():
    ids = np.zeros((8, 1), "int32")
    for base in (a_model(dense(K)), a_model(Opaque(False))):
        with pytest.raises(ConfigError, match=REFUSED):
            CrowdModel(base, ConfusionMatrices(R)).fit(X, Y, verbose=0)
    batches = (({"instances": X, "annotators": ids}, ids) for _ in range(1))
    with pytest.raises(ConfigError, match=REFUSED):
        CrowdModel(a_model(dense(K)), ConfusionMatrices(R)).fit(batches, verbose=0)
