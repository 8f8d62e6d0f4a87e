"""SpilledTable: annotations of classes that are read into files, where their rows do not fit into memory.

The rows go through the checks of `collect`, and then to disk three times: by column as they are read, by ranges of
tasks once the order of the tasks is known, and as what the caller makes of the ranges. Memory follows the names (of
tasks above all) and the largest range, not the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.vocabulary import Vocabulary, ranked
from crowdzoo.errors import SHOWN, BadRow
from crowdzoo.reading.tables.collecting import Collector, Late, check_rejects, without_cells
from crowdzoo.reading.tables.naming import warn_of_guess
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.row_checks import rejects_file
from crowdzoo.reading.tables.sources import Batch, Source

PART_ROWS = 1 << 22
MOST_PARTS = 500  # each is an open file while rows are sorted into them
COLUMNS = ("task", "annotator", "label")


@dataclass
class Part:
    """All rows of some tasks, in the order of the source.

    Attributes:
        begin: code of the first task.
        end: code after the last one. Tasks without rows count.
        task_ids: int [A].
        annotator_ids: int [A].
        labels: int [A].
    """

    begin: int
    end: int
    task_ids: np.ndarray
    annotator_ids: np.ndarray
    labels: np.ndarray


@dataclass
class SpilledTable:
    """What `Annotations` has, with the rows in files.

    Attributes:
        tasks: names in code order, integers as int64 [N], strings as an Arrow array [N].
        annotators: names in code order, [R].
        classes: names in code order, [K].
        annotations_per_annotator: int64 [R].
        num_annotations: number of rows that stay.
        num_rejected: number of rows left out.
        repeats: whether an annotator may have labelled a task more than once.
        parts: walks through the rows in ascending order of tasks; while the folder is there.
    """

    tasks: np.ndarray | pa.Array
    annotators: np.ndarray
    classes: np.ndarray
    annotations_per_annotator: np.ndarray
    num_annotations: int
    num_rejected: int
    repeats: bool
    parts: Callable[[], Iterator[Part]] = field(repr=False)

    @classmethod
    def read(cls, source: Source, rules: Rules, folder: Path, part_rows: int = PART_ROWS) -> SpilledTable:
        """Reads a source to its end.

        Args:
            source: source of the rows, of kind classification.
            rules: rules for the rows.
            folder: an empty folder for the rows. It takes up to 24 bytes a row, and at the end 7 to 20.
            part_rows: rows of a `Part`, roughly.

        Raises:
            DataError: as `crowdzoo.reading.tables.collecting.collect`, for the same sources and with the same words.
            ConfigError: see there.
        """
        check_rejects(source, rules)
        with rejects_file(rules.rejects) as reject:
            return _Spiller(without_cells(source, rules), rules, reject, folder, part_rows).table()


class _Column:
    """Numbers of a column, which are appended to files and read back by rows; integers may be names or codes."""

    def __init__(self, folder: Path, name: str):
        self._folder, self._name = folder, name
        self._pieces: list[tuple[int, np.dtype[Any], bool, Path]] = []  # first row, type, whether these are names
        self._file: Any = None
        self.length = 0

    def append(self, values: np.ndarray, are_names: bool) -> None:
        wide = bool(self._pieces) and self._pieces[-1][1:3] == (np.dtype(np.int64), are_names)
        small = len(values) == 0 or (values.min() >= -(2**31) and values.max() < 2**31)
        dtype = np.dtype(np.int32 if small and not wide else np.int64)
        if not self._pieces or self._pieces[-1][1:3] != (dtype, are_names):
            self.close()
            path = self._folder / f"{self._name}-{len(self._pieces)}.rows"
            self._pieces.append((self.length, dtype, are_names, path))
            self._file = open(path, "wb")  # noqa: SIM115  (closed by `close`)
        self._file.write(np.ascontiguousarray(values, dtype).data)
        self.length += len(values)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self, begin: int, end: int) -> Iterator[tuple[np.ndarray, bool]]:
        """The rows from `begin` to `end`, and whether they are names, piece by piece."""
        ends = [first for first, *_ in self._pieces[1:]] + [self.length]
        for (first, dtype, are_names, path), last in zip(self._pieces, ends, strict=True):
            low, high = max(begin, first), min(end, last)
            if low < high:
                yield np.fromfile(path, dtype, high - low, offset=(low - first) * dtype.itemsize), are_names

    def remove(self) -> None:
        self.close()
        for *_, path in self._pieces:
            path.unlink()


class _Distinct:
    """The distinct ones of integers that come in parts."""

    def __init__(self) -> None:
        self._known, self._waiting, self._num_waiting = np.empty(0, np.int64), list[np.ndarray](), 0

    def add(self, values: np.ndarray) -> None:
        part = ranked(values)[0].astype(np.int64)
        self._waiting.append(part)
        self._num_waiting += len(part)
        if self._num_waiting > max(1 << 20, len(self._known)):
            self.names()

    def names(self) -> np.ndarray:
        """Those so far, ascending, int64 [n]."""
        if self._waiting:
            parts, self._waiting, self._num_waiting = [self._known, *self._waiting], [], 0
            self._known = ranked(np.concatenate(parts))[0]
        return self._known


class _SpilledVocabulary(Vocabulary):
    """A vocabulary whose rows go to a column on disk: integers as they are, other names as codes."""

    def __init__(self, given: np.ndarray | None, column: _Column):
        super().__init__(given)
        self.column = column
        self._distinct = _Distinct()
        self._sorted_integers = np.empty(0, np.int64)

    def add_integers(self, values: np.ndarray, are_strings: bool = False) -> None:
        self.integers_are_strings |= are_strings
        self._distinct.add(values)
        self.column.append(values, are_names=True)

    def _leave_integers(self) -> None:
        if self.takes_integers:
            self.takes_integers = False
            self._take_integers()

    def _take_integers(self) -> None:
        self._sorted_integers = self._distinct.names()
        if len(self._sorted_integers):
            self._names = pa.array(self._sorted_integers)

    def _merge(self) -> None:
        if self._pending:
            super()._merge()
        for codes in self._codes:
            self.column.append(codes, are_names=False)
        self._codes = []

    def end(self) -> None:
        """After the last row."""
        if self.takes_integers:
            self._take_integers()
            if self.integers_are_strings and self._names is not None:
                self._names = self._names.cast(pa.large_string())
        else:
            self._merge()
        self.column.close()

    def rows(self, begin: int, end: int) -> np.ndarray:
        """Codes of the rows from `begin` to `end`, as `Vocabulary.codes` gives them."""
        parts = [self._codes_of(values) if are_names else values for values, are_names in self.column.read(begin, end)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int32), *parts])

    def _codes_of(self, integers: np.ndarray) -> np.ndarray:
        names = self._sorted_integers
        if int(names[-1]) - int(names[0]) == len(names) - 1:
            return integers - integers.dtype.type(names[0]) if names[0] else integers
        return np.searchsorted(names, integers)

    def settle(self, used: np.ndarray, text: bool, numbers: bool = False) -> tuple[np.ndarray, np.ndarray | pa.Array]:
        if self.given is not None or not self.takes_integers or self.integers_are_strings:
            return super().settle(used, text, numbers)
        # they are in order already
        place: np.ndarray = np.cumsum(used, dtype=np.int32 if len(used) < 2**31 else np.int64)
        place -= 1
        place[~used] = -1
        return place, self._sorted_integers if used.all() else self._sorted_integers[used]


class _Spiller(Collector):
    """A `Collector` that looks at some rows at a time, once all are read."""

    def __init__(
        self, source: Source, rules: Rules, reject: Callable[[BadRow, str], None], folder: Path, part_rows: int
    ):
        super().__init__(
            source, rules, reject, lambda column, given: _SpilledVocabulary(given, _Column(folder, column))
        )
        self.folder, self.part_rows = folder, part_rows
        self.other_lines = _Column(folder, "line")  # of batches whose rows stand on other than consecutive lines
        self.place = np.empty(0, np.int64)  # of `self.rows` among all rows
        self.num_late = self.num_errors = 0
        self.found: dict[str, list[tuple[int, tuple[str, Any, str]]]] = {}  # check -> lines, and what is wrong there

    def vocabulary(self, column: str) -> _SpilledVocabulary:
        """The one of a column."""
        found = self.vocabularies[column]
        assert isinstance(found, _SpilledVocabulary)
        return found

    def table(self) -> SpilledTable:
        """Reads, checks and sorts all rows."""
        for batch in self.source.some_batches():
            self._add(batch)
        for column in COLUMNS:
            self.vocabulary(column).end()
        self.other_lines.close()
        warn_of_guess(self.source.name, self.source.guessed, self.source.layout.option, stacklevel=6)
        self._refuse_nothing()
        num_rows = sum(self.counts)
        task_counts, annotator_used = self._count(num_rows)
        source = self.source
        task_place, tasks = self.vocabulary("task").settle(task_counts > 0, source.text)
        annotator_place, annotators = self.vocabulary("annotator").settle(annotator_used, source.text)
        in_order = np.zeros(len(tasks), np.int64)
        in_order[task_place[task_place >= 0]] = task_counts[task_place >= 0]
        del task_counts
        starts = self._part_starts(in_order)
        del in_order
        files = _PartFiles(self.folder, starts, len(tasks), self._record(num_rows))
        self._sort_into(files, task_place, num_rows)
        label_counts, annotator_counts, num_kept = self._check_parts(files)
        self.late = [self._as_late(entries) for entries in self.found.values()]
        self.num_kept = num_kept
        self._stop_if_bad()
        self._write_late()
        self._tell_left_out(self.num_bad + self.num_late, num_kept)
        self._tell_alike(annotators)
        label_place, names = self.vocabulary("label").settle(label_counts > 0, source.text, numbers=True)
        classes = names if isinstance(names, np.ndarray) else names.to_numpy(zero_copy_only=False)
        self._check_several(classes)
        by_class = np.zeros(len(classes), np.int64)
        np.add.at(by_class, label_place[label_place >= 0], label_counts[label_place >= 0])
        self._tell_suspicious(classes, by_class)
        per_annotator = np.zeros(len(annotators), np.int64)
        per_annotator[annotator_place[annotator_place >= 0]] = annotator_counts[annotator_place >= 0]

        def parts() -> Iterator[Part]:
            for number in range(len(starts)):
                rows = files.read(number)
                columns = (
                    place[rows[name]]
                    for name, place in zip(COLUMNS, (task_place, annotator_place, label_place), strict=True)
                )
                yield Part(*files.tasks(number), *columns)

        return SpilledTable(
            tasks,
            annotators if isinstance(annotators, np.ndarray) else annotators.to_numpy(zero_copy_only=False),
            classes,
            per_annotator,
            num_kept,
            self.num_bad + self.num_late,
            self.repeats,
            parts,
        )

    # === While reading ===

    def _add(self, batch: Batch) -> None:
        super()._add(batch)
        self.numbers.clear()  # confidences and times are checked, and not kept
        lines = self.lines[-1]
        if isinstance(lines, np.ndarray):
            self.lines[-1] = -1 - self.other_lines.length
            self.other_lines.append(lines, are_names=False)

    def _origin(self, batch: int) -> int | np.ndarray:
        line = self.lines[batch]
        assert isinstance(line, int)
        if line >= 0:
            return line
        begin = -1 - line
        return np.concatenate([part for part, _ in self.other_lines.read(begin, begin + self.counts[batch])])

    # === Some rows at a time ===

    def _windows(self, num_rows: int) -> Iterator[None]:
        """Takes up some rows after the others, in their order, without those of names that were not given."""
        for begin in range(0, num_rows, self.part_rows):
            end = min(begin + self.part_rows, num_rows)
            self.rows = {column: self.vocabulary(column).rows(begin, end) for column in COLUMNS}
            self.place, self.keep = np.arange(begin, end), np.ones(end - begin, bool)
            yield

    def _count(self, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """How many rows stay of each task, and which annotators have one; leaves out those of other names."""
        counts = np.zeros(len(self.vocabulary("task")), np.int32 if num_rows < 2**31 else np.int64)
        used = np.zeros(len(self.vocabulary("annotator")), bool)
        for _ in self._windows(num_rows):
            for column in ("task", "annotator"):
                self.check = column
                self._check_given(column)
            np.add.at(counts, self.rows["task"][self.keep], 1)
            used[self.rows["annotator"][self.keep]] = True
        return counts, used

    def _part_starts(self, counts: np.ndarray) -> np.ndarray:
        """First tasks of the parts, int64 [P]."""
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        size = max(self.part_rows, -(-total // MOST_PARTS))
        starts = np.searchsorted(ends, np.arange(size, total, size), side="right")
        return np.unique(np.concatenate([[0], starts]))

    def _record(self, num_rows: int) -> np.dtype[Any]:
        """A row in the file of a part: its number, and its codes as they were given out."""
        codes = [(column, np.min_scalar_type(max(len(self.vocabulary(column)), 1))) for column in COLUMNS]
        return np.dtype([("row", np.min_scalar_type(max(num_rows, 1))), *codes])

    def _sort_into(self, files: _PartFiles, task_place: np.ndarray, num_rows: int) -> None:
        with files:
            for _ in self._windows(num_rows):
                for column in ("task", "annotator"):
                    given = self.vocabulary(column).given
                    if given is not None:
                        self.keep &= self.rows[column] < len(given)
                rows = np.empty(np.count_nonzero(self.keep), files.record)
                rows["row"] = self.place[self.keep]
                for column in COLUMNS:
                    rows[column] = self.rows[column][self.keep]
                files.append(rows, task_place[rows["task"]])
        for column in COLUMNS:
            self.vocabulary(column).column.remove()

    def _check_parts(self, files: _PartFiles) -> tuple[np.ndarray, np.ndarray, int]:
        """Leaves out repeated rows. How often each label and annotator occur in the others, and how many these are."""
        labels = np.zeros(len(self.vocabulary("label")), np.int64)
        annotators = np.zeros(len(self.vocabulary("annotator")), np.int64)
        num_kept = 0
        self.check = "repeats"
        for number in range(len(files.starts)):
            rows = files.read(number)
            self.rows = {column: rows[column].astype(np.int64) for column in COLUMNS}
            self.place, self.keep = rows["row"].astype(np.int64), np.ones(len(rows), bool)
            earlier, self.repeat = self.repeat, None
            self._check_repeats()
            if self.repeat is None or (earlier is not None and (earlier.row or 0) < (self.repeat.row or 0)):
                self.repeat = earlier
            if not self.keep.all():
                rows = rows[self.keep]
                files.write(number, rows)
            labels += np.bincount(rows["label"], minlength=len(labels))
            annotators += np.bincount(rows["annotator"], minlength=len(annotators))
            num_kept += len(rows)
        return labels, annotators, num_kept

    # === What is wrong, in words as soon as it is found: the rows are gone later ===

    def _line_numbers(self, rows: np.ndarray) -> np.ndarray:
        return super()._line_numbers(self.place[rows])

    def _leave_out(
        self, rows: np.ndarray, describe: Callable[[int], tuple[str, Any, str]], shown: np.ndarray | None = None
    ) -> None:
        if not len(rows):
            return
        self.keep[rows] = False
        errors = np.arange(len(rows)) if shown is None else shown
        self.num_late += len(rows)
        self.num_errors += len(errors)
        lines = self._line_numbers(rows)
        wanted = range(len(rows)) if self._keeps_all else errors[:SHOWN].tolist()
        entries = self.found.setdefault(self.check, [])
        entries += [(int(lines[number]), describe(number)) for number in wanted]
        entries.sort(key=lambda entry: entry[0])
        if not self._keeps_all:
            del entries[SHOWN:]
        self.late = [Late(lines, describe, errors)]  # of which `_check_repeats` takes an example

    def _as_late(self, entries: list[tuple[int, tuple[str, Any, str]]]) -> Late:
        errors = len(entries) if self.num_errors else 0
        return Late(np.array([line for line, _ in entries]), lambda number: entries[number][1], np.arange(errors))

    def _num_late(self) -> int:
        return self.num_errors

    def _keeps_any(self) -> bool:
        return self.num_kept > 0


class _PartFiles:
    """Rows in a file for each range of tasks."""

    def __init__(self, folder: Path, starts: np.ndarray, num_tasks: int, record: np.dtype[Any]):
        self.folder, self.starts, self.num_tasks, self.record = folder, starts, num_tasks, record
        self._files: list[Any] = []

    def __enter__(self) -> None:
        self._files = [open(self._path(number), "wb") for number in range(len(self.starts))]  # noqa: SIM115  (closed below)

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.close()

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.rows"

    def tasks(self, number: int) -> tuple[int, int]:
        """First task of a part, and the one after its last."""
        ends = [*self.starts[1:].tolist(), self.num_tasks]
        return int(self.starts[number]), ends[number]

    def append(self, rows: np.ndarray, tasks: np.ndarray) -> None:
        """Adds each row to the part of its task; rows keep their order."""
        part = np.searchsorted(self.starts, tasks, side="right") - 1
        if len(part) and (part[1:] < part[:-1]).any():
            order = np.argsort(part, kind="stable")
            rows, part = rows[order], part[order]
        edges = np.searchsorted(part, np.arange(len(self.starts) + 1))
        for number, file in enumerate(self._files):
            if edges[number] < edges[number + 1]:
                file.write(rows[edges[number] : edges[number + 1]].data)

    def write(self, number: int, rows: np.ndarray) -> None:
        """Replaces the rows of a part."""
        rows.tofile(self._path(number))

    def read(self, number: int) -> np.ndarray:
        """The rows of a part."""
        return np.fromfile(self._path(number), self.record)
