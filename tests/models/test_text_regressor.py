"""TextRegressor and its layers: padding changes nothing, the arithmetic is NumPy's, configs revive."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.errors import DataError
from crowdzoo.layers.masked_convolution import MaskedConvolution
from crowdzoo.layers.tf_idf import TfIdf
from crowdzoo.models import TextRegressor

IDS = np.array([[2, 3, 2, 4, 0, 0, 0], [5, 1, 0, 0, 0, 0, 0], [6, 7, 8, 9, 2, 3, 4]], "int32")
SMALL = {"embedding": 4, "filters": 6, "hidden": 5}


@pytest.mark.parametrize("form", ["convolutional", "bag-of-words"])
@pytest.mark.parametrize("more", [1, 3, 18])
def test_padding_changes_nothing(form, more):
    keras.utils.set_random_seed(0)
    model = TextRegressor(10, form, center=3.0, unit=2.0, **SMALL)
    if form == "bag-of-words":
        model.adapt(IDS)
    expected = ops.convert_to_numpy(model(IDS))
    wide = np.pad(IDS, ((0, 0), (0, more)))
    np.testing.assert_allclose(ops.convert_to_numpy(model(wide)), expected, rtol=1e-5, atol=1e-6)
    alone = ops.convert_to_numpy(model(IDS[1:2, :2]))
    np.testing.assert_allclose(alone, expected[1:2], rtol=1e-5, atol=1e-6)
    assert expected.shape == (3, 1)
    assert np.isfinite(ops.convert_to_numpy(model(np.zeros((2, 3), "int32")))).all()  # texts without a word


@pytest.mark.parametrize("form", ["convolutional", "bag-of-words"])
def test_a_saved_model_is_the_same_and_its_config_holds_every_argument(form, tmp_path):
    arguments = {
        "num_words": 10, "form": form, **SMALL, "dropout": 0.25, "center": 3.0, "unit": 2.0, "head": True,
        "name": "mine", "trainable": True,
    }  # fmt: skip
    model = TextRegressor(**arguments)
    model.adapt(IDS)
    assert model.get_config() == arguments
    model.save(tmp_path / "text.keras")
    loaded = keras.saving.load_model(tmp_path / "text.keras")
    assert type(loaded) is TextRegressor
    np.testing.assert_array_equal(loaded.predict(IDS, verbose=0), model.predict(IDS, verbose=0))
    assert TextRegressor(10, form, head=False, **SMALL).output_shape == (None, 5)


def test_the_convolution_is_numpys_and_windows_begin_at_the_first_word():
    keras.utils.set_random_seed(0)
    layer = MaskedConvolution(2, 3, pool=5)
    x = np.random.default_rng(0).normal(size=(1, 12, 3)).astype("float32")
    places = np.array([[1.0] * 8 + [0.0] * 4], "float32")
    found, left = (ops.convert_to_numpy(part) for part in layer(x, places))
    kernel, bias = (ops.convert_to_numpy(weight) for weight in layer.weights)
    words = np.pad(x[0, :8], ((1, 1), (0, 0)))
    values = np.array([np.maximum(np.einsum("wd,wdf->f", words[t : t + 3], kernel) + bias, 0) for t in range(8)])
    np.testing.assert_allclose(found[0], [values[:5].max(axis=0), values[5:].max(axis=0), [0, 0]], rtol=1e-4, atol=1e-6)
    assert left.tolist() == [[1, 1, 0]]
    assert layer.get_config()["pool"] == 5


def test_tf_idf_is_numpys():
    layer = TfIdf(10)
    layer.adapt(IDS)
    counts = np.array([[(row == word).sum() if word > 1 else 0 for word in range(10)] for row in IDS])
    texts = (counts > 0).sum(axis=0)
    expected = counts * (1 + np.log(4 / (1 + texts)))
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(IDS)), expected, rtol=1e-5, atol=1e-7)


def test_ids_that_there_are_not_and_impossible_layers_are_refused():
    with pytest.raises(DataError, match="word ids must be 0 to 4, got 0 to 9"):
        TfIdf(5).adapt(IDS)
    with pytest.raises(DataError, match="integers of shape"):
        TfIdf(5).adapt(IDS / 2)
    with pytest.raises(ValueError, match="width must be odd, got 2"):
        MaskedConvolution(2, 2)
    with pytest.raises(ValueError, match="pool must be an integer from 1 to 65,536, got 0"):
        MaskedConvolution(2, 3, pool=0)
