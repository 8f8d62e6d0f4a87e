"""Rows of the pages are trained with the settings that they were saved with, whatever the defaults of crowdzoo are."""

import argparse
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import CrowdModel, aggregation
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import FeatureClassifier
from crowdzoo.training.methods import AGGREGATED, METHODS, create_crowd_layer, hyperparameters_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# results files, all of them: `test_all_results_have_a_script`
FILES = (
    "calibration", "conal", "crowd_layer", "interval_coverage", "lia_annotators", "lost_classes", "models_and_people",
    "movie_reviews", "next_annotations", "preferences", "segmentation", "text_forms", "unlabelled", "waum",
    "waum_variants", "geo_crowd_net", "imagenet_features", "recipe", "reproduce_deep", "reproduce_lia",
    "reproduce_ner",
)  # fmt: skip

NO_ROWS = ("about", "described", "network", "settings")
# saved rows that no page shows
WITHOUT = {
    "geo_crowd_net": (
        "no anchors, 32000 labels, W, strength 0.003, floor 0.01",
        "no experts, 32000 labels, F, strength 0.003, floor 0.01, start 0.9",
    ),
}


@pytest.fixture(scope="module")
def settings(reproduce):
    return reproduce("settings")


@pytest.fixture(scope="module")
def all_rows(reproduce):
    return reproduce("all_rows")


def test_all_results_have_a_script(all_rows):
    assert {*FILES} == {*all_rows.NAMES}


def saved_rows(results, place=()):
    """Places of the rows of a results file."""
    if isinstance(results, list) or {"runs", "draws"} & results.keys():
        return [place]
    parts = {key: part for key, part in results.items() if isinstance(part, (dict, list)) and key not in NO_ROWS}
    return [row for key, part in parts.items() for row in saved_rows(part, (*place, key))]


@pytest.mark.parametrize("name", FILES)
def test_a_command_makes_every_saved_row(all_rows, name):
    without = set(saved_rows(all_rows.saved(name))) - {place for place, _ in all_rows.rows_of(name)}
    assert {place[-1] for place in without} <= {*WITHOUT.get(name, ())}


@pytest.mark.parametrize("method", [method for method in METHODS if method != AGGREGATED])
def test_rows_fix_every_argument_of_a_method(settings, method):
    assert {*settings.LAYERS[method]} == {*hyperparameters_of(method)}


def test_rows_fix_every_setting_of_an_aggregation(settings):
    for name, fixed in settings.AGGREGATORS.items():
        assert {*fixed} == {*aggregation.create(name).get_params()}, name


def test_layers_and_aggregations_are_those_of_the_saved_rows(reproduce, settings):
    """Without a training; `test_a_row_is_trained_with_its_saved_settings` has the rest."""
    deep, checked = reproduce("deep_methods"), 0
    saved = json.loads(deep.RESULTS.read_text(encoding="utf-8"))
    for data in saved:
        for name, row in deep.rows_of(data).items():
            if name not in saved[data]:
                continue
            lines = saved[data][name]["settings"]
            checked += 1
            if row.method == AGGREGATED:
                assert row.labels == "gold" or settings.words(settings.aggregator(row.labels)) in lines, (data, name)
            else:
                assert settings.words(create_crowd_layer(row.method, 2, 8, row.arguments)) in lines, (data, name)
    assert checked > 250


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # which the scripts show, such as of aggregations that have not converged
@pytest.mark.parametrize("name", FILES)
def test_a_row_is_trained_with_its_saved_settings(all_rows, name):
    if name not in ("conal", "crowd_layer", "geo_crowd_net", "interval_coverage", "segmentation"):
        pytest.importorskip("sklearn")
    results, checked = all_rows.saved(name), 0
    for place, first in all_rows.rows_of(name):
        if all_rows.at(results, place) is None:
            continue
        try:
            found = all_rows.settings_of(first)
        except FileNotFoundError as error:
            pytest.skip(f"CROWDZOO_DATA has no {error.filename}")
        assert found == all_rows.holder(name, results, place)["settings"], place
        checked += 1
    assert checked


