"""Sources of annotations as streams of batches: base classes of all sources, and of text files.

Text files are read in chunks of whole lines. Arrow's C++ parser reads regular chunks. Only chunks with line breaks
inside quotes or blank lines are read again in Python, line by line, which is slower but knows each line's number.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.label_kinds import label_kind
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import BadRow, ConfigError, DataError, DataWarning, Setting, did_you_mean, short_repr
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import LONGEST_LINE, readable
from crowdzoo.files.utf8_blocks import utf8_blocks
from crowdzoo.files.workbooks import is_workbook, sheet_csv
from crowdzoo.reading.platforms.export import PLATFORMS
from crowdzoo.reading.tables.layout import OPTIONAL, Layout
from crowdzoo.reading.tables.naming import column_not_there, find_columns, is_no_annotator, usual_columns

BATCH_ROWS = 1 << 17
CHUNK_BYTES = 8 << 20
SLOW_ROWS = 1 << 16
REQUIRED = ("task", "annotator", "label")
ABOVE = " If there are lines above the names of the columns, such as a title, remove them."
LABEL_OF = "label of "  # prefix of our names for columns of annotators in a wide table, and of labels
PART_OF = "part of "  # prefix of our names for the columns of a task's name
SEVERAL = {"task": PART_OF, "label": LABEL_OF}
IN_LISTS = {"annotator": ("annotators", "workers", "annotatorids"), "label": ("annotations",)}  # further usual names
_A = {"task": "a task", "annotator": "an annotator"}
LIKENESS = 0.75  # similarity of a column's name to ours, from which it may be a typing mistake
_MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
NUL = "holds a NUL byte. Save the file as UTF-8 text."
_NO_TEXT = {  # start of a file -> what it is, and what to do
    b"\x1f\x8b": "compressed with gzip; let its name end in .gz",
    b"PAR1": "Parquet; let its name end in .parquet, or use from_parquet()",
    b"PK\x03\x04": "a zip archive or a workbook; let its name end in .zip, that of an Excel workbook in .xlsx",
}


@dataclass
class Batch:
    """Some rows of a source.

    Attributes:
        columns: name -> Arrow array [n]; text, integers or floats.
        lines: the first row's line number if rows are on consecutive lines, else int64 [n].
        originals: returns the text of rows, given row numbers of this batch.
        bad: rows that could not be parsed, each with its text.
        cell: for a wide table, returns the name of the column of a row's label.
    """

    columns: dict[str, pa.Array]
    lines: int | np.ndarray
    originals: Callable[[Sequence[int]], list[str]]
    bad: list[tuple[BadRow, str]] = field(default_factory=list)
    cell: Callable[[int], str] | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in `columns`."""
        return len(next(iter(self.columns.values())))

    def line_numbers(self) -> np.ndarray:
        """Line number of each row, int64 [n]."""
        if isinstance(self.lines, np.ndarray):
            return self.lines
        return np.arange(self.lines, self.lines + self.num_rows, dtype=np.int64)


