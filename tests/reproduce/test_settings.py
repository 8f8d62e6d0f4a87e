"""Rows of the pages are trained with the settings that they were saved with, whatever the defaults of crowdzoo are."""

import argparse
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from slow_cases import quick

from crowdzoo import CrowdModel, aggregation
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import FeatureClassifier
from crowdzoo.training.methods import AGGREGATED, METHODS, create_crowd_layer, hyperparameters_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# results files, all of them: `test_all_results_have_a_script`
FILES = (
    "calibration", "conal", "crowd_layer", "interval_coverage", "lia_annotators", "models_and_people", "movie_reviews",
    "preferences", "segmentation", "text_forms", "unlabelled", "waum", "waum_variants", "geo_crowd_net",
    "imagenet_features", "recipe", "reproduce_deep", "reproduce_lia", "reproduce_ner",
)  # fmt: skip


@pytest.fixture(scope="module")
def settings(reproduce):
    return reproduce("settings")


@pytest.fixture(scope="module")
def all_rows(reproduce):
    return reproduce("all_rows")


def test_all_results_have_a_script(all_rows):
    assert {*FILES} == {*all_rows.SCRIPTS}


@pytest.mark.parametrize("name", FILES)
def test_a_command_makes_every_saved_row(all_rows, name):
    saved = {(part, row) for part, rows in all_rows.saved(name).items() for row in rows}
    assert saved
    assert saved <= {place for place, _ in all_rows.rows_of(name)}


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
    for (part, row), first in all_rows.rows_of(name):
        if row not in results.get(part, {}):
            continue
        try:
            found = all_rows.settings_of(first)
        except FileNotFoundError as error:
            pytest.skip(f"CROWDZOO_DATA has no {error.filename}")
        assert found == results[part][row]["settings"], (part, row)
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


def test_again_leaves_saved_results_as_they_are(reproduce, tmp_path, capsys):
    save, path = reproduce("rows").save, tmp_path / "results.json"
    plain, again, replace = (argparse.Namespace(again=first, save=second) for first, second in ((0, 0), (1, 0), (1, 1)))
    old, new = ({"runs": [{"seed": 0, "last": value}], "settings": ["Adam()"]} for value in (0.5, 0.75))
    save(plain, path, {}, ("part", "row"), old)
    before = path.read_bytes()
    assert json.loads(before) == {"part": {"row": old}}
    save(again, path, json.loads(before), ("part", "row"), new)
    assert path.read_bytes() == before
    assert "runs 0 last: 0.5000 before, 0.7500 now" in capsys.readouterr().out
    save(again, path, json.loads(before), ("part", "row"), old)
    assert "as saved" in capsys.readouterr().out
    save(replace, path, json.loads(before), ("part", "row"), new)
    assert json.loads(path.read_bytes()) == {"part": {"row": new}}


def test_every_script_has_again_from_there():
    scripts = {path.name: path.read_text(encoding="utf-8") for path in BENCHMARKS.rglob("*.py")}
    assert [name for name, text in scripts.items() if '"--again"' in text] == ["rows.py"]
    # and no script writes rows past it
    writers = {name for name, text in scripts.items() if re.search(r"from rows import .*\brun\b", text)}
    assert len(writers) > 20
    assert not [name for name in writers if "RESULTS.write_text" in scripts[name]]


@pytest.mark.parametrize("alone", quick(False, slow=[True]))
def test_a_row_is_computed_once_in_the_process_or_in_one_of_its_own(tmp_path, monkeypatch, capsys, alone):
    """A script of two rows, one of which has no runs."""
    script, results = tmp_path / "script.py", tmp_path / "results.json"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(BENCHMARKS / 'reproduce')!r})\nfrom rows import run\n"
        "def runs():\n    yield {'seed': '0', 'worker': float('--worker' in sys.argv)}\n"
        f"run(Path({str(results)!r}), {{'part': {{'row': runs, 'none': lambda: iter(())}}}}, '', alone={alone})\n"
    )
    monkeypatch.setattr("sys.argv", [str(script)])
    for is_new in (True, False):
        runpy.run_path(str(script))
        printed = capsys.readouterr().out
        assert re.search(r"^row +1 ", printed, re.M)
        assert ("part: row, " in printed) == is_new
    saved = json.loads(results.read_text())
    assert {*saved["part"]} == {"row"}
    assert saved["part"]["row"]["runs"] == [{"seed": "0", "worker": float(alone)}]
    assert {*saved["part"]["row"]} == {"runs", "cpu_seconds", "stack", "settings"}
