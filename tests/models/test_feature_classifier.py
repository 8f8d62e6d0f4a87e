import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.errors import DataError
from crowdzoo.models import FeatureClassifier
from crowdzoo.saving import load_model

X = np.random.default_rng(0).normal(3, 2, size=(20, 3)).astype("float32")


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


def test_arguments_of_numpy_and_a_list_that_changes_later_are_saved_as_they_were(tmp_path):
    hidden = [5]
    sizes = {"num_features": np.int64(3), "num_classes": np.int64(4), "dropout": np.float32(0.25)}
    model = FeatureClassifier(**sizes, hidden=hidden, mean=X.mean(axis=0), variance=list(X.var(axis=0)))
    hidden.append(6)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert (loaded.num_classes, loaded.get_config()["hidden"], loaded.get_config()["dropout"]) == (4, [5], 0.25)
    np.testing.assert_array_equal(ops.convert_to_numpy(loaded(X)), ops.convert_to_numpy(model(X)))
