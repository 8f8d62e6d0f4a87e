"""Commands of all pages are known; code of data.md, migration.md, judges.md and of the notebooks runs."""

import importlib
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, aggregation, layers, losses, quality
from crowdzoo.commands.main import _parser
from crowdzoo.datasets import load_labelme

DOCS = Path(__file__).parents[2] / "docs"
MIGRATION = (DOCS / "migration.md").read_text(encoding="utf-8")


def commands(page):
    """Command lines of a page, without comments; the prompt of an example counts as none."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^    (?:\$ )?(crowdzoo [a-z]+ .*)$", text, flags=re.M)
    for block in re.findall(r"```(?:sh|bash)\n(.*?)```", text, flags=re.S):
        found += re.findall(r"^(crowdzoo [a-z]+ .*)$", block, flags=re.M)
    return [shlex.split(line, comments=True)[1:] for line in found]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_command_of_a_page_has_known_options(page):
    for words in commands(page):
        _parser().parse_args([word for word in words if word not in ("...", "…")])


def test_commands_are_found_in_pages():
    assert sum(len(commands(page)) for page in DOCS.glob("*.md")) > 80


def run_page(name):
    """Names after the page's code."""
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), flags=re.S):
        exec(compile(block, name, "exec"), names)
    return names


def run_notebook(name):
    names = {}
    for cell in json.loads((DOCS / "notebooks" / name).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)
    return names


def test_the_code_of_the_page_about_data_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("data.md")
    assert names["annotations"].task_ids.tolist() == [0, 0, 1]
    assert names["labels"].shape == (2, 2)


@pytest.mark.slow
def test_the_code_of_the_migration_page_runs():
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    names = run_page("migration.md")
    assert names["predictions"].shape == (200, 3)
    theirs = crowdkit.DawidSkene(n_iter=100, tol=0).fit_predict(names["df"])
    assert (names["labels"] == theirs).mean() > 0.98
    assert names["labels"].name == theirs.name
    assert names["labels"].index.name == theirs.index.name
    assert names["scores"].shape == (2, 4, 3)
    assert np.asarray(names["best"]).shape == (2, 4)
    assert np.asarray(names["marginals"]).sum(axis=-1) == pytest.approx(1)
    # transitions are zeros on both sides
    assert np.asarray(names["loss"]) == pytest.approx(-np.asarray(names["likelihood"]))


def test_the_names_of_the_migration_page_are_there():
    crowd_kit = MIGRATION[MIGRATION.index("## crowd-kit") : MIGRATION.index("## cleanlab")]
    row = re.search(r"^\| (`MajorityVote`.*) \| the same names", crowd_kit, flags=re.M)[1]
    kit = pytest.importorskip("crowdkit.aggregation")
    for name in re.findall(r"`(\w+)`", row):
        assert hasattr(aggregation, name)
        assert hasattr(kit, name)
    for name in ("MaskedCrowdCrossentropy", "MaskedCrowdMeanSquaredError"):
        assert hasattr(losses, name)
        assert f"`{name}()`" in MIGRATION
    assert hasattr(importlib.import_module("crowdkit.metrics.data"), "alpha_krippendorff")
    for connection in ("MW", "VW"):
        layers.CrowdsourcedLayer(3, connection=connection)
    layers.CrowdsourcedLayer(3, kind="regression", connection="B")
    with pytest.raises(ConfigError, match="connection"):
        layers.CrowdsourcedLayer(3, kind="regression", connection="MW")


def test_the_code_of_the_page_about_judges_runs(capsys):
    names = run_page("judges.md")
    assert f"both.correlation                                           # {names['both'].correlation}: " in (
        DOCS / "judges.md"
    ).read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    assert "judge-a True" in printed
    votes = quality.effective_votes(names["annotations"])
    assert 1 < votes < 5
    apart = Annotations.from_dense(np.stack([names["said"][name] for name in ("ann", "bob", "cleo")], axis=1))
    assert votes / 5 < quality.effective_votes(apart) / 3  # two judges who err alike are worth less
    biases = dict(zip(names["pairs"].annotators, names["found"].position_biases(), strict=True))
    assert max(biases, key=biases.get) == "judge-c"


@pytest.mark.slow
def test_the_notebook_of_answers_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = run_notebook("answers_only.ipynb")
    assert names["annotations"].num_annotators == 59
    assert names["accuracies"]["MajorityVote"] == pytest.approx(0.766, abs=0.001)
    assert names["accuracies"]["Robust"] > names["accuracies"]["MajorityVote"]
    assert (tmp_path / "labelme" / "report.html").is_file()
    assert (tmp_path / "labelme" / "report.json").is_file()


@pytest.mark.slow
def test_the_notebook_of_a_crowd_layer_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_notebook("crowd_layer.ipynb")
    assert names["accuracies"]["crowd layer"] > 0.78
    assert (tmp_path / "served" / "1" / "saved_model.pb").is_file()
    assert {each.decode() for each in names["answer"]["class"].numpy()} <= set(load_labelme().annotations.classes)
