"""Messages of the library in which Python's arguments become options."""

import argparse
import re
from collections.abc import Mapping


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """Name of the Python argument -> option, of a command; the kind of labels is --task."""
    found = {action.dest: action.option_strings[0] for action in command._actions if action.option_strings}
    return {**found, "kind": found["task"]} if "task" in found else found


def as_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library as the command line's user needs it: `on_bad_rows='reject'` is `--on-bad-rows reject`.

    Args:
        message: of an error or a warning.
        options: see `options_of`.
    """
    if "types" in options:  # of a configuration and of Python
        message = re.sub(r"inputs: \{(.+?): (\w+)\}", rf"{options['types']} \1=\2", message)
    for name, option in options.items():
        alone = r"(?<![\w/'\"=.,-])"  # not inside a path, a value or another name
        value = r"'[^'\n]*'(?:(?:, | or )'[^'\s]*')*|[^\s,;)]*"
        for found in reversed(list(re.finditer(rf"{alone}{name}=({value})", message))):
            plain = re.sub(r"'([^'\s]*\w[^'\s]*)'", r"\1", found[1])  # blanks and marks stay quoted, for the shell
            words = re.sub(r" (True|False)\b", "", f"{option} {plain}")  # an option without a value
            message = f"{message[: found.start()]}{words}{message[found.end() :]}"
        if "_" in name:
            message = re.sub(rf"{alone}{name}(?![\w='\"/])", option, message)
        else:  # also a word of prose
            message = re.sub(rf"^{name}(?= is | must | has | takes | belongs |:)", option, message)
    return message
