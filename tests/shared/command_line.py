"""The command line, in this process."""

import re

from crowdzoo.commands.main import main


def run(*words) -> int:
    """The exit code of a command; words may be paths and numbers."""
    return main([str(word) for word in words])


def shown(text, name):
    """What is printed beside a name."""
    return re.search(rf"^{re.escape(name)} +(.*)$", text, flags=re.M)[1].strip()
