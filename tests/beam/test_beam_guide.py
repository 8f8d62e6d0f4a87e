"""Beam in docs/scale.md: its examples run, its commands are accepted."""

import ast
import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from crowdzoo.commands import main as cli
from crowdzoo.pipelines.config import load_config

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_the_examples_import_what_there_is_and_call_it_by_its_arguments():
    pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")
    tree = ast.parse("\n".join(EXAMPLES))
    names = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "scale.md", "exec"), names)
    calls = {ast.unparse(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for name in ("DawidSkene", "blocks_of", "load_labelme", "on_beam.Posteriors", "on_beam.aggregate", "on_beam.fit"):
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
