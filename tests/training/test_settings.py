"""Every setting of the deep methods and their training has a range, and what lies outside names it."""

import contextlib
import inspect

import keras
import numpy as np
import pytest

from crowdzoo import layers, models
from crowdzoo.errors import ConfigError
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.optimizers import LazyAdam
from crowdzoo.training.methods import _FROM_DATA, _KERAS, AGGREGATED, create_crowd_layer, crowd_layer_class
from crowdzoo.training.settings import TaggerSettings, TextSettings

SENSELESS = [-1, float("nan"), float("inf"), 10**30, 10**400, "XX", [], {}, object(), np.array([1, 2]), 1e300]
# What no setting takes; some take some of the others
NOWHERE = ["XX", 10**400, object(), np.array([1, 2]), float("nan")]

LAYERS = {
    layer.__name__: (layer, sizes)
    for methods, task, sizes in (
        (models.METHODS, "classification", {"num_annotators": 2, "num_classes": 3}),
        (models.RATING_METHODS, "regression", {"num_annotators": 2, "kind": "regression", "connection": "B"}),
    )
    for method in methods
    if method != AGGREGATED
    for layer in [crowd_layer_class(method, task)]
}
BASES = {
    "FeatureClassifier": (models.FeatureClassifier, {"num_features": 2, "num_classes": 2}),
    "FeatureRegressor": (models.FeatureRegressor, {"num_features": 2}),
    "TextRegressor": (models.TextRegressor, {"num_words": 9}),
    "SequenceTagger": (SequenceTagger, {"num_words": 9, "num_classes": 2}),
    "LazyAdam": (LazyAdam, {}),
}
RECIPES = {"training": (models.TrainingSettings, TextSettings, TaggerSettings)}
TABLES = ("annotator_features", "mean", "variance", "allowed", "method", "arguments", "low", "high", "form", "name")


def with_setting(make, given, name, value):
    parameters = inspect.signature(make.__init__).parameters
    return make(**{key: known for key, known in given.items() if key in parameters}, **{name: value})


def settings_of(make, given):
    left_out = {*_FROM_DATA, *_KERAS, *TABLES} - {"form"}
    return [name for name in inspect.signature(make.__init__).parameters if name not in {*left_out, *given}]


@pytest.mark.parametrize("kind", [*LAYERS, *BASES])
def test_nonsense_in_any_setting_is_refused_and_names_class_setting_range_and_value(kind):
    make, given = {**LAYERS, **BASES}[kind]
    for name in settings_of(make, given):
        for value in NOWHERE:
            with pytest.raises(ConfigError) as caught:
                with_setting(make, given, name, value)
            message = str(caught.value)
            assert kind in message, (name, value)
            assert name in message, (name, value)
            assert len(message) < 400
        for value in SENSELESS:  # taken, or refused with a sentence
            with contextlib.suppress(ConfigError):
                with_setting(make, given, name, value)


@pytest.mark.parametrize("make", RECIPES["training"])
def test_nonsense_in_any_setting_of_a_training_is_refused(make):
    names = [name for name in inspect.signature(make).parameters if name not in TABLES]
    for name in names:
        for value in [*NOWHERE, *SENSELESS, 10**12, True if name not in ("crf",) else "yes"]:
            if isinstance(value, bool) and name in (
                "batch_normalization",
                "bidirectional",
                "characters",
                "jit_compile",
            ):
                continue
            if isinstance(value, list) and name == "hidden":
                continue  # no hidden layer
            with pytest.raises(ConfigError, match=f"{name}|kind"):
                make(**{name: value})
    for arguments in ([1], "prior", {"prior": "XX"}, {"nothing": 1}):
        with pytest.raises(ConfigError):
            make(arguments=arguments)
    for method in ("", 3, [], "deep em"):  # None is the default of the kind of label
        with pytest.raises(ConfigError, match="method"):
            make(method=method)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.DeepEM(2, prior=float("nan")), r"DeepEM: prior must be a number from .*, got nan"),
        (lambda: layers.CrossFittedEM(2, folds=1_000_000), r"CrossFittedEM: folds must be an integer from 2 to 100, "),
        (lambda: layers.DoctorNet(2, num_classes=2.5), "DoctorNet: num_classes must be an integer from 2 .*, got 2.5"),
        (lambda: layers.CrowdsourcedLayer(2, connection="XX"), "unknown connection 'XX': choose one of MW, VW"),
        (lambda: layers.RatingEM(2, start_rounds=10**9), "RatingEM: start_rounds must be an integer from 1 to 10,000"),
        (lambda: layers.WAUM(2, margin_epochs=10**9), "WAUM: margin_epochs must be an integer from 1 to 10,000"),
        (
            lambda: models.TrainingSettings(learning_rate=float("inf")),
            "training: learning_rate must be a number above 0 and at most 1000",
        ),
        (lambda: models.TrainingSettings(dropout=1.5), "training: dropout must be a number from 0 to below 1, got 1.5"),
        (lambda: models.TrainingSettings(batch_size=0), "training: batch_size must be an integer .*, got 0"),
        (lambda: models.TrainingSettings(hidden=[0]), "training: hidden must be an integer from 1 to 65,536, got 0"),
        (lambda: models.TrainingSettings(seed=2**32), "training: seed must be an integer from 0 to 4,294,967,295"),
        (lambda: LazyAdam(learning_rate=-1), "LazyAdam: learning_rate must be a number above 0 and at most 1000"),
    ],
)
def test_the_range_is_in_the_message(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_majority_is_a_setting_for_classes_and_not_for_ratings():
    settings = {"majority_epochs": 2}
    assert create_crowd_layer("crowdsourced-layer", 2, 3, settings).majority_epochs == 2
    with pytest.raises(ConfigError, match="unknown setting of crowdsourced-layer 'majority_epochs'"):
        create_crowd_layer("crowdsourced-layer", 2, 0, settings, kind="regression")


def test_a_schedule_is_a_learning_rate_and_many_epochs_are_legal():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    assert LazyAdam(schedule).get_config()["learning_rate"]["class_name"] == "ExponentialDecay"
    assert models.TrainingSettings(epochs=10**9).epochs == 10**9
