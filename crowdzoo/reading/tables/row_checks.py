"""Checks rows one by one as they stream in, keeps the bad ones apart, and turns the good ones into codes."""

import contextlib
import csv
import functools
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.data.annotations import VOCABULARIES
from crowdzoo.data.numbers import Problem, numbers_of, outside_scale, scale_reason
from crowdzoo.data.vocabulary import Vocabulary, as_named, is_among, text_as_integers
from crowdzoo.errors import SHOWN, BadRow, DataError, Setting, did_you_mean, short_repr
from crowdzoo.files.writing import atomic_file
from crowdzoo.reading.tables.cells import YES, check_pairs
from crowdzoo.reading.tables.layout import OPTIONAL
from crowdzoo.reading.tables.naming import VOID
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.sources import Batch, Source

_WORDS = ["rejected", "draft", "skipped", "deleted", "cancelled", "canceled", "discarded", "expired", "survey preview"]

HEADER = ("file", "row", "column", "value", "reason", "original")


@contextlib.contextmanager
def rejects_file(path: Path | None) -> Iterator[Callable[[BadRow, str], None]]:
    """Makes a CSV file of rejected rows, which appears when it is complete.

    Args:
        path: path of the file, or None to write nothing.

    Yields:
        A function that adds a row: what is wrong, and the row as it stands in its file.
    """
    if path is None:
        yield lambda problem, original: None
        return
    with atomic_file(path) as file:
        # half a character, which UTF-8 has not, as \\ud800
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        writer = csv.writer(text)
        writer.writerow(HEADER)

        def write(problem: BadRow, original: str) -> None:
            row = [problem.file, problem.row, problem.column, problem.value, problem.reason, original]
            # before Python 3.11 the csv module writes no NUL
            writer.writerow([cell.replace("\0", "\\x00") if isinstance(cell, str) else cell for cell in row])

        try:
            yield write
        finally:
            text.detach()  # writes the rest; the file is closed by who opened it


