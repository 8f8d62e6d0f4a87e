"""docs/platforms.md says what the code does."""

import re
import shlex
from pathlib import Path

import pytest

from crowdzoo.commands.main import _parser
from crowdzoo.reading.platforms.export import PLATFORMS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|.*`(\S+) --platform (\S+)`", PAGE, re.MULTILINE)


def test_the_table_has_each_platform_with_a_file_of_its_ending():
    assert [name for _, name in ROWS] == list(PLATFORMS)
    for file, name in ROWS:
        assert file.endswith((*PLATFORMS[name].suffixes, ".zip", "/"))


@pytest.mark.parametrize("command", [f"crowdzoo convert {a} --platform {b} --out data" for a, b in ROWS])
def test_the_commands_of_the_table_have_known_options(command):
    _parser().parse_args(shlex.split(command)[1:])
