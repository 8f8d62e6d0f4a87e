"""Layout of a table in a file: names of columns, separator, encoding, and contents of cells."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from crowdzoo.errors import ConfigError, Setting, bad_setting, did_you_mean, short_repr, unknown
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import is_utf8
from crowdzoo.files.workbooks import WORKBOOK

OPTIONAL = ("confidence", "timestamp", "seconds")  # optional columns; one named "" is not read
NUMBERED = ("task", *OPTIONAL)  # columns that may be named ""; tasks are then named after their rows
_FIRST = (
    "task",
    "left",
    "right",
    "winner",
    "loser",
    "ranking",
    "annotator",
    "label",
    "position",
    *OPTIONAL,
)  # columns of annotations
_SECOND = ("task", "gold", "split", "text", "image", "features")  # columns of instances and gold
# Python codecs that are not encodings of files
_NO_ENCODINGS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})


@dataclass(frozen=True)
class Layout:
    """Validated reading options for the layout of a file; see `FileOptions`.

    Attributes:
        columns: our name of a column -> the file's name, or its number from 1 without a header.
        separator: separator of values in CSV; None: determined from the header.
        sheet: sheet of an Excel workbook; None: the first one.
        encoding: encoding of text; None: UTF-8, or that of a byte order mark.
        header: whether the first line contains names.
        decimal: decimal mark of numbers in CSV, "." or ",".
        wide: whether rows are tasks and columns annotators.
        missing: marks of a cell without a label, besides an empty cell.
        label_separator: separator of several labels in a cell.
        annotator_separator: separator of several annotators in a cell, and of their labels in another; lists are split.
        rename: label in the file -> label to use.
        no_label: the label that an empty cell of a long table represents; None: an empty cell is a bad row.
        question: question whose answer is read from cells with JSON objects of several answers; None: no such cells.
        outside_images: whether a table of instances may name images outside its folder.
        option: name of `columns` in messages; empty if users cannot set it.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    header: bool = True
    decimal: str = "."
    wide: bool = False
    missing: tuple[str, ...] = ()
    label_separator: str | None = None
    annotator_separator: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    no_label: str | None = None
    question: str | None = None
    outside_images: bool = False
    option: str = "columns"

    @classmethod
    def of(cls, options: Mapping[str, Any], known: Sequence[str] = _FIRST, option: str = "columns") -> Layout:
        """Create a layout from options; other options are ignored, and None means the default.

        Args:
            options: keyword arguments of a reader.
            known: names that `columns` may contain.
            option: name of `columns` in messages.

        Raises:
            ConfigError: an invalid value of an option.
        """
        chosen = {name: options[name] for name in LAYOUT_OPTIONS if options.get(name) is not None}
        for name, value in chosen.items():
            if isinstance(value, str) and not is_utf8(value):
                raise bad_setting(name, "must be UTF-8, as cells are", value)
        if "columns" in chosen:
            chosen["columns"] = _columns(chosen["columns"], known, option)
        for name, check in _CHECKS.items():
            if name in chosen:
                chosen[name] = check(chosen[name])
        if chosen.get("decimal", ".") not in (".", ","):
            raise bad_setting("decimal", "must be '.' or ','", chosen["decimal"])
        if not isinstance(chosen.get("no_label", "-"), str) or not chosen.get("no_label", "-").strip():
            raise bad_setting("no_label", "must be the name of a label", chosen["no_label"])
        layout = cls(**chosen, option=option)
        if layout.wide and (strange := sorted(layout.columns.keys() - {"task", "annotator"})):
            raise ConfigError(f"{Setting(option)}: a wide table has columns task and annotator, and no {strange[0]}.")
        if layout.wide and layout.annotator_separator:
            unused = Setting("annotator_separator")
            raise ConfigError(f"{unused}: in a wide table every column is one annotator; leave it out.")
        if not layout.header and not layout.columns:
            numbers = {"task": "", "annotator": "1,2,3"}
            numbers = numbers if layout.wide else {"task": "1", "annotator": "2", "label": "3"}
            raise ConfigError(f"a file without a header needs columns, such as {Setting(option, numbers)}.")
        return layout

    def several(self, column: str) -> bool:
        """Whether several columns may be named, by commas or a pattern with `*`."""
        return any(mark in self.columns.get(column, "") for mark in ",*")

    @property
    def joins_columns(self) -> bool:
        """Whether the task or the label comes from several columns, or none."""
        return self.several("task") or self.several("label") or self.columns.get("task") == ""

    @property
    def takes_apart(self) -> bool:
        """Whether rows of the file differ from rows of annotations."""
        apart = self.label_separator, self.annotator_separator, self.question
        cells = self.missing, *apart, self.no_label, self.rename
        return any(cells) or self.wide or self.joins_columns

    @classmethod
    def of_second(cls, columns: Any, options: Mapping[str, Any], option: str = "instance_columns") -> Layout:
        """Create the layout of a file of instances or gold that is read with annotations.

        Args:
            columns: its columns; if all are numbers, the file has no header.
            options: options of the annotations, of which encoding, decimal mark and `outside_images` also apply here.
            option: name of `columns` in messages.

        Raises:
            ConfigError: an invalid value of an option.
        """
        shared = {name: options.get(name) for name in ("encoding", "decimal")}
        layout = cls.of({**shared, "columns": columns}, _SECOND, option)
        numbered = bool(layout.columns) and all(name.isdecimal() for name in layout.columns.values())
        return replace(layout, header=not numbered, outside_images=bool(options.get("outside_images")))


