"""Messages of the library in which Python's arguments become options of a command."""

import argparse
import re
from collections.abc import Mapping

__all__ = ["as_options", "options_of"]


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
