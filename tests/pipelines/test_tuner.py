"""The section tuner: a search for settings before the training."""

import json

import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.run_result import _tuned
from crowdzoo.training.tuned_values import tuned_values

SEARCH = {
    "training": {"learning_rate": {"min": 0.001, "max": 0.1, "log": True}},
    "model": {"hidden": [[8], [16, 8]], "dropout": [0.0, 0.2]},
    "method": {"connection": ["MW", "VW"]},
}


@pytest.mark.slow
def test_a_run_with_a_tuner_trains_with_the_best_trial_and_says_so(inputs):
    more = {"tuner": {"search": SEARCH, "trials": 2}, "training.epochs": 4}
    more |= {"method.name": "crowdsourced-layer", "method.connection": "MW"}
    config = load_config(inputs / "tiny.yaml", more)
    result = run(config, quiet=True)
    assert [*result.seconds][4:7] == ["CrowdAggregator", "Tuner", "Trainer"]
    best, *others = result.trials
    assert len(result.trials) == 2
    assert all(best["score"] >= other["score"] for other in others)
    # the first trial has the settings of the file
    (own,) = [trial for trial in result.trials if trial.get("tuner/own")]
    assert own["trial_id"] == "0"
    assert tuned_values({key: own[key] for key in own if key not in ("trial_id", "score")}) == {
        "training.learning_rate": 0.01, "model.hidden": [8], "model.dropout": 0.2, "method.connection": "MW",
        "training.epochs": own["tuner/epochs"],
    }  # fmt: skip
    assert own["tuner/epochs"] in (1, 2, 3, 4)

    found = tuned_values({key: best[key] for key in best if key not in ("trial_id", "score")})
    card = json.loads((result.pushed / "assets.extra" / "model_card.json").read_text())
    assert card["tuned"] == found
    assert card["training"]["learning_rate"] == found["training.learning_rate"]
    assert card["training"]["epochs"] == found["training.epochs"]
    assert card["model"]["hidden"] == found["model.hidden"]
    assert card["method"]["connection"] == found["method.connection"]
    history = json.loads((result.model_run / "history.json").read_text())
    assert len(history["loss"]) == found["training.epochs"]
    assert f"{best['score']:.4f}, the best of 2 trials; the file's own settings {own['score']:.4f}" in result.summary()

    again = run(config, quiet=True)
    assert set(again.cached) == set(again.seconds)
    assert again.trials == result.trials


def test_the_summary_names_the_values_and_the_scores():
    trials = [
        {"trial_id": "1", "score": -0.75, "training.learning_rate": 0.02, "model.hidden": "[8, 4]", "tuner/epochs": 6},
        {"trial_id": "0", "score": -0.875, "training.learning_rate": 0.01, "model.hidden": "[8]", "tuner/own": True},
    ]
    assert _tuned(trials) == [
        "Tuned:       training.learning_rate 0.02, model.hidden [8, 4], training.epochs 6: -0.7500, "
        "the best of 2 trials; the file's own settings -0.8750"
    ]
    assert _tuned(trials[:1])[0].endswith("-0.7500, the best of 1 trials")
    assert _tuned(()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tuner": {"trials": 5}}, "tuner.search: is missing"),
        ({"tuner.search": {}}, "tuner.search: must have a setting to search for"),
        ({"tuner.search.training.learning_rate": 0.1}, "must be a list of two values or more, or a range"),
        ({"tuner.search.training.learning_rate": [0.1]}, "must be a list of two values or more"),
        ({"tuner.search.training.learning_rate": [0.1, 0.1]}, "no value twice"),
        ({"tuner.search.training.learning_rate": {"min": 1, "max": 1}}, "min must be below max, got 1 and 1"),
        ({"tuner.search.training.learning_rate": {"min": 0, "max": 1, "log": True}}, "min must be above 0"),
        ({"tuner.search.training.learning_rate": {"min": 0.1, "max": 1, "steps": 3}}, "unknown key of a range 'steps'"),
        ({"tuner.search.training.learning_rate": {"min": "a", "max": 1}}, "min, max and step must be numbers, got 'a'"),
        ({"tuner.search.training.learning_rate": [0.1, -1]}, "tuner.search.training.learning_rate: learning_rate must"),
        ({"tuner.search.training.epoch": [1, 2]}, "setting of training that can be searched for 'epoch'"),
        ({"tuner.search.training.patience": [1, 2]}, "setting of training that can be searched for 'patience'"),
        ({"tuner.search.model.units": [1, 2]}, "setting of model that can be searched for 'units'"),
        ({"tuner.search.model.hidden": [[8], ["x"]]}, "tuner.search.model.hidden: hidden"),
        ({"tuner.search.method.connection": ["MW", "WM"]}, "tuner.search.method.connection: "),
        ({"tuner.search.method.conection": ["MW", "VW"]}, "conection"),
        ({"tuner.search.output.root": ["a", "b"]}, "tuner.search: unknown key 'output'"),
        ({"tuner.trials": 1}, "tuner.trials: must be an integer from 2"),
        ({"tuner.algorithm": "grid"}, "tuner.algorithm: "),
        ({"method.name": "auto"}, "tuner: method auto compares methods itself. Name a method"),
        ({"training.patience": 3}, "tuner: chooses the number of epochs itself. Remove training.patience"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_for_is_said_before_a_run(inputs, more, message):
    usual = {} if "tuner" in more or more.get("tuner.search") == {} else {"tuner.search.training.epochs": [4, 8]}
    with pytest.raises(ConfigError) as caught:
        load_config(inputs / "tiny.yaml", {**usual, **more})
    assert message in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), [("regression", "regression"), ("sequence", "sequence")])
def test_settings_are_searched_for_with_classes_only(inputs, kind, name):
    with pytest.raises(ConfigError, match=f"tuner: compares settings for classes, and these are labels of kind {name}"):
        load_config(inputs / "tiny.yaml", {
            "task": kind, "aggregation": {}, "training": {}, "model": {}, "tuner.search.training.epochs": [1, 2],
            **({"data": {"annotations": str(inputs / "answers.csv")}} if kind == "sequence" else {}),
        })  # fmt: skip
