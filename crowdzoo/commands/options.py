"""Types of the command line's options, and messages in which Python's arguments become options."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from crowdzoo.errors import ConfigError, shorten
from crowdzoo.files.paths import local_path

__all__ = ["as_options", "integer", "number", "options_of", "path"]


def path(text: str) -> Path:
    """A local path, as it was given.

    Raises:
        ArgumentTypeError: a URL, or characters that no path has.
    """
    try:
        local_path(text, "the path")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def integer(low: int, high: int) -> Callable[[str], int]:
    """The type of an option that takes an integer from low to high."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not an integer from {low:,} to {high:,}")
        return value

    return read


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """The type of an option that takes a finite number from low to high."""
    limits = "" if low == -math.inf else f" of at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a finite number{limits}")
        return value

    return read


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """Name of the Python argument -> option, of a command."""
    return {action.dest: action.option_strings[0] for action in command._actions if action.option_strings}


def as_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library as the command line's user needs it: `on_bad_rows='reject'` is `--on-bad-rows reject`.

    Args:
        message: of an error or a warning.
        options: see `options_of`.
    """
    for name, option in options.items():
        alone = r"(?<![\w/'\"=.-])"  # not inside a path, a value or another name
        value = r"'[^'\s]*'(?:(?:, | or )'[^'\s]*')*|[^\s,;)]*"
        for found in reversed(list(re.finditer(rf"{alone}{name}=({value})", message))):
            plain = found[1].replace("'", "")
            message = f"{message[: found.start()]}{option} {plain}{message[found.end() :]}"
        if "_" in name:
            message = re.sub(rf"{alone}{name}(?![\w='\"/])", option, message)
        else:  # also a word of prose
            message = re.sub(rf"^{name}(?= is | must | has | takes |:)", option, message)
    return message
