"""Messages of the library in which Python's arguments become options."""

import argparse
import ast
import re
from collections.abc import Mapping

from crowdzoo.errors import option_text

# A string of Python in a message, and the options in which a line break or a tab is written as \\n or \\t
_STRING = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_ESCAPED = ("separator", "label_separator", "annotator_separator")


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """Name of the Python argument -> option, of a command."""
    return {action.dest: action.option_strings[0] for action in command._actions if action.option_strings}


def as_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library as the command line's user needs it: `on_bad_rows='reject'` is `--on-bad-rows reject`.

    Args:
        message: of an error or a warning.
        options: see `options_of`.
    """
    if "types" in options:  # of a configuration and of Python
        message = re.sub(r"inputs: \{(.+?): (\w+)\}", rf"{options['types']} \1=\2", message)
    alone = r"(?<![\w/'\"=.,-])"  # not inside a path, a value or another name

    def typed(found: re.Match[str]) -> str:
        option, escaped = options[found[1]], found[1] in _ESCAPED
        words = re.sub(_STRING, lambda text: _typed("" if text.start() else option, text[0], escaped), found[2])
        # not a string: a word that stands for a value, a number, or an option without a value
        return re.sub(r" (True|False)\b", "", f"{option} {words}") if words == found[2] else words

    message = re.sub(rf"{alone}({'|'.join(options)})=({_STRING}(?:(?:, | or ){_STRING})*|[^\s,;)]*)", typed, message)
    for name, option in options.items():
        if "_" in name:
            message = re.sub(rf"{alone}{name}(?![\w='\"/])", option, message)
        else:  # also a word of prose
            message = re.sub(rf"^{name}(?= is | must | has | takes | belongs |:)", option, message)
    return message


def _typed(option: str, string: str, escaped: bool) -> str:
    """An option, if there is one, with the value of a string of Python, as they are typed into a shell."""
    try:
        value = ast.literal_eval(string)
    except (SyntaxError, ValueError):  # it was cut, as it is long
        value = string[1:-1]
    value = value.replace("\n", "\\n").replace("\t", "\\t") if escaped else value
    return option_text(option, value).lstrip(" =")
