"""Outputs of commands, checks before existing ones are replaced, and progress bars."""

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.errors import ConfigError
from crowdzoo.files.paths import check_apart, check_output_file, check_output_folder
from crowdzoo.files.writing import SPREADSHEET
from crowdzoo.reading.tables.suffixes import column_names

FEW_BYTES = 1 << 12


@dataclass(frozen=True)
class Output:
    """An output of a command.

    Attributes:
        name: name of the argument.
        flag: its option, for messages.
        is_own: tells whether the same command wrote an existing file or non-empty folder.
        folder: whether the output is a folder.
        unless: name suffixes that make it a file.
        place: from the argument to the path written; None: the same path.
        goes_on: whether the command continues from its earlier output, and so needs no --force.
    """

    name: str
    flag: str
    is_own: Callable[[Path], bool]
    folder: bool = False
    unless: tuple[str, ...] = ()
    place: Callable[[Path], Path] | None = None
    goes_on: bool = False


def check_outputs(arguments: argparse.Namespace) -> None:
    """Reject, before the command runs, outputs that cannot be written or would destroy something else.

    Args:
        arguments: arguments of the command line, with the command's `outputs` and `inputs` (names of arguments).

    Raises:
        ConfigError: see `crowdzoo.files.paths`.
    """
    _set_spreadsheet(arguments)
    inputs = [path for name in arguments.inputs if (path := getattr(arguments, name)) is not None]
    places: dict[str, Path] = {}
    for output in arguments.outputs:
        path = getattr(arguments, output.name)
        if path is None:
            continue
        path = path if output.place is None else output.place(path)
        if output.folder and path.suffix not in output.unless:
            force = arguments.force or output.goes_on
            check_output_folder(path, output.flag, is_own=output.is_own, force=force)
        else:
            check_output_file(path, output.flag, inputs=inputs, is_own=output.is_own, force=arguments.force)
        places[output.flag] = path
    check_apart(places)


def _set_spreadsheet(arguments: argparse.Namespace) -> None:
    """Apply the options of `add_spreadsheet` to all written CSV."""
    separator, decimal, bom = (vars(arguments).get(name) for name in ("out_separator", "out_decimal", "bom"))
    if not (separator or decimal or bom):
        return
    out, output, form = arguments.out, arguments.outputs[0], getattr(arguments, "format", None)
    if out is None or (f".{form}" if output.folder and out.suffix not in output.unless else out.suffix) != ".csv":
        way = "--out DIR --format csv" if hasattr(arguments, "format") else "--out FILE.csv"
        raise ConfigError(f"--out-separator, --out-decimal and --bom are for CSV that is written: add {way}.")
    SPREADSHEET.set((separator or ",", decimal or ".", "utf-8-sig" if bom else "utf-8"))


def holds(*folders: Collection[str], leftovers: bool = False) -> Callable[[Path], bool]:
    """Return a function that tells whether a folder contains only files of a command.

    Args:
        *folders: file names for each form of the folder: the first file is required, others are optional.
        leftovers: whether hidden files, which a killed command leaves behind, are allowed.
    """

    def is_own(folder: Path) -> bool:
        names = {name for name in os.listdir(folder) if not (leftovers and name.startswith("."))}
        return any(next(iter(own)) in names and names <= {*own} for own in folders)

    return is_own


def marked(pattern: str) -> Callable[[Path], bool]:
    """Return a function that tells whether a file, or each file in a folder, has the mark of a command.

    Args:
        pattern: regular expression, searched in a table's comma-separated column names, or in the first bytes of other
            files.
    """

    def is_own(path: Path) -> bool:
        files = [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]
        return bool(files) and all(re.search(pattern, _head(file), re.DOTALL) for file in files)

    return is_own


def _head(path: Path) -> str:
    """Column names of a table, or the first bytes of another file."""
    if path.suffix[1:] in TABLE_FORMATS:
        return ",".join(column_names(path))
    with open(path, "rb") as file:
        return re.sub(r"[;|\t]", ",", file.read(FEW_BYTES).decode("utf-8-sig", "replace"))


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Any:
    """Show a progress bar on standard error, if it is a terminal; yields a function that counts one step.

    Args:
        title: text before the bar.
        total: number of steps, to estimate the time left; None shows the elapsed time.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = () if total is not None else (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def fitted(aggregator: Any, crowd: Any, **known: Any) -> Any:
    """Run `aggregator.fit` and show the elapsed time.

    Args:
        aggregator: aggregator of any kind.
        crowd: annotations to fit.
        **known: further arguments of `fit`, such as `gold`.
    """
    from crowdzoo.aggregation.named import result_of

    with progress(getattr(aggregator, "title", "aggregating"), None):
        return result_of(aggregator, crowd, **known)
