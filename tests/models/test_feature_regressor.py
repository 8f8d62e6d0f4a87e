"""FeatureRegressor, and training of ratings by settings."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.models import RATING_METHODS, FeatureRegressor, TrainingSettings, rating_unit, train

N, R, NAN = 160, 6, np.nan
RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, size=(N, 3)).astype("float32")
TRUTH = 50 + 10 * (X[:, 0] - 3) / 2
DENSE = TRUTH[:, None] + [8, -3, -3, -3, 1, 0] + RNG.normal(0, 3, size=(N, R))
DENSE[RNG.random((N, R)) < 0.4] = NAN
DENSE[:, 4] = TRUTH  # every task has a rating, so every batch has the same shape
DENSE[1:, 5] = NAN  # an annotator with one rating
ANNOTATIONS = Annotations.from_dense(DENSE, kind="regression")
QUICK = {"kind": "regression", "hidden": (8,), "dropout": 0.0, "epochs": 15, "batch_size": 40, "learning_rate": 0.02}


def test_estimates_are_those_of_the_network_written_in_numpy(tmp_path):
    model = FeatureRegressor(3, hidden=(5,), dropout=0.5, center=10.0, unit=4.0)
    model.adapt(X)
    _, _, w0, b0, w1, b1 = model.get_weights()
    h = np.maximum((X - X.mean(axis=0)) / X.std(axis=0) @ w0 + b0, 0)
    expected = 10 + 4 * (h @ w1 + b1)
    np.testing.assert_allclose(ops.convert_to_numpy(model(X)), expected, rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "base.keras")
    loaded = keras.saving.load_model(tmp_path / "base.keras")
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))


def test_center_and_unit_are_mean_and_deviation_of_the_ratings():
    assert rating_unit(ANNOTATIONS) == pytest.approx((np.nanmean(DENSE), np.nanstd(DENSE)))
    assert rating_unit(np.array([2.0, NAN, 4.0])) == (3.0, 1.0)
    assert rating_unit(np.full(7, 0.1)) == pytest.approx((0.1, 1.0))  # nothing to measure by
    with pytest.raises(DataError, match="there are no ratings"):
        rating_unit(np.array([NAN]))
    with pytest.raises(DataError, match="must be finite numbers below 1e150"):
        rating_unit(np.array([1e200, -1e200]))
    with pytest.raises(DataError, match="only ratings have a unit"):
        rating_unit(Annotations.from_dense(np.array([[0, 1]])))


# === Training by settings ===


def test_labels_that_the_method_needs_must_be_there_and_on_the_scale():
    with pytest.raises(DataError, match="method rating-em needs annotations"):
        train(TrainingSettings(method="rating-em", **QUICK), X)
    with pytest.raises(DataError, match=r"needs ratings \[N\]"):
        train(TrainingSettings(method="aggregated", **QUICK), X)
    with pytest.raises(DataError, match="that of task code 3 is inf"):
        train(TrainingSettings(method="aggregated", **QUICK), X, ratings=np.where(np.arange(N) == 3, np.inf, TRUTH))
    with pytest.raises(DataError, match=r"row 0, .* \(task 0, annotator 0\) is outside the scale"):
        train(TrainingSettings(low=0, high=1, **QUICK), X, annotations=ANNOTATIONS)
    with pytest.raises(DataError, match="the settings are of kind regression"):
        train(TrainingSettings(**QUICK), X, annotations=Annotations.from_dense(np.zeros((N, 2), int)))
    assert RATING_METHODS == ("crowdsourced-layer", "rating-em", "aggregated")
