"""What each command writes, and how a command recognizes what it wrote before."""

import argparse
import json
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.errors import ConfigError
from crowdzoo.files.model_files import FOLDER_NAMES
from crowdzoo.files.paths import check_apart, check_output_file, check_output_folder
from crowdzoo.files.writing import SPREADSHEET
from crowdzoo.kinds import KINDS
from crowdzoo.reading.tables.row_checks import HEADER
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


def names_path(path: Path) -> Path:
    """The file beside a model that holds the names of its classes and annotators."""
    return path / FOLDER_NAMES if path.is_dir() else path.with_suffix(".names.json")


def is_result(path: Path) -> bool:
    """Whether `crowdzoo aggregate` wrote the folder, and nothing else is in it; or a file with a table of tasks."""
    from crowdzoo.aggregation.result_files import RESULT_FILES

    if path.is_file():
        # of classes, ratings and sentences; the files of annotations and instances have no such columns
        columns = set(column_names(path))
        return any(
            own <= columns
            for own in (
                {"label_code", "probability"}, {"estimate", "standard_error"}, {"score", "rank"},
                {"task", "labels", "annotations"},
            )
        )  # fmt: skip
    names = set(os.listdir(path))
    tables = {f"annotators.{ending}" for ending in TABLE_FORMATS}
    return "summary.json" in names and bool(names & tables) and names <= RESULT_FILES


def holds(*written: set[str]) -> Callable[[Path], bool]:
    """Whether a folder holds what a command writes, one of these sets of names, and nothing else."""
    return lambda folder: set(os.listdir(folder)) in written


def is_deployment(folder: Path) -> bool:
    """Whether `crowdzoo deploy` wrote all files of a folder, and nothing else is in it."""
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    return bool(files) and all(
        path.is_file() and b"Written by `crowdzoo deploy`" in _start(path)[:80] for path in files
    )


def is_quality(folder: Path) -> bool:
    """Whether `crowdzoo quality` wrote the folder, and nothing else is in it."""
    from crowdzoo.quality.report import OF_MODELS

    tables = ("tasks", "annotators", "classes")
    written = (
        {"summary.json", *(f"{table}.{ending}" for table in each)}
        for ending in TABLE_FORMATS
        for each in (tables[:2], tables, (*tables, *OF_MODELS))
    )
    return holds(*written)(folder)


def page_data_path(path: Path) -> Path:
    """The file of numbers beside a page of `crowdzoo report`."""
    return path.with_suffix(".json")


def is_page(path: Path) -> bool:
    """Whether a file is a page of `crowdzoo report`."""
    start = _start(path)
    return start.startswith(b"<!doctype html>") and b" - crowdzoo report</title>" in start


def is_page_data(path: Path) -> bool:
    """Whether a file holds the numbers of a page of `crowdzoo report`."""
    return _start(path).startswith(b'{"format":"crowdzoo-report"')


def is_rejects(path: Path) -> bool:
    """Whether a file begins as one of rejected rows does."""
    return _first_line(path) == ",".join(HEADER)


def is_predictions(path: Path) -> bool:
    """Whether a file begins as what `crowdzoo predict` writes, or a folder holds masks of it, and nothing else."""
    if path.is_dir():
        return all(is_picture(file) for file in path.rglob("*") if not file.is_dir())
    return _first_line(path) in {",".join(kind.header) for kind in KINDS.values()}


def is_batch(path: Path) -> bool:
    """Whether a file holds questions of `crowdzoo next`."""
    if path.suffix == ".csv":
        return _first_line(path) == "task,annotator,gain,cost"
    return _start(path).split()[:4] == [b"[", b"{", b'"data":', b"{"] and b'"annotators": [' in _start(path)


def is_picture(path: Path) -> bool:
    """Whether a file is a PNG file that names crowdzoo as its software."""
    start = _start(path)
    return start.startswith(b"\x89PNG\r\n") and b"tEXtSoftware\0crowdzoo" in start


def is_model(path: Path) -> bool:
    """Whether a file is an archive as Keras writes, with the names of classes and annotators beside it."""
    with zipfile.ZipFile(path) as archive:
        return {"metadata.json", "config.json"} <= set(archive.namelist()) and is_names(names_path(path))


def is_names(path: Path) -> bool:
    """Whether a file holds the names of classes and annotators, as `crowdzoo train` writes them beside a model."""
    return (
        _start(path).startswith(b'{"classes": ')
        and {"classes", "annotators"} <= json.loads(path.read_text("utf-8")).keys()
    )


def _first_line(path: Path) -> str:
    return re.sub(r"[;|\t]", ",", _start(path).split(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r"))


def _start(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(FEW_BYTES)