def own_encoding(path: str | Path, layout: Layout) -> Layout:
    """Layout of a file that is read with another one: drops the other's encoding if this file is UTF-8."""
    if layout.encoding is None or Path(path).suffix in (".parquet", WORKBOOK):
        return layout
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_regular(path) as stream:
            while block := stream.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return layout
    return replace(layout, encoding=None)


OF_LABELS = ("missing", "label_separator", "no_label", "rename")  # have the same meaning for exports
_NO_OPTIONS = ("option", "question", "outside_images")
LAYOUT_OPTIONS = tuple(option.name for option in fields(Layout) if option.name not in _NO_OPTIONS)


def _columns(columns: Any, known: Sequence[str], option: str) -> dict[str, str]:
    """Parse columns from a mapping or `task=HITId,annotator=WorkerId`."""
    given: Any = columns.items() if isinstance(columns, Mapping) else ()
    if isinstance(columns, str):
        given = [part.partition("=")[::2] for part in columns.split(",")]
        # names may contain commas, so only a comma before a known name separates
        parts = re.split(rf",(?=\s*(?:{'|'.join(known)})\s*=)", columns)
        pairs = [part.partition("=") for part in parts]
        if any(not equals for _, equals, _ in pairs):
            raise bad_setting(option, "takes pairs such as task=HITId,annotator=WorkerId", columns)
        names = [ours.strip() for ours, _, _ in pairs]
        if len(set(names)) < len(names):
            raise bad_setting(option, "names a column twice", columns)
        columns = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if not isinstance(columns, Mapping):
        raise bad_setting(option, "takes names by name, such as {'task': 'HITId'}", columns)
    ours = {"annotator" if name == "worker" else name: theirs for name, theirs in columns.items()}
    for name, theirs in ours.items():
        if name not in known:
            swapped = {str(own).strip(): other.strip() for other, own in given}
            fix = f" The file's name is the second one: {Setting(option, swapped)}."
            text = unknown("column", name, known) + fix * ({*swapped} <= {*known, "worker"})
            raise ConfigError(f"{Setting(option)}: {text}")
        if isinstance(theirs, bool) or not isinstance(theirs, (str, int)) or (theirs == "" and name not in NUMBERED):
            raise ConfigError(f"{Setting(option)}: {name} must be the name of a column, got {short_repr(theirs)}.")
    named = {name: str(theirs) for name, theirs in ours.items()}
    for theirs in filter(None, named.values()):
        if len(twice := [name for name in named if named[name] == theirs]) > 1:
            both = f"{' and '.join(twice)} cannot both be the column {short_repr(theirs)}"
            raise ConfigError(f"{Setting(option)}: {both}.")
    return named


def _separator(separator: Any) -> str:
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator) if isinstance(separator, str) else separator
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\n\r\0' or not separator.isascii():
        raise bad_setting("separator", "must be one character, such as ';' or tab", separator)
    return separator


def _marks(value: Any) -> tuple[str, ...]:
    """Parse marks of missing labels from a list or `-1,NA`."""
    marks = value.split(",") if isinstance(value, str) else value
    if isinstance(marks, (int, float)) and not isinstance(marks, bool):
        marks = (marks,)
    if not isinstance(marks, (list, tuple)) or any(not isinstance(mark, (str, int, float)) for mark in marks):
        raise bad_setting("missing", "takes marks with commas between, such as -1,NA", value)
    return tuple(f"{mark:g}" if isinstance(mark, float) else str(mark).strip() for mark in marks)


def _renamed(names: Any) -> dict[str, str]:
    """Parse renamed labels from a mapping or `yes=1,YES=1`."""
    if not isinstance(names, Mapping):
        names = dict(part.rpartition("=")[::2] for part in str(names).split(","))
    renamed = {str(old).strip(): str(new).strip() for old, new in names.items()}
    if "" in (*renamed, *renamed.values()):
        raise bad_setting("rename", "takes pairs of labels OLD=NEW with commas between", names)
    return renamed


def _cell_separator(name: str, separator: Any) -> str:
    separator = separator.replace("\\n", "\n").replace("\\t", "\t") if isinstance(separator, str) else separator
    if not isinstance(separator, str) or not separator or "\0" in separator:
        raise bad_setting(name, "must be text, such as '|'", separator)
    return separator


def _encoding(encoding: Any) -> str:
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        common = ("utf-8", "latin-1", "cp1252", "utf-16", "cp1251", "gb18030", "shift_jis", "big5", "euc-kr")
        hint = did_you_mean(encoding, common) if isinstance(encoding, str) else ""
        what = f"unknown {short_repr(encoding)}. Usual ones are {', '.join(common)}.{hint}"
        raise ConfigError(f"{Setting('encoding')}: {what}", setting="encoding", value=encoding) from None
    if not getattr(codec, "_is_text_encoding", True) or codec.name.replace("_", "-") in _NO_ENCODINGS:
        raise bad_setting("encoding", "must be an encoding of text files", encoding)
    return codec.name


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "separator": _separator,
    "encoding": _encoding,
    "missing": _marks,
    "rename": _renamed,
    "label_separator": partial(_cell_separator, "label_separator"),
    "annotator_separator": partial(_cell_separator, "annotator_separator"),
}
