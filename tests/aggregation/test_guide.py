"""docs/aggregation.md: its examples run, and its commands parse."""

import re
from pathlib import Path

import pytest

from crowdzoo.commands import main as cli

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "aggregation.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    assert (tmp_path / "labels" / "tasks.parquet").exists()
    accuracy = names["result"].expected_accuracy(names["labelme"].gold)
    assert f"# {accuracy:.3f};" in GUIDE


def test_the_commands_parse():
    commands = re.findall(r"^crowdzoo ([^#\n]*)", GUIDE, flags=re.M)
    assert len(commands) == 4
    for command in commands:
        cli._parser().parse_args(command.split())
