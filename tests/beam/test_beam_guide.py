"""docs/beam.md: its examples run, its commands are accepted, its figures are those of the saved results."""

import ast
import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.commands import main as cli
from crowdzoo.pipelines.config import load_config

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "beam.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "beam.json").read_text(encoding="utf-8"))


EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_the_examples_import_what_there_is_and_call_it_by_its_arguments():
    pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    tree = ast.parse("\n".join(EXAMPLES))
    names = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "beam.md", "exec"), names)
    calls = {ast.unparse(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for name in ("DawidSkene", "blocks_of", "load_labelme", "on_beam.DawidSkene", "on_beam.aggregate"):
        arguments = {each.arg: each.value for each in calls[name].keywords}
        inspect.signature(eval(name, names)).bind(*calls[name].args, **arguments)


@pytest.mark.slow
def test_the_examples_run(capsys):
    pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    assert len(EXAMPLES) == 2
    names = {}
    for block in EXAMPLES:
        exec(block, names)
    printed = capsys.readouterr().out
    assert f"# {float(printed.splitlines()[0]):.3f}, as" in GUIDE
    assert "[0 1 2]" in printed


def test_the_commands_are_accepted(monkeypatch):
    pytest.importorskip("yaml", reason="the pipeline extra is not installed")
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^    crowdzoo run (.*)$", GUIDE.replace("\\\n", " "), flags=re.M)
    assert len(commands) == 3
    for command in commands:
        given = cli._parser().parse_args(["run", *shlex.split(command)])
        overrides = dict(override.split("=", 1) for override in given.overrides)
        options = json.loads(overrides["beam.options"])
        config = load_config(given.config, {**overrides, "beam.options": options})
        assert config.beam.options == tuple(options)
        assert config.beam.runner == overrides.get("beam.runner", "FnApiRunner")


NAMES = {
    "Dawid-Skene": "dawid-skene",
    "one-coin": "one-coin",
    "GLAD": "glad",
    "iBCC": "ibcc",
    "majority vote (one pass)": "majority-vote",
}


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_those_of_the_results(name):
    cells = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", GUIDE, flags=re.M).group(1).split(" | ")
    rows = {row["annotators"]: row for row in RESULTS["compared"] if row["method"] == NAMES[name]}
    measured = [
        value
        for annotators in (1000, 10_000)
        for value in (*rows[annotators]["seconds"].values(), rows[annotators]["times_as_long"])
    ]
    assert [float(cell) for cell in cells] == pytest.approx(measured, rel=0.03)
    for row in rows.values():
        assert row["annotations"] == 10**7
        assert row["posteriors_differ_by"] < 1e-6
        assert row["labels_that_differ"] == 0


def test_a_block_is_what_the_guide_says():
    block = Block([0, 1], [0, 1], [0, 1])
    assert (block.annotator_ids.dtype, block.labels.dtype) == ("int32", "uint8")
    assert Block([0], [0], [300]).labels.dtype == "int32"


def test_the_tables_of_engines_are_those_of_the_saved_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import beam_engines

    begin, end = beam_engines.MARKS
    assert GUIDE.partition(begin)[2].partition(end)[0] == beam_engines.tables(beam_engines.load_saved())
    for row in beam_engines.load_saved()["rows"]:
        assert row["posteriors_differ_by"] < 1e-6
        assert row["labels_that_differ"] == 0
