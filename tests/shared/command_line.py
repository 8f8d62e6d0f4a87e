"""The command line, in this process."""

import argparse
import re

from crowdzoo.commands.main import _parser, main


def run(*words) -> int:
    """The exit code of a command; words may be paths and numbers."""
    return main([str(word) for word in words])


def shown(text, name):
    """What is printed beside a name."""
    return re.search(rf"^{re.escape(name)} +(.*)$", text, flags=re.M)[1].strip()


def actions_of(command) -> list[argparse.Action]:
    """The arguments of a command, by its name or as the function that describes it to a parser."""
    parser = argparse.ArgumentParser()
    if isinstance(command, str):
        parser = _parser().commands()[command]
    else:
        command(parser)
    return parser._actions


def flags_of(command) -> set[str]:
    """All spellings of a command's options."""
    return {flag for action in actions_of(command) for flag in action.option_strings}