class Source:
    """A stream of batches that can be iterated over several times.

    Attributes:
        name: name of the source in error messages.
        text: whether ids are text, so that they become integers if all are.
        trim: whether white space around values is ignored.
        own: whether crowdzoo wrote it.
        repeats: whether it was written with several rows by an annotator for a task.
        most_batches: maximum number of batches to read; None: all.
        complete: whether all batches were read.
        sparse: whether a column may be absent from some rows; a column absent from all rows does not exist.
        label_kind: kind of the labels.
        path: path of the file, or None.
        layout: layout of the source's table.
        found: our name of each column -> the source's name, once it is open.
        guessed: those of them found by a usual name.
        axes: meaning of rows and columns of a wide table: "task" and "annotator", or the reverse if `columns` names one
            column for the annotator, and none or several for the task; known once it is open.
        by_winner: for preferences, whether the columns found for left and right are the better and the worse task,
            without labels; known once it is open.
        by_ranking: for preferences, whether a row is a ranking of tasks; known once it is open.
        names: column -> names in code order from the source.
        objects: column -> objects behind its integers, if names are neither strings nor integers.
        code_names: the source's column -> names behind its codes; see the function `code_names`.
        images: for regions, cache of parsed labels: text -> image.
        void: description of contents that are not answers, with counts, after iteration.

    Example:
        >>> from crowdzoo.reading.tables.frames import array_source
        >>> columns = {"task": ["a", "a"], "annotator": ["ann", "bob"], "label": ["cat", "dog"]}
        >>> source = array_source(columns, "classification", columns)
        >>> [batch.num_rows for batch in source.batches()]
        [2]
    """

    name: str
    text = False
    trim = False
    sparse = False
    own = False
    repeats = False
    most_batches: int | None = None
    complete = True
    axes = ("task", "annotator")
    void = ""

    def __init__(self, kind: str, layout: Layout | None = None):
        self.label_kind = label_kind(kind)
        self.layout = layout or Layout()
        self.required = self.label_kind.columns
        if self.layout.wide and not self.label_kind.one_label:
            raise ConfigError(f"{Setting('wide')} belongs to kinds classification and regression, got kind '{kind}'")
        self.path: Path | None = None
        self.found: dict[str, str] = {}
        self.guessed: dict[str, str] = {}
        self.by_winner = self.by_ranking = False
        self.names: dict[str, np.ndarray] = {}
        self.objects: dict[str, np.ndarray] = {}
        self.code_names: dict[str, list[str]] = {}
        self.images: dict[str, MarkedImage] = {}

    def image(self, text: str) -> MarkedImage:
        """Parse the text of a label to an image, once per text.

        Raises:
            DataError: see `MarkedImage.parse`.
        """
        if text not in self.images:
            self.images[text] = MarkedImage.parse(text)
        return self.images[text]

    def batches(self) -> Iterator[Batch]:
        """Iterate over the source from its start."""
        raise NotImplementedError

    def display(self, column: str, value: Any) -> Any:
        """A value as known to users."""
        return self.objects[column][value] if column in self.objects and value is not None else value

    def match(self, header: Sequence[str]) -> dict[str, str]:
        """Find the required columns.

        Args:
            header: the source's column names.

        Returns:
            Our name -> the source's name; see `find_columns`.

        Raises:
            DataError: a missing, duplicate or ambiguous column.
        """
        single_column = "annotator" in self.layout.columns and not self.layout.several("annotator")
        task = self.layout.several("task") if "task" in self.layout.columns else not usual_columns(header, ["task"])
        self.axes = of_row, of_column = ("annotator", "task") if single_column and task else ("task", "annotator")
        wanted = (of_row,) if self.layout.wide else (*self.required, *OPTIONAL)
        more = IN_LISTS if self.layout.annotator_separator else {"label": self.label_kind.label_names}
        several = {ours: self._several(header, ours) for ours in SEVERAL if self.layout.several(ours)}
        if self.layout.wide and of_column == "task":
            several = {}
        chosen = dict(self.layout.columns) | {ours: "" for ours, columns in several.items() if columns}
        parts = {ours: name for columns in several.values() for ours, name in columns.items()}
        rest = [name for name in header if name not in parts.values()]
        try:
            theirs, self.guessed = find_columns(self.name, rest, wanted, replace(self.layout, columns=chosen), more)
        except DataError as error:
            hint = "" if self.layout.columns else self._platform_hint(header)
            if self.layout.columns and self.text and self.layout.header and any(map(str.isdecimal, header)):
                numbers = Setting(self.layout.option, dict.fromkeys(self.layout.columns, "NUMBER"))
                hint = f"If the file has no header, say so: {Setting('header', False)}, with {numbers}."
            raise DataError(f"{error} {hint}".strip()) from None
        theirs |= parts
        if self.layout.wide and (parts or of_row in theirs or chosen.get("task") == ""):
            return theirs | self._of_columns(header, [*theirs.values()])
        if self.label_kind.has_pairs and not {"left", "right"} & theirs.keys():
            both, guessed = find_columns(self.name, header, ("winner", "loser", "annotator", *OPTIONAL), self.layout)
            if {"winner", "loser", "annotator"} <= both.keys():
                self.by_winner, self.guessed = True, guessed
                if "winner" not in chosen and theirs.get("label", both["winner"]) != both["winner"]:
                    text = f"{self.name}: column '{theirs['label']}' is not read, as '{both['winner']}' is better."
                    warnings.warn(text, DataWarning, stacklevel=2)
                return {"left": both.pop("winner"), "right": both.pop("loser"), **both}
            lists, guessed = find_columns(self.name, header, ("ranking", "annotator", *OPTIONAL), self.layout)
            if {"ranking", "annotator"} <= lists.keys():
                self.by_ranking, self.guessed = True, guessed
                return lists
        needed = wanted if self.layout.wide else self.required
        if missing := [column for column in needed if column not in theirs and chosen.get(column) != ""]:
            raise DataError(self._missing(missing, header, theirs))
        return theirs

    def take_names(self, header: Sequence[str]) -> None:
        """Use the names behind the labels' codes, in their order, as classes; ratings keep their numbers."""
        kinds = {ours: name for ours, name in self.match(header).items() if ours.startswith("label")}
        if self.label_kind.has_numbers:
            self.code_names = {name: known for name, known in self.code_names.items() if name not in kinds.values()}
        classes = {tuple(self.code_names.get(name, ())) for name in kinds.values()}
        if len(classes) == 1 and not self.label_kind.has_pairs and (names := next(iter(classes))):
            self.names["label"] = np.array(names, object)

    def _several(self, header: Sequence[str], ours: str) -> dict[str, str]:
        """The columns that form one of ours, by distinguishing names; none if a single column has this name."""
        wanted = self.layout.columns[ours]
        columns: dict[str, str] = {}
        for pattern in [] if wanted in header else wanted.split(","):
            form = re.escape(pattern.strip()).replace(r"\*", "(.*)")
            matches = [match for name in header if (match := re.fullmatch(form, name))]
            if not matches:
                raise DataError(column_not_there(self.name, ours, pattern.strip(), header))
            short = re.search(r"[\W_]\*", pattern) is not None  # the label is the part after the mark
            columns |= {SEVERAL[ours] + ("".join(match.groups()) if short else match[0]): match[0] for match in matches}
        return columns

    def _of_columns(self, header: Sequence[str], rows: Sequence[str]) -> dict[str, str]:
        """Columns of annotators (or tasks) in a wide table: the given ones, or all except those of the rows."""
        what = self.axes[1]
        patterns = [pattern.strip() for pattern in self.layout.columns.get(what, "*").split(",")]
        matched = {name for pattern in patterns for name in header if fnmatchcase(name, pattern)} - {*rows}
        names = [name for name in header if name in matched]
        if not names:
            raise DataError(f"{self.name}: no column of {_A[what]} is named {' or '.join(map(repr, patterns))}.")
        if what not in self.layout.columns and (strangers := [name for name in names if is_no_annotator(name)]):
            raise self.no_annotators(names, strangers)
        if "" in names:
            way_out = Setting(self.layout.option, {what: "FIRST,SECOND"})
            raise DataError(f"{self.name}: a column has no name. Give it one, or name those of {what}s: {way_out}.")
        for name, times in Counter(names).items():
            if times > 1:
                raise DataError(f"{self.name}: column '{name}' is there {times} times. Keep one.")
        return {f"{LABEL_OF}{name}": name for name in names}

    def no_annotators(self, names: Sequence[str], strangers: Sequence[str], why: str = "") -> DataError:
        """Error for columns of a wide table that are not annotators (or tasks); tells how to name those that are."""
        apart = set(strangers)
        rest = ",".join(name for name in names if name not in apart) or "FIRST,SECOND"
        of_row, what = self.axes
        row = {of_row: self.layout.columns[of_row]} if of_row in self.layout.columns else {}
        names_them = f"Name the columns that are: {Setting(self.layout.option, {**row, what: rest})}"
        text = f"column '{strangers[0]}' does not look like {_A[what]}{why}. {names_them}; a * represents any letters."
        return DataError(f"{self.name}: {text}")

    def _platform_hint(self, header: Sequence[str]) -> str:
        """Sentence on the platform whose export a header looks like; "" if none."""
        suffix = ".json" if self.path is not None and self.path.suffix == ".json" else ".csv"
        for platform in PLATFORMS.values():
            if suffix in platform.suffixes and platform.is_own(dict.fromkeys(header, "")):
                return f"It looks like an export of {platform.title}: write {Setting('platform', platform.name)}."
        return ""

    def _missing(self, missing: Sequence[str], header: Sequence[str], columns: Mapping[str, str]) -> str:
        column, used = missing[0], set(columns.values())
        free = [name for name in header if name not in used]
        other = " (or 'worker')" if column == "annotator" else ""
        message = f"{self.name}: column '{column}'{other} is missing."
        if "task" in missing and {"left", "right"} <= {*free}:
            kind = Setting("kind", "preference")
            return f"{message} It looks like preferences (left, right), which are aggregated with {kind}."
        if "label" in missing and {"text", "spans"} <= {*free}:
            kind = Setting("kind", "sequence")
            return f"{message} It looks like sentences with marked spans, which are read with {kind}."
        sets = self.layout.no_label is not None  # sets of labels, which wide tables cannot have
        if hint := self._platform_hint(header):
            return f"{message} {hint}"
        near = {ours: did_you_mean(ours, free, LIKENESS) for ours in missing}
        if len(missing) == 1 and near[column]:
            return f"{message}{near[column]} Rename that column to '{column}'."
        if len(header) == 1 and self.path is not None and is_workbook(self.path):
            other = f"If another one holds the answers: {Setting('sheet', 'NAME')}."
            return f"{message} The sheet has one column, {header[0]!r}. {other}{ABOVE}"
        if len(header) == 1 and not self.sparse:
            separator = f"If something else separates the values, say so: {Setting('separator', '^')}."
            return f"{message} The whole header is one column, {header[0]!r}. {separator}{ABOVE}"
        # column names are rarely numbers
        numbers = self.layout.header and any(name.strip().isdecimal() for name in header)
        nothing = self.layout.header and not (columns or self.layout.columns or self.sparse)
        no_header = f" If the file has no header, say so: {Setting('header', False)}." if numbers or nothing else ""
        listed = ", ".join(map(short_repr, header[:20])) + (", ..." if len(header) > 20 else "")
        by_annotator = Setting("columns", {"annotator": "NAME"})
        if self.layout.wide:
            message += f" Where no column names it, {Setting('columns', {'task': ''})} takes the number of the row; "
            message += f"where a row is an annotator and each other column a task, {by_annotator} says who it is."
        if not sets and {"annotator", "label"} <= {*missing} and "task" in columns and len(free) > 1 and not numbers:
            wide, named = Setting("wide", True), Setting(self.layout.option, {column: "NAME"})
            of_wide = f"If a row is a task and each other column an annotator, say so: {wide}."
            return f"{message} The columns are {listed}. {of_wide} Otherwise say which column it is: {named}."
        if missing == ["position"]:
            message += " A sequence needs one row a token, with the token's position from 0."
        which = "it is"
        if len(missing) > 1:
            *earlier, last = (f"'{ours}'" for ours in missing)
            message = f"{self.name}: columns {', '.join(earlier)} and {last} are missing."
            message, which = message + "".join(dict.fromkeys(near.values())), "they are"
        if "label" in missing and len(free) > 2 and not (self.sparse or no_header):
            of_labels = Setting(self.layout.option, {"label": "FIRST,SECOND"})
            no_header = f" If each label has a column of 0 and 1: {of_labels}."
            if "task" in missing:
                wide = Setting("wide", True)
                no_header += f" If a row is an annotator and each other column a task: {wide} {by_annotator}."
        if inside := [name for name, value in getattr(self, "first", {}).items() if isinstance(value, (list, dict))]:
            no_header = f" Answers inside {inside[0]!r} are not read: write a line for each answer."
        if "left" in missing:
            lists = Setting(self.layout.option, {"ranking": "NAME", "annotator": "NAME"})
            no_header += f" If a column holds lists in order, such as a>b=c: {lists}."
        names = Setting(self.layout.option, dict.fromkeys(missing, "NAME"))
        return f"{message} The columns are {listed}. Say which {which}: {names}.{no_header}"


