"""A network of scores under both sides of a pair: `RewardModel`, and its training on preferences."""

import keras
import numpy as np
import pytest

from crowdzoo.aggregation import create
from crowdzoo.aggregation.engine.comparisons import answer_probabilities
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import PairAnnotators
from crowdzoo.models import CrowdModel, FeatureRegressor, RewardModel, TrainingSettings, train
from crowdzoo.tables import Annotations

N, TRAINED, R = 120, 90, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype("float32")
TRUTH = X @ np.array([1.5, -1.0, 0.0], "float32")
NAMES = np.array([f"t{code:03}" for code in range(N)], object)


def simulated(said=None):
    """Preferences of the first tasks by six annotators who know, one who guesses, and one who prefers the left."""
    rng = np.random.default_rng(1)
    left, shift, who = rng.integers(0, TRAINED, 1200), rng.integers(1, TRAINED, 1200), rng.integers(0, R, 1200)
    left, right, who = np.unique(np.stack([left, (left + shift) % TRAINED, who]), axis=1)
    slopes, biases = np.array([1.5] * 6 + [0, 1.5]), np.array([0.0] * 7 + [4])
    lead = slopes[who] * (TRUTH[left] - TRUTH[right]).astype(float) + biases[who]
    drawn = rng.random(len(who))[:, None] > answer_probabilities(lead, -0.5, "davidson").cumsum(axis=1)
    labels = np.array(["left", "right", "equal"], object)[drawn.sum(axis=1) if said is None else said(len(who))]
    return Annotations.from_arrays(NAMES[left], who, labels, right=NAMES[right], kind="preference")


CROWD = simulated()


def settings(method="pair-annotators", **changes):
    given = {"hidden": (), "epochs": 12, "batch_size": 64, "learning_rate": 0.1} | changes
    return TrainingSettings(kind="preference", method=method, **given)


def distribution(method):
    if method != "aggregated":
        return None
    return create("annotator-bradley-terry", kind="preference").fit(CROWD).probabilities(*CROWD.pairs()[0].T)


def test_probabilities_are_davidsons_of_the_two_scores():
    keras.utils.set_random_seed(0)
    model = RewardModel(FeatureRegressor(3, hidden=(4,)))
    found = model.predict({"left": X[:5], "right": X[5:10]}, verbose=0)
    each = model.scorer.predict(X[:10], verbose=0)[:, 0].astype(float)
    np.testing.assert_allclose(found, answer_probabilities(each[:5] - each[5:], 0.0, "davidson"), rtol=1e-5)


def test_several_inputs_are_named_by_side_and_scored_in_float32_under_mixed_precision():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        inputs = {"a": keras.Input((2,), name="a"), "n": keras.Input((), dtype="int32", name="n")}
        joined = keras.layers.Concatenate()([inputs["a"], keras.layers.Embedding(3, 2)(inputs["n"])])
        model = RewardModel(keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(joined)))
    finally:
        keras.config.set_dtype_policy(policy)
    assert sorted(tensor.name for tensor in model.inputs) == ["left_a", "left_n", "right_a", "right_n"]
    side = {"a": X[:4, :2], "n": np.array([0, 1, 2, 0], "int32")}
    found = model.predict({"left": side, "right": side}, verbose=0)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, np.full((4, 3), 1 / 3), rtol=1e-6)
    again = RewardModel.from_config(model.get_config())
    assert sorted(tensor.name for tensor in again.inputs) == sorted(tensor.name for tensor in model.inputs)
    assert CrowdModel(model, PairAnnotators(2, 5)).built


def test_what_is_no_network_of_scores_is_refused():
    class Own(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(ConfigError, match="the scorer Own does not define its input"):
        RewardModel(Own())
    two = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ConfigError, match=r"the shape \[batch, 1\], got \(None, 2\)"):
        RewardModel(two)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match=r"90 of the 90 labelled tasks have .* 't000'"):
        train(settings(), X, annotations=CROWD, tasks=np.arange(N))
    short = CROWD.select_rows(np.arange(3))
    missing = NAMES[short.right_ids[0]]
    with pytest.raises(DataError, match=f"labelled tasks have no row in x, such as '{missing}'"):
        train(settings(), X[:-1], annotations=short, tasks=np.setdiff1d(NAMES, [missing]))
    with pytest.raises(DataError, match="method aggregated needs annotations"):
        train(settings("aggregated"), X, label_distribution=distribution("aggregated"))
    with pytest.raises(DataError, match=r"a row for each of the .* pairs"):
        train(settings("aggregated"), X, annotations=CROWD, tasks=NAMES, label_distribution=np.ones((5, 3)) / 3)
    with pytest.raises(ConfigError, match=r"'rating-em' is not for kind preference; .* pair-annotators"):
        settings("rating-em")
    with pytest.raises(ConfigError, match="unknown setting of pair-annotators 'slope'"):
        settings(arguments={"slope": 1})
