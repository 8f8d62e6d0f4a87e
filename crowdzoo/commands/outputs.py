"""What each command writes, how it recognizes what it wrote before, and a bar while it works."""

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
        flag: the option, for messages.
        is_own: whether a file or a filled folder was written by the same command.
        folder: whether the output is a folder.
        unless: endings of names that make a file of it.
        place: from the argument to what is written; None: the same.
        goes_on: whether the command goes on from what it wrote before, and so needs no --force.
    """

    name: str
    flag: str
    is_own: Callable[[Path], bool]
    folder: bool = False
    unless: tuple[str, ...] = ()
    place: Callable[[Path], Path] | None = None
    goes_on: bool = False


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuses, before any work is done, outputs that cannot be written or would destroy something else.

    Args:
        arguments: arguments of the command line, with `outputs` and `inputs` (names of arguments) of the command.

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
    """Has CSV written as `add_spreadsheet` says."""
    separator, decimal, bom = (vars(arguments).get(name) for name in ("out_separator", "out_decimal", "bom"))
    if not (separator or decimal or bom):
        return
    out, output, form = arguments.out, arguments.outputs[0], getattr(arguments, "format", None)
    if out is None or (f".{form}" if output.folder and out.suffix not in output.unless else out.suffix) != ".csv":
        way = "--out DIR --format csv" if hasattr(arguments, "format") else "--out FILE.csv"
        raise ConfigError(f"--out-separator, --out-decimal and --bom are for CSV that is written: add {way}.")
    SPREADSHEET.set((separator or ",", decimal or ".", "utf-8-sig" if bom else "utf-8"))


def holds(*folders: Collection[str], leftovers: bool = False) -> Callable[[Path], bool]:
    """Whether a folder holds what a command writes, and nothing else.

    Args:
        *folders: names of files: the first is in every folder that the command wrote, others may be.
        leftovers: hidden files may be there as well, which a killed command leaves.
    """

    def is_own(folder: Path) -> bool:
        names = {name for name in os.listdir(folder) if not (leftovers and name.startswith("."))}
        return any(next(iter(own)) in names and names <= {*own} for own in folders)

    return is_own


def marked(pattern: str) -> Callable[[Path], bool]:
    """Whether a file, or each file in a folder, has the mark of a command.

    Args:
        pattern: regular expression, searched in the columns of a table with commas between, and in the first bytes of
            other files.
    """

    def is_own(path: Path) -> bool:
        files = [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]
        return bool(files) and all(re.search(pattern, _head(file), re.DOTALL) for file in files)

    return is_own


def _head(path: Path) -> str:
    """The columns of a table, or the first bytes of another file."""
    if path.suffix[1:] in TABLE_FORMATS:
        return ",".join(column_names(path))
    with open(path, "rb") as file:
        return re.sub(r"[;|\t]", ",", file.read(FEW_BYTES).decode("utf-8-sig", "replace"))


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Any:
    """A bar on the terminal's error stream; yields a function that counts one step.

    Args:
        title: what is done.
        total: number of steps, of which the time left follows; None shows the time so far.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = () if total is not None else (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def fitted(aggregator: Any, crowd: Any, **known: Any) -> Any:
    """The result of `aggregator.fit`, with the time so far.

    Args:
        aggregator: of any kind.
        crowd: what it is fitted to.
        **known: further arguments of `fit`, such as `gold`.
    """
    from crowdzoo.aggregation.named import result_of

    with progress(getattr(aggregator, "title", "aggregating"), None):
        return result_of(aggregator, crowd, **known)
