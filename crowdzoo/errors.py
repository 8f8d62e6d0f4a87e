"""Errors that a user can mend: the command line prints them without a traceback."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["BadRow", "ConfigError", "CrowdzooError", "DataError", "PipelineError", "ServingError", "did_you_mean"]

SHOWN = 10


class CrowdzooError(Exception):
    """Parent of every error that crowdzoo raises on purpose.

    Attributes:
        exit_code: what the command `crowdzoo` exits with when it meets the error.
    """

    exit_code = 1


class BadRow:
    """One bad value in a file, with the place and the way out.

    Args:
        file: name of the file, or of the argument where there is no file.
        row: line number in the file, 1 is the first line (the header counts); for arrays and
            Parquet the row's position, from 0. None where the whole file is meant.
        column: name of the column, or None.
        value: what stands there.
        reason: what is wrong and what to do, as the end of a sentence.
    """

    __slots__ = ("column", "file", "reason", "row", "value")

    def __init__(self, file: str, row: int | None, column: str | None, value: object, reason: str):
        self.file = file
        self.row = row
        self.column = column
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        place = self.file
        if self.row is not None:
            place += f", row {self.row}"
        if self.column is not None:
            place += f", column '{self.column}'"
        return f"{place}: {self.value!r} {self.reason}"


class DataError(CrowdzooError, ValueError):
    """Data that cannot be used. Lists the first ten bad rows and counts the rest.

    Args:
        message: one sentence.
        rows: bad rows, first ones first; only the first ten are shown.
        total: how many bad rows there are in all, where `rows` holds only the first.
    """

    exit_code = 3

    def __init__(self, message: str, rows: Sequence[BadRow] = (), total: int | None = None):
        self.rows = tuple(rows)
        self.total = len(self.rows) if total is None else total
        lines = [message, *(f"  {row}" for row in self.rows[:SHOWN])]
        left = self.total - min(len(self.rows), SHOWN)
        if self.rows and left > 0:
            lines.append(f"  ... and {left:,} more")
        super().__init__("\n".join(lines))


class ConfigError(CrowdzooError, ValueError):
    """A setting that is missing, unknown or out of range."""

    exit_code = 4


class PipelineError(CrowdzooError, RuntimeError):
    """A component of the pipeline failed; its own message and the log's path are in the text."""

    exit_code = 5


class ServingError(CrowdzooError, RuntimeError):
    """A model that cannot be served, or a server that answered with an error."""

    exit_code = 6


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The way out of a misspelt name, to stand at the end of a message.

    Args:
        name: as it was given.
        known: names that there are.

    Returns:
        " Did you mean 'nearest'?", or nothing where none is near.
    """
    near = difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""
