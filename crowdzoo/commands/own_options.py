"""OwnOptions: options that one command alone has, by lines of options.csv."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from crowdzoo.checks.option_types import integer, number, path
from crowdzoo.commands.options import MOST, group
from crowdzoo.files.package_tables import package_table

# The first word of the column "type", with what its other words mean to `add_argument`
TYPES: dict[str, Callable[..., dict[str, Any]]] = {
    "text": dict,
    "path": lambda: {"type": path},
    "integer": lambda low, high=MOST: {"type": integer(int(low), int(high))},
    "number": lambda *ends: {"type": number(*map(float, ends))},
    "list": lambda: {"action": "append", "default": []},
    "flag": lambda: {"action": "store_true"},
}


def option_lines(command: str) -> dict[str, dict[str, str]]:
    """The lines of a command, by the names of their arguments.

    A line has the option with the name of its value, its heading in the help (empty: none), its type (a key of `TYPES`
    and the limits of a number; empty: it is not an option), its default as JSON, and its help.
    """
    return {line["name"]: line for line in package_table(__package__, "options.csv") if line["command"] == command}


class OwnOptions:
    """Adds options to a command, which its `describe` names in the order of the help.

    Args:
        name: of the command.
        command: its parser.
        **words: values of the placeholders in the help.
    """

    def __init__(self, name: str, command: argparse.ArgumentParser, **words: object) -> None:
        self.command, self.words = command, words
        self.lines = option_lines(name)

    def add(self, *names: str, **how: Any) -> None:
        """Adds the arguments of these names; `how` is more for `add_argument`."""
        for name in names:
            line = self.lines[name]
            option, _, value = line["option"].partition(" ")
            kind, *limits = line["type"].split()
            arguments = {"help": line["help"].format(**self.words), **TYPES[kind](*limits)}
            arguments |= {"dest": name} if option.startswith("-") else {}
            arguments |= {"metavar": value} if value else {}
            arguments |= {"default": json.loads(line["default"])} if line["default"] else {}
            owner = group(self.command, line["group"]) if line["group"] else self.command
            owner.add_argument(option, **arguments | how)