class TextSource(Source):
    """A text file, read in chunks of whole lines. Line 1 is the first line."""

    text = True
    quotes_span_lines = False
    header: list[str]

    def __init__(self, path: str | os.PathLike[str], kind: str, layout: Layout | None = None):
        super().__init__(kind, layout)
        self.path = Path(path)
        self.name = os.fspath(path)

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The file's bytes; for a workbook, those of its sheet as CSV."""
        if is_workbook(self.name):
            return sheet_csv(self.name, self.layout.sheet, self.layout.decimal)
        return open_regular(self.name)

    def read_header(self) -> list[str]:
        """Read names of columns from only the head of the file."""
        with self.open() as stream:
            self._read_header(*self._head(self._blocks(stream, 1 << 16)))
        return self.header

    def batches(self, may_be_empty: bool = False) -> Iterator[Batch]:
        """Iterate over the file from its start."""
        with self.open() as stream:
            blocks = self._blocks(stream, CHUNK_BYTES)
            head, line = self._head(blocks)
            start, line = self._read_header(head, line)
            self._choose_columns()
            tail, final, any_rows = head[start:], False, False
            while True:
                cut = len(tail) if final else tail.rfind(b"\n") + 1
                chunk, tail = tail[:cut], tail[cut:]
                left: list[bytes] = []
                for batch in self._parse(chunk, line, final, left):
                    any_rows = any_rows or batch.num_rows > 0 or bool(batch.bad)
                    yield batch
                if final:
                    break
                unfinished = b"".join(left)
                line += chunk.count(b"\n") - unfinished.count(b"\n")
                tail = unfinished + tail
                if len(tail) > LONGEST_LINE:
                    raise DataError(f"{self.name}, row {line}: the line is longer than {LONGEST_LINE >> 20} MiB.")
                block = next(blocks, b"")
                final = not block
                tail += block
            if not any_rows and not may_be_empty:
                raise DataError(f"{self.name} has a header but no rows.")

    def _head(self, blocks: Iterator[bytes]) -> tuple[bytes, int]:
        """Start of the file from its first non-blank line, which is complete, and the number of that line."""
        head, line = next(blocks, b""), 1
        while True:
            blank = head.rfind(b"\n", 0, len(head) - len(head.lstrip())) + 1
            line, head = line + head.count(b"\n", 0, blank), head[blank:]
            if b"\n" in head or len(head) > LONGEST_LINE or not (block := next(blocks, b"")):
                break
            head += block
        if not head.strip():
            raise DataError(f"{self.name} is empty.")
        return head, line

    def _blocks(self, stream: IO[bytes], size: int) -> Iterator[bytes]:
        """The file in blocks, as UTF-8."""
        encoding = None if is_workbook(self.name) else self.layout.encoding
        return utf8_blocks(self._text_blocks(stream, size), self.name, encoding)

    def _text_blocks(self, stream: IO[bytes], size: int) -> Iterator[bytes]:
        """The file in blocks, referenced only by the consumer; rejects files that are not text."""
        first = [stream.read(size)]
        for start, trouble in _NO_TEXT.items():
            if first[0].startswith(start):
                raise DataError(f"{self.name}: the file is {trouble}.")
        if re.match(rb"\s*<(!doctype html|html)\b", first[0], re.IGNORECASE):
            raise DataError(f"{self.name}: the file is a web page, perhaps that of a login; download it again.")
        yield first.pop()
        yield from iter(lambda: stream.read(size), b"")

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        """Read the column names; return the offset and line number of the first row."""
        raise NotImplementedError

    def _choose_columns(self) -> None:
        """Find the required columns in the header."""
        raise NotImplementedError

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        """Parse with Arrow a chunk whose lines end at `ends`; None if Arrow may misread it."""
        raise NotImplementedError

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        """Parse with Python; puts an unfinished record at the end into `left`."""
        raise NotImplementedError

    def _parse(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        """Parse a chunk to batches; puts bytes that belong to the next chunk into `left`."""
        if not chunk.strip():
            return
        if _MARK in chunk:  # a mark at the start of a line comes from concatenated files
            chunk = re.sub(rb"(?m)^" + _MARK, b"", chunk)
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
        # with an odd number of quotes, the cut may be inside a quoted value
        cut_inside = self.quotes_span_lines and chunk.count(b'"') % 2 == 1
        columns = None if cut_inside else self._fast(chunk, ends)
        if columns is None:
            yield from self._slow(chunk, line, final, left)
            return

        def originals(rows: Sequence[int]) -> list[str]:
            own = chunk.split(b"\n")
            return [readable(own[row]) for row in rows]

        yield Batch(columns, line, originals)

    def _batches(self, rows: Iterable[tuple[int, bytes, list[Any] | BadRow | None]]) -> Iterator[Batch]:
        """Build batches from Python's parser: line number, text, and values, a problem, or None."""
        lines: list[tuple[int, bytes, list[Any]]] = []
        bad: list[tuple[BadRow, str]] = []
        for line, text, values in rows:
            if isinstance(values, BadRow):
                bad.append((values, readable(text)))
            elif values is not None:
                lines.append((line, text, values))
            if len(lines) + len(bad) >= SLOW_ROWS:
                yield self._batch(lines, bad)
                lines, bad = [], []
        yield self._batch(lines, bad)

    def _batch(self, rows: list[tuple[int, bytes, list[Any]]], bad: list[tuple[BadRow, str]]) -> Batch:
        parts = ([values[place] for _, _, values in rows] for place in range(len(self.found)))
        columns = {name: pa.array(part, pa.large_string()) for name, part in zip(self.found, parts, strict=True)}
        lines = np.array([line for line, _, _ in rows], dtype=np.int64)
        return Batch(columns, lines, lambda wanted: [readable(rows[row][1]) for row in wanted], bad)
