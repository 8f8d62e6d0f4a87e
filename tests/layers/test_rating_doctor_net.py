"""RatingDoctorNet: heads, their weightings, and the second phase, against NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers.rating_doctor_net import MeanRatingError, RatingDoctorNet
from crowdzoo.models import CrowdModel, FeatureClassifier, rating_unit
from crowdzoo.testing import LAYER_CHECKS, LayerCase

B, D, R = 4, 3, 5
NAN = np.nan
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1]], dtype="int32")


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
def test_the_battery_passes(check, form):
    arguments = {"num_annotators": R, "weighting": "learned", "weight_epochs": 3, "center": 2.0, "unit": 1.5}
    hidden = np.random.default_rng(0).normal(size=(B, D)).astype("float32")
    ids = {"annotators": IDS} if form == "sparse" else {}
    check(LayerCase(RatingDoctorNet, arguments, hidden, (B, 3 if ids else R), ids))


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [("uniform", [1 / 3, 1 / 3, 1 / 3, 0]), ("ratings", [0.2, 0.3, 0.5, 0]), ("learned", None)],
)
def test_the_truth_is_the_weighted_mean_of_the_heads_that_were_trained(weighting, expected):
    layer = RatingDoctorNet(4, weighting, center=3.0, unit=2.0)
    hidden = np.random.default_rng(0).normal(size=(B, D)).astype("float32")
    layer(hidden)
    layer.kernel.assign(np.random.default_rng(1).normal(size=(4, D)))
    layer.bias.assign([0.5, -0.5, 0.1, 9.0])
    layer.seen.assign([2.0, 3.0, 5.0, 0.0])
    if weighting == "learned":
        layer.log_weight.assign([0.0, np.log(3), 0.0, 5.0])
        expected = [0.2, 0.6, 0.2, 0]
    heads = 3 + 2 * (hidden @ ops.convert_to_numpy(layer.kernel).T + ops.convert_to_numpy(layer.bias))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(hidden)), heads, rtol=1e-4)
    np.testing.assert_allclose(layer.annotator_weights(), expected, atol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.truth(hidden)), (heads @ expected)[:, None], rtol=1e-4)


def test_the_loss_of_the_second_phase_compares_means_of_those_who_rated():
    ratings = np.array([[4.0, NAN, 2.0], [NAN, NAN, NAN]], "float32")
    answers = np.array([[3.0, 100.0, 1.0], [5.0, 5.0, 5.0]], "float32")
    logs = np.array([[np.log(3), 7.0, 0.0], [0.0, 0.0, 0.0]], "float32")
    found = MeanRatingError(unit=2.0, reduction="none")(ratings, np.concatenate([answers, logs], axis=1))
    # (4 + 2) / 2 against (3 * 3 + 1) / 4, in units of 2
    np.testing.assert_allclose(ops.convert_to_numpy(found), [((3 - 2.5) / 2) ** 2, 0], rtol=1e-5)


@pytest.mark.slow
def test_training_learns_weights_in_a_phase_of_their_own_and_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, D)).astype("float32")
    truth = 3 + x[:, 0]
    dense = truth[:, None] + rng.normal(size=(200, R)) * [0.1, 0.1, 0.1, 3.0, 0.1]
    dense[:, 4] = NAN  # never rated
    dense[:, 3] = 2 * dense[:, 3]
    annotations = Annotations.from_dense(dense, kind="regression")
    center, unit = rating_unit(annotations)
    keras.utils.set_random_seed(0)
    base = FeatureClassifier(D, None, hidden=(8,), dropout=0.0)
    layer = RatingDoctorNet(R, "learned", weight_epochs=3, center=center, unit=unit)
    model = CrowdModel(base, layer)
    model.compile(keras.optimizers.Adam(0.02))
    before = len(model.trainable_weights)
    history = model.fit(x, annotations, epochs=4, batch_size=50, verbose=0)
    assert history.epoch == list(range(7))
    assert len(model.trainable_weights) == before
    assert layer.annotator_weights()[4] == 0
    assert layer.annotator_weights()[3] != pytest.approx(0.25, abs=1e-4)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    assert model.predict(x, verbose=0).shape == (200, 1)
