"""The version that stored files carry, so that an earlier crowdzoo does not misread what a later one wrote."""

import os
from typing import Any

from crowdzoo.errors import DataError, short_repr

# Of results, names and cards of models, and data sets in a pipeline: each has it under "format_version". It rises where
# a release of crowdzoo could misread the files of the next.
FORMAT_VERSION = 1


def check_format(version: Any, source: str | os.PathLike[str], newest: int = FORMAT_VERSION) -> None:
    """Checks that this release reads what was stored.

    Args:
        version: what the file says; None of files from before 0.1.0, which are read as version 1.
        source: the file, for messages.
        newest: the last version that this release reads.

    Raises:
        DataError: a later version, or no version at all.
    """
    if version is None:
        return
    if type(version) is not int or version < 1:
        raise DataError(f"{os.fspath(source)}: the version of its format is {short_repr(version)}, which is none.")
    if version > newest:
        raise DataError(f"{os.fspath(source)}: written by a later crowdzoo (format {version}). Update crowdzoo.")
