import numpy as np
import pytest
from keras import ops

from crowdzoo.errors import DataError
from crowdzoo.layers import Standardization
from crowdzoo.testing import LAYER_CHECKS, LayerCase

X = np.array([[1.0, 10.0, 5.0], [3.0, 10.0, 7.0], [5.0, 10.0, 12.0]], dtype="float32")


@pytest.mark.parametrize("arguments", [{}, {"mean": [1.0, 2.0, 3.0], "variance": [4.0, 0.25, 0.0]}])
@pytest.mark.parametrize("name", [name for name in LAYER_CHECKS if "gradient" not in name])  # nothing is trained
def test_the_battery_passes(name, arguments):
    LAYER_CHECKS[name](LayerCase(Standardization, arguments, X, (3, 3)))


def test_adapted_features_have_mean_zero_and_variance_one():
    layer = Standardization()
    layer.adapt(X)
    # means 3, 10, 8; variances 8/3, 0, 26/3
    expected = np.stack(
        [np.array([-2, 0, 2]) / np.sqrt(8 / 3), np.zeros(3), np.array([-3, -1, 4]) / np.sqrt(26 / 3)], axis=1
    )
    np.testing.assert_allclose(ops.convert_to_numpy(layer(X)), expected, rtol=1e-6, atol=1e-6)


def test_a_feature_that_never_varied_is_only_centred():
    layer = Standardization()
    layer.adapt(np.full((1000, 1), 0.1, dtype="float32"))
    new = ops.convert_to_numpy(layer(np.array([[0.6]], dtype="float32")))
    np.testing.assert_allclose(new, [[0.5]], rtol=1e-5)


def test_features_too_large_for_half_precision_are_standardised_in_float32():
    x = X * 1e5  # variances of 1e11
    layer = Standardization(dtype="mixed_float16")
    layer.adapt(x)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)).std(axis=0), [1, 0, 1], rtol=1e-4)


def test_statistics_can_be_given():
    layer = Standardization(mean=[1, 2, 3], variance=[4, 1, 0.25])
    out = ops.convert_to_numpy(layer(np.array([[3.0, 2.0, 4.0]], dtype="float32")))
    np.testing.assert_allclose(out, [[1, 0, 2]], rtol=1e-6)
    assert layer.trainable_variables == []


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((0, 3)), "at least one row"),
        (np.zeros(3), r"must have shape \[rows, features\]"),
        (np.array([[1.0, np.nan, 2.0], [1.0, 2.0, np.inf]]), r"row 0, feature 1 is nan \(2 such values in all\)"),
        (np.zeros((2, 4)), "takes 3 features, the data have 4"),
    ],
)
def test_bad_features_are_refused(x, message):
    layer = Standardization()
    layer.build((None, 3))
    with pytest.raises(DataError, match=message):
        layer.adapt(x)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_statistics_are_those_of_all_rows_however_they_are_batched(size):
    rows = np.random.default_rng(0).normal(loc=1e4, scale=[1, 1e-2, 0], size=(30, 3)).astype("float32")
    layer = Standardization()
    layer.adapt_batches(rows[start : start + size] for start in range(0, 30, size))
    wide = rows.astype("float64")
    np.testing.assert_allclose(ops.convert_to_numpy(layer.mean), wide.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.variance), wide.var(axis=0), rtol=1e-6, atol=1e-12)
    with pytest.raises(DataError, match="row 4, feature 1 is nan"):
        layer.adapt_batches([np.zeros((3, 3)), np.array([[0, 0, 0], [0, np.nan, 0]])])
