"""Method auto in a configuration: in the aggregation and in the training."""

import json

import pyarrow.parquet
import pytest

from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config import load_config
from crowdzoo.pipelines.local import run
from crowdzoo.pipelines.run_result import RunResult

AUTO = {
    "method": {"name": "auto", "candidates": ["aggregated", "crowdsourced-layer"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("instances", ["features", "text", "columns"])
def test_a_run_says_what_auto_has_chosen_and_keeps_it(inputs, instances):
    table = pyarrow.parquet.read_table(inputs / "instances.parquet")
    if instances != "features":
        gold = table["gold"].to_pylist()
        columns = {"text": [f"a photo of a {name}" for name in gold]}
        if instances == "columns":
            columns = {"the age": [None, *map(float, range(1, 60))], "town": [name[:2] for name in gold]}
        for name, values in columns.items():
            table = table.append_column(name, [values])
        pyarrow.parquet.write_table(table.drop(["features"]), inputs / "instances.parquet")
    hidden = {"features": {"hidden": [8]}, "text": {"form": "bag-of-words"}, "columns": {"hidden": [8]}}
    config = load_config(
        inputs / "tiny.yaml",
        {**AUTO, "model": hidden[instances], "output.root": str(inputs / "out"), "training.epochs": 4},
    )
    result = run(config, quiet=True)
    choice = json.loads((result.model_run / "choice.json").read_text())
    card = json.loads((result.pushed / "assets.extra" / "model_card.json").read_text())
    assert card["method"] == {**AUTO["method"], **choice}
    summary = result.summary()
    assert f"Method:      auto: {choice['chosen']['name']}, {choice['compared'][0]['epochs']} epochs; level" in summary


def test_the_summary_names_the_method_and_how_many_are_level(tmp_path):
    row = {"method": "deep-em", "epochs": 30, "score": -1.0}
    behind = [(0.0, 0.0), (0.1, 0.06), (0.1, 0.05)]
    compared = [{**row, "behind": value, "error": error} for value, error in behind]
    (tmp_path / "choice.json").write_text(json.dumps({"chosen": {"name": "deep-em"}, "compared": compared}))
    evaluation = {"metric": "accuracy", "truth": "gold", "candidate": {"accuracy": 0.5, "tasks": 4}, "baseline": None}
    found = RunResult(
        pushed=None, reason="it is bad", blessed=False, evaluation=evaluation, seconds={}, cached=(), total_seconds=1.0,
        anomalies=(), model=tmp_path, model_run=tmp_path, report=tmp_path, page=None, annotations=tmp_path,
        serving=tmp_path, metadata=tmp_path, log=tmp_path,
    )  # fmt: skip
    lines = found.summary().splitlines()
    assert "Method:      auto: deep-em, 30 epochs; level with it: 1 of 2 others" in lines
    assert "auto" not in "".join(line for line in lines if not line.startswith("Method"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("method.candidates", ["deep-me"], "method: unknown method 'deep-me'"),
        ("method.candidates", "deep-em", "method: candidates: must be a list of methods, such as"),
        ("method.connection", "VW", "method: connection: auto has one setting, candidates"),
        ("task", "regression", "compares methods for classes, and these are labels of kind regression"),
    ],
)
def test_what_auto_cannot_do_is_said_before_a_run(inputs, key, value, message):
    more = {"aggregation": {}, "training": {}, "model": {}} if key == "task" else {}
    with pytest.raises(ConfigError) as caught:
        load_config(inputs / "tiny.yaml", {"method.name": "auto", **more, key: value})
    assert message in str(caught.value)