def test_a_default_that_differs_from_the_saved_one_is_found(reproduce, settings):
    deep = reproduce("deep_methods")
    saved = json.loads(deep.RESULTS.read_text(encoding="utf-8"))["labelme"]["CL MW"]
    data = deep.DATA["labelme"](0)
    fixed = settings.settings_of(lambda: deep.trained(deep.ROWS["CL MW"], data, 0))
    assert fixed == saved["settings"]
    default = settings.settings_of(lambda: deep.trained(deep.DEFAULTS["crowdsourced-layer"], data, 0))
    [[one], [other]] = [
        [line for line in lines if line not in both] for lines, both in ((fixed, default), (default, fixed))
    ]
    assert "scale=1.0" in one
    assert other.startswith("CrowdsourcedLayer(")
    assert "scale" not in other


def test_what_is_recorded_are_the_arguments_of_a_training_which_takes_place_or_not(settings):
    x, labels = np.eye(6, dtype="float32"), np.arange(12).reshape(6, 2) % 3

    def train():
        model = CrowdModel(FeatureClassifier(6, 3, hidden=(4,), dropout=0.25), CrowdsourcedLayer(2, scale=3.0))
        model.fit(x, labels, epochs=2, batch_size=3, verbose=0)
        return model

    fit = CrowdModel.fit
    with settings.recorded() as lines:
        model = train()
    assert model.optimizer.iterations == 4
    assert lines[0].endswith("(batch_normalization=false, dropout=0.25, hidden=[4])")
    assert 'connection="MW"' in lines[1]
    assert "scale=3.0" in lines[1]
    assert "learning_rate=0.001" in lines[2]
    assert lines[3] == "fit(epochs=2, batch_size=3, shuffle=True)"
    assert settings.settings_of(train) == lines
    assert CrowdModel.fit is fit


def test_cards_have_the_figures_of_todays_defaults(reproduce, settings):
    deep = reproduce("deep_methods")
    saved = json.loads(deep.RESULTS.read_text(encoding="utf-8"))["labelme-defaults"]
    assert {*saved} == {*deep.DEFAULTS}
    for name, row in deep.DEFAULTS.items():
        if row.method != AGGREGATED:
            line = settings.words(create_crowd_layer(row.method, 2, 8, row.arguments))
            assert line in saved[name]["settings"], f"{name}: see benchmarks/method_figures.py"
    cards = runpy.run_path(str(BENCHMARKS / "method_figures.py"))
    shipped = json.loads(cards["SAVED"].read_text(encoding="utf-8"))
    assert cards["deep"]() == shipped["deep"]["classification"]
    for method in settings.LAYERS:
        first = shipped["deep"]["classification"][method][0]
        runs = [run["last"] for run in saved[method]["runs"]]
        assert (first["variant"], first["accuracy"]) == ("", round(sum(runs) / len(runs), 4))


# === --again ===


def options(reproduce, *words):
    parser = argparse.ArgumentParser()
    reproduce("rows").add_again(parser)
    return parser.parse_args(words)


def test_again_leaves_saved_results_as_they_are(reproduce, tmp_path, capsys):
    save, path = reproduce("rows").save, tmp_path / "results.json"
    old, new = ({"runs": [{"seed": 0, "last": value}], "settings": ["Adam()"]} for value in (0.5, 0.75))
    save(options(reproduce), path, {}, ("part", "row"), old)
    before = path.read_bytes()
    assert json.loads(before) == {"part": {"row": old}}
    save(options(reproduce, "--again"), path, json.loads(before), ("part", "row"), new)
    assert path.read_bytes() == before
    assert "runs 0 last: 0.5000 before, 0.7500 now" in capsys.readouterr().out
    save(options(reproduce, "--again"), path, json.loads(before), ("part", "row"), old)
    assert "as saved" in capsys.readouterr().out
    save(options(reproduce, "--again", "--save"), path, json.loads(before), ("part", "row"), new)
    assert json.loads(path.read_bytes()) == {"part": {"row": new}}


def test_every_script_has_again_from_there(reproduce):
    scripts = {path.name: path.read_text(encoding="utf-8") for path in BENCHMARKS.rglob("*.py")}
    assert [name for name, text in scripts.items() if '"--again"' in text] == ["rows.py"]
    assert sum("add_again(parser)" in text for text in scripts.values()) == 5
    # and no script writes rows past it
    writers = {name for name, text in scripts.items() if re.search(r"add_again|Parts, run", text)}
    assert not [name for name in writers - {"rows.py"} if "write_text" in scripts[name]]