class RowChecks:
    """Checks rows as they come, each by itself.

    Args:
        source: source of the rows.
        rules: rules for the rows.
        reject: takes a bad row, and the row's own text.
    """

    def __init__(self, source: Source, rules: Rules, reject: Callable[[BadRow, str], None]):
        self.source = source
        self.rules = rules
        self.reject = reject
        named = [column for column in VOCABULARIES if column in source.required]
        if source.label_kind.has_numbers:
            named.remove("label")
        self.vocabularies = {column: Vocabulary(rules.names[column]) for column in named}
        self.numbers: dict[str, list[np.ndarray]] = {}  # parts of the columns that hold numbers
        self.lines: list[int | np.ndarray] = []
        self.counts: list[int] = []
        self.shown: list[BadRow] = []  # the first bad rows, for the error
        self.repeat: BadRow | None = None  # a repeated row that a policy dropped, for the warning
        self.unread: dict[str, str] = {}  # optional columns that are left out, and why
        self.num_bad = 0  # rows found bad while reading
        self.num_void = 0
        self.excluded: set[str] = set()  # annotators of `rules.exclude` who were met
        self.repeats = False  # rows with an annotator and task of another row were kept
        # once all is read: codes and numbers of the rows that passed
        self.rows: dict[str, np.ndarray] = {}

    @property
    def sides(self) -> tuple[str, ...]:
        """The columns of tasks."""
        return ("left", "right") if self.source.label_kind.has_pairs else ("task",)

    def _excluded(self, values: pa.Array) -> np.ndarray:
        """Which rows are of annotators who are left out, bool [n]."""
        objects = self.source.objects.get("annotator")
        names = values.cast(pa.large_string()) if objects is None else pa.array(map(str, objects), pa.large_string())
        names = pc.utf8_trim_whitespace(names)
        gone = is_among(names, list(self.rules.exclude))
        self.excluded |= set(names.filter(pa.array(gone)).unique().to_pylist())
        return gone if objects is None else gone[values.to_numpy()]

    def _add(self, batch: Batch) -> None:
        if not self.counts:
            check_pairs(self.source, self.rules, batch)
        bad_rows: list[tuple[int, str, Any, str]] = []
        num_found = 0
        good = (
            ~self._excluded(batch.columns["annotator"]) if self.rules.exclude else np.ones(batch.num_rows, dtype=bool)
        )
        for column in [column for column in batch.columns if column.startswith(VOID)]:
            words = pc.utf8_lower(pc.utf8_trim_whitespace(batch.columns.pop(column).cast(pa.large_string())))
            of_status = "status" in column.casefold()  # where 1 may mean that it is done
            marked = good & is_among(words.fill_null(""), _WORDS if of_status else [*YES, *_WORDS])
            good, self.num_void = good & ~marked, self.num_void + int(marked.sum())
        arrays: dict[str, np.ndarray] = {}  # integers, codes or numbers
        dictionaries: dict[str, pa.Array] = {}
        for column, values in batch.columns.items():
            if column in self.unread:
                continue
            if (integers := self._integers(column, values)) is not None:
                arrays[column] = integers
                continue
            if column in self.vocabularies:
                dictionaries[column], arrays[column], problems = self._names(column, values)
            else:
                arrays[column], problems = numbers_of(column, values, self.source.layout.decimal)
                if self._is_unread(column, values, arrays[column], problems):
                    del arrays[column]
                    continue
                if column == "label" and self.rules.scale != (None, None):
                    outside = np.flatnonzero(outside_scale(arrays[column], *self.rules.scale))
                    problems.append((outside, scale_reason(*self.rules.scale)))
            for rows, reason in problems:
                rows = rows[good[rows]]
                good[rows] = False
                num_found += len(rows)
                listed = rows if self._keeps_all else rows[:SHOWN]
                examples = values.take(pa.array(listed, type=pa.int64())).to_pylist()
                for row, value in zip(listed.tolist(), examples, strict=True):
                    value = self.source.display(column, value)
                    why = reason if isinstance(reason, str) else reason(value)
                    if column in OPTIONAL:
                        why += f" Or leave the column out: {Setting(self.source.layout.option, {column: ''})}."
                    bad_rows.append((row, column, value, why))
        self._note_bad(batch, bad_rows, num_found)
        all_good = bool(good.all())
        self.lines.append(batch.lines if all_good else batch.line_numbers()[good])
        self.counts.append(int(good.sum()))
        for column, array in arrays.items():
            array = array if all_good else array[good]
            if column in dictionaries:
                self.vocabularies[column].add(dictionaries[column], array)
            elif column in self.vocabularies:
                are_strings = not self.source.text and pa.types.is_large_string(batch.columns[column].type)
                self.vocabularies[column].add_integers(array, are_strings)
            else:
                self.numbers.setdefault(column, []).append(array)

    def _is_unread(self, column: str, values: pa.Array, numbers: np.ndarray, problems: list[Problem]) -> bool:
        """Whether nothing in the beginning of a column that nobody named can be read; it is then left out."""
        if column not in OPTIONAL or column in self.source.layout.columns or not problems or any(self.counts):
            return False
        if sum(len(rows) for rows, _ in problems) < np.count_nonzero(~np.isnan(numbers)):
            return False
        rows, reason = problems[0]
        value = values[int(rows[0])].as_py()
        self.unread[column] = f"{short_repr(value)} {reason if isinstance(reason, str) else reason(value)}"
        self.numbers.pop(column, None)  # of batches without a good row
        return True

    @property
    def _keeps_all(self) -> bool:
        return self.rules.on_bad_rows == "reject" and self.rules.rejects is not None

    def _note_bad(self, batch: Batch, bad_rows: list[tuple[int, str, Any, str]], num_found: int) -> None:
        """Notes a batch's bad rows in the order of their lines."""
        if not num_found and not batch.bad:
            return
        bad_rows.sort(key=lambda entry: entry[0])
        if not self._keeps_all:
            bad_rows = bad_rows[:SHOWN]
        lines = batch.line_numbers()
        originals = batch.originals([entry[0] for entry in bad_rows])
        problems = list(batch.bad)
        for (row, column, value, reason), original in zip(bad_rows, originals, strict=True):
            name = batch.cell(row) if column == "label" and batch.cell is not None else self._column(column)
            problems.append((BadRow(self.source.name, int(lines[row]), name, value, reason), original))
        problems.sort(key=lambda entry: entry[0].row or 0)
        self.shown += [problem for problem, _ in problems[: SHOWN - len(self.shown)]]
        for problem, original in problems:
            self.reject(problem, original)
        self.num_bad += num_found + len(batch.bad)

    def _name(self, column: str, row: int) -> Any:
        """The name that a row has in a column, once all is read."""
        return self.source.display(column, self.vocabularies[column].name(self.rows[column][row]))

    def _column(self, column: str) -> str | None:
        return self.source.found.get(column, column) or None

    def _integers(self, column: str, values: pa.Array) -> np.ndarray | None:
        """The short way for ids that are integers, all of them so far and without a bad one; None on the long way."""
        if column not in self.vocabularies or not self.vocabularies[column].takes_integers:
            return None
        if column == "label" and self.source.label_kind.has_regions:
            return None
        if pa.types.is_integer(values.type) and not values.null_count:
            return values.to_numpy()
        return text_as_integers(values) if pa.types.is_large_string(values.type) else None

    def _names(self, column: str, values: pa.Array) -> tuple[pa.Array, np.ndarray, list[Problem]]:
        """The chunk's own dictionary and codes (-1 for a bad one), and the bad rows with reasons."""
        problems: list[Problem] = []
        if pa.types.is_floating(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            whole = np.isnan(numbers) | ((np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53))
            if not whole.all():
                problems.append((np.flatnonzero(~whole), "is not an id. Use strings or integers."))
            missing = np.isnan(numbers) | ~whole
            values = pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)
        encoded = values.dictionary_encode()
        dictionary = encoded.dictionary
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if pa.types.is_large_string(dictionary.type):
            trimmed = pc.utf8_trim_whitespace(dictionary)
            blank = pc.equal(trimmed, "").to_numpy(zero_copy_only=False)
            if self.source.trim:
                dictionary = trimmed
        else:
            blank = np.zeros(len(dictionary), dtype=bool)
        empty = codes < 0
        if blank.any():
            empty |= blank[codes]
        if empty.any():
            problems.append((np.flatnonzero(empty), "is empty. Fill it in, or remove the row."))
        if column == "label" and self.source.label_kind.has_regions:
            bad = np.array([*(self._no_regions(text) != "" for text in dictionary.to_pylist()), False])  # -1 is empty
            problems.append((np.flatnonzero(bad[codes] & ~empty), self._no_regions))
        if column == "label" and (classes := self.rules.names["label"]) is not None:
            if self.source.text:
                dictionary = as_named(dictionary, classes)
            outside = ~is_among(dictionary, classes) & ~blank
            if outside.any():
                problems.append((np.flatnonzero(outside[codes] & ~empty), self._not_one_of("label")))
        return dictionary, codes, problems

    def _no_regions(self, label: object) -> str:
        """Why a label holds no regions, as the end of a sentence; "" where it does."""
        try:
            self.source.image(str(label))
        except DataError as error:
            return str(error).removeprefix(f"{short_repr(str(label))} ")
        return ""

    def _not_one_of(self, column: str) -> Callable[[Any], str]:
        allowed = self.rules.names[column]
        assert allowed is not None
        names, what = allowed.tolist(), VOCABULARIES[column]
        hint = ""
        if column == "label" and self.source.label_kind.has_pairs:
            hint = " If the file has other words for left, right and equal, name them in this order: "
            hint += f"{Setting('classes', ['LEFT', 'RIGHT', 'EQUAL'])}."
        first_names = ", ".join(repr(name) for name in names[:10])
        listed = f"[{first_names}, ... {len(names) - 10:,} more]" if len(names) > 10 else f"[{first_names}]"

        @functools.cache
        def reason(value: Any) -> str:
            # an id of other digits is another id, however near it is
            near = names if column == "label" else [name for name in names if _digits(name) == _digits(value)]
            suggestion = did_you_mean(value, near)
            if not suggestion or str(value).casefold() in names:  # of other letters alone the file may have all
                suggestion += hint
            return f"is not one of the {what} {listed}.{suggestion}"

        return reason


def _digits(name: Any) -> str:
    return "".join(letter for letter in str(name) if letter.isdigit())
