import json

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.errors import DataError
from crowdzoo.models import FeatureClassifier

ARGUMENTS = {
    "num_features": 3,
    "num_classes": 4,
    "hidden": [5, 6],
    "dropout": 0.25,
    "mean": [1.0, 2.0, 3.0],
    "variance": [1.0, 4.0, 9.0],
    "batch_normalization": True,
    "name": "mine",
    "trainable": True,
}
X = np.random.default_rng(0).normal(3, 2, size=(20, 3)).astype("float32")


def test_the_config_holds_every_argument_and_revives():
    model = FeatureClassifier(**ARGUMENTS)
    assert json.loads(json.dumps(model.get_config())) == ARGUMENTS
    revived = keras.saving.deserialize_keras_object(json.loads(json.dumps(keras.saving.serialize_keras_object(model))))
    assert type(revived) is FeatureClassifier
    assert revived.get_config() == ARGUMENTS
    assert [weight.shape for weight in revived.weights] == [weight.shape for weight in model.weights]


def test_probabilities_are_those_of_the_network_written_in_numpy():
    model = FeatureClassifier(3, 4, hidden=(5, 6), dropout=0.5)
    model.adapt(X)
    mean, variance, w0, b0, w1, b1, w2, b2 = model.get_weights()
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(variance, X.var(axis=0), rtol=1e-5)
    h = (X - X.mean(axis=0)) / X.std(axis=0)
    h = np.maximum(h @ w0 + b0, 0)
    h = np.maximum(h @ w1 + b1, 0)
    odds = np.exp(h @ w2 + b2)
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(X)), odds / odds.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6
    )


def test_statistics_are_saved_and_not_trained(tmp_path):
    model = FeatureClassifier(3, 4, hidden=(5,))
    model.adapt(X * 100 + 1e4)
    assert len(model.trainable_weights) == 4  # two layers, kernel and bias
    expected = model.predict(X * 100 + 1e4, verbose=0)
    model.save(tmp_path / "base.keras")
    loaded = keras.saving.load_model(tmp_path / "base.keras")
    np.testing.assert_array_equal(loaded.predict(X * 100 + 1e4, verbose=0), expected)


def test_a_seed_decides_weights_and_dropout():
    def training_output(seed):
        keras.utils.set_random_seed(seed)
        return ops.convert_to_numpy(FeatureClassifier(3, 4)(X, training=True))

    np.testing.assert_array_equal(training_output(1), training_output(1))
    assert (training_output(1) != training_output(2)).any()


def test_no_hidden_layer_is_softmax_regression():
    model = FeatureClassifier(3, 4, hidden=())
    assert len(model.trainable_weights) == 2
    assert tuple(model(X[:1]).shape) == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be .*, got 1"),
        ({"num_features": 0}, "num_features must be .*, got 0"),
        ({"hidden": (0,)}, "hidden must be .*, got 0"),
        ({"dropout": 1.0}, "dropout must be .*, got 1.0"),
        ({"mean": [0.0]}, "both mean and variance"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeatureClassifier(**{"num_features": 3, "num_classes": 4, **arguments})


def test_features_of_another_length_are_refused():
    with pytest.raises(DataError, match="takes 3 features, the data have 2"):
        FeatureClassifier(3, 4).adapt(X[:, :2])


def test_batch_normalisation_stands_before_and_after_the_hidden_layer():
    keras.utils.set_random_seed(0)
    model = FeatureClassifier(3, 4, hidden=(5,), dropout=0.0, batch_normalization=True)
    x = ops.convert_to_tensor(X)

    def normalised(rows):
        rows = ops.convert_to_numpy(rows)
        return (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + 1e-3)  # Keras' epsilon

    hidden = np.maximum(normalised(X) @ ops.convert_to_numpy(model.get_layer("hidden_0").kernel), 0)
    logits = normalised(hidden) @ ops.convert_to_numpy(model.get_layer("logits").kernel)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    answer = ops.convert_to_numpy(model(x, training=True))
    np.testing.assert_allclose(answer, odds / odds.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_without_classes_the_last_hidden_layer_comes_out():
    model = FeatureClassifier(3, None, hidden=(5, 6))
    assert model.output_shape == (None, 6)
    assert model.num_classes is None
