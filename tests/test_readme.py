"""What the README says is run; so are parts of docs/ that it once had."""

import json
import re
from pathlib import Path

import pytest

from crowdzoo.commands.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
PIPELINE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")


def test_the_python_examples_run_one_after_the_other(tmp_path, here, capsys):
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert float(re.search(r"accuracy against the truth: ([\d.]+)", printed).group(1)) > 0.75
    assert float(printed.splitlines()[-1]) == pytest.approx(0.795, abs=5e-4)
    assert "0.795; majority vote has 0.766" in README


def test_the_configuration_of_the_page_on_the_pipeline_is_accepted(tmp_path):
    pytest.importorskip("tfx")
    from crowdzoo import datasets
    from crowdzoo.pipelines.config.load import load_config

    text, *_ = re.findall(r"```yaml\n(.*?)```", PIPELINE, flags=re.S)
    (tmp_path / "pets.yaml").write_text(text)
    datasets.write_files(datasets.load("labelme"), tmp_path / "data")
    config = load_config(tmp_path / "pets.yaml")
    assert config.output.serving == tmp_path / "served" / "pets"


def test_the_commands_and_files_named_are_there():
    for command in re.findall(r"^    crowdzoo ([a-z]+)", README, flags=re.M):
        assert command in COMMANDS
    targets = re.findall(r"^    make ([a-z-]+)", README, flags=re.M)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= set(targets)
    assert all(f"\n{target}:" in makefile for target in targets)
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_number_of_aggregation_methods_is_that_of_the_table():
    from crowdzoo.aggregation import create
    from crowdzoo.aggregation.named import METHODS
    from crowdzoo.large.forms import runs_in_parts

    num_on_beam = sum(runs_in_parts(create(name)) for name in METHODS)
    words = {4: "four", 10: "Ten"}
    assert f"{words[len(METHODS)]} methods, from majority vote" in README
    assert f"{words[num_on_beam]} also run on Apache Beam" in README


def test_the_accuracies_of_the_demo_are_those_of_its_table_and_of_the_saved_results():
    line = re.search(r"on all 1,000, accuracy is(.*?)with\s+the true labels", README, flags=re.S)[1]
    column = [
        re.search(rf"^\| {row}.*?\|.*?\| \**([\d.]+)", DEMO, flags=re.M)[1]
        for row in ("`CrowdsourcedLayer`, MW", "majority vote", "the true labels")
    ]
    results = json.loads((ROOT / "benchmarks/results/labelme_accuracy.json").read_text())["figures"]
    saved = {row["method"]: row for row in results["fifths in turns, 3 seeds"]}
    crowd = saved["crowdsourced-layer scale=1.0"]
    scores = [f"{row['score']:.3f}" for row in (crowd, saved["majority-vote"], saved["gold"])]
    assert column == scores
    gain = [f"{crowd[name]:.3f}" for name in ("against_baseline", "against_baseline_low", "against_baseline_high")]
    assert re.findall(r"0\.\d+", line) == [*scores[:2], *gain, scores[2]]
