"""Checks rows as they stream in, keeps the bad ones apart, and turns the good ones into codes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import SHOWN, BadRow, DataError, did_you_mean
from crowdzoo.files.paths import check_output_file
from crowdzoo.tables.numbers import Problem, numbers_of
from crowdzoo.tables.options import VOCABULARIES, Rules
from crowdzoo.tables.rejects import Rejects
from crowdzoo.tables.scale import outside_scale, scale_reason
from crowdzoo.tables.sources import Batch, Source
from crowdzoo.tables.vocabulary import Vocabulary, text_as_integers

__all__ = ["collect"]

_ATTRIBUTES = {"task": "task_ids", "annotator": "annotator_ids", "label": "labels", "position": "positions"}

_WAY_OUT = "Fix the file, or skip bad rows with on_bad_rows='reject' (rejects=FILE keeps them)."


def collect(source: Source, rules: Rules) -> dict[str, Any]:
    """Reads a source to its end.

    Args:
        source: source of the rows.
        rules: rules for the rows.

    Returns:
        The arguments of `Annotations`.

    Raises:
        DataError: for bad rows, unless they are to be rejected; or where no row is left.
        ConfigError: `rejects` is the file that is read, no regular file, or cannot be written.
    """
    if rules.rejects is not None:
        check_output_file(rules.rejects, "rejects", inputs=[] if source.path is None else [source.path])
    with Rejects(rules.rejects) as rejects:
        return _Collector(source, rules, rejects).run()


@dataclass
class _Late:
    """Rows found bad after the last one was read, sorted by line."""

    lines: np.ndarray
    describe: Callable[[int], tuple[str, Any, str]]  # number among `lines` -> column, value, reason
    shown: np.ndarray  # numbers among `lines` that an error lists and counts


class _Collector:
    def __init__(self, source: Source, rules: Rules, rejects: Rejects):
        self.source = source
        self.rules = rules
        self.rejects = rejects
        named = [column for column in VOCABULARIES if column != "label" or source.label_kind.has_classes]
        self.vocabularies = {column: Vocabulary(rules.names[column]) for column in named}
        self.numbers: dict[str, list[np.ndarray]] = {}
        self.lines: list[int | np.ndarray] = []
        self.counts: list[int] = []
        self.shown: list[BadRow] = []  # the first bad rows, for the error
        self.repeat: BadRow | None = None  # a repeated row that a policy dropped, for the warning
        self.num_bad = 0
        self.num_left_out = 0

    def run(self) -> dict[str, Any]:
        for batch in self.source.batches():
            self._add(batch)
        codes = {name: vocabulary.codes() for name, vocabulary in self.vocabularies.items()}
        numbers = {name: np.concatenate(parts) for name, parts in self.numbers.items()}
        self.numbers.clear()
        if self.source.sparse:
            numbers = {
                name: values
                for name, values in numbers.items()
                if name not in ("confidence", "timestamp") or not np.isnan(values).all()
            }
        given = self.rules.names["task"] is not None and self.rules.names["annotator"] is not None
        if not (sum(self.counts) or self.num_bad or given):
            raise DataError(f"{self.source.name} has no rows.")
        late: list[_Late] = []
        keep = self._check_given(codes, late)
        keep = self._check_repeats(codes, numbers, keep, late)
        if self.source.label_kind.has_positions:
            keep = self._check_lengths(codes, numbers, keep, late)
        self._stop_if_bad(late)
        self._write_late(late)
        if keep is not None:
            codes = {name: values[keep] for name, values in codes.items()}
            numbers = {name: values[keep] for name, values in numbers.items()}
        if self.num_left_out and not len(codes["task"]):
            raise DataError(
                f"{self.source.name}: all {self.num_left_out:,} rows are bad.", self.shown, self.num_left_out
            )
        if self.num_left_out and self.rejects.path is None:
            example = self.shown[0] if self.shown else self.repeat
            text = f"{self.num_left_out:,} row{'s were' if self.num_left_out > 1 else ' was'} left out, e.g. {example}"
            warnings.warn(text, UserWarning, stacklevel=5)
        result: dict[str, Any] = {"kind": self.source.label_kind.name, "num_rejected": self.num_left_out}
        for column in list(codes):
            values, names = self.vocabularies[column].finish(codes.pop(column), self.source.text)
            result[_ATTRIBUTES[column]] = values
            if column in self.source.objects:
                names = self.source.objects[column][names]
            result[VOCABULARIES[column]] = names
        for column, values in numbers.items():
            result[_ATTRIBUTES.get(column, column)] = values
        return result

    # === Row by row, while reading ===

    def _add(self, batch: Batch) -> None:
        found: list[tuple[int, str, Any, str]] = []
        num_found = 0
        good = np.ones(batch.num_rows, dtype=bool)
        encoded: dict[str, tuple[pa.Array, np.ndarray]] = {}
        whole: dict[str, np.ndarray] = {}
        numbers: dict[str, np.ndarray] = {}
        for column, values in batch.columns.items():
            if (integers := self._integers(column, values)) is not None:
                whole[column] = integers
                continue
            if column in self.vocabularies:
                dictionary, codes, problems = self._names(column, values)
                encoded[column] = dictionary, codes
            else:
                numbers[column], problems = numbers_of(column, values)
                if column == "label" and self.rules.scale != (None, None):
                    outside = np.flatnonzero(outside_scale(numbers[column], *self.rules.scale))
                    problems.append((outside, scale_reason(*self.rules.scale)))
            for rows, reason in problems:
                rows = rows[good[rows]]
                good[rows] = False
                num_found += len(rows)
                listed = rows if self._keeps_all else rows[:SHOWN]
                shown = values.take(pa.array(listed, type=pa.int64())).to_pylist()
                for row, value in zip(listed.tolist(), shown, strict=True):
                    value = self.source.display(column, value)
                    found.append((row, column, value, reason if isinstance(reason, str) else reason(value)))
        lines: int | np.ndarray = batch.lines
        self._note_batch(batch, found, num_found)
        if num_found:
            lines = batch.line_numbers()[good]
            encoded = {name: (dictionary, codes[good]) for name, (dictionary, codes) in encoded.items()}
            whole = {name: values[good] for name, values in whole.items()}
            numbers = {name: values[good] for name, values in numbers.items()}
        self.lines.append(lines)
        self.counts.append(int(good.sum()))
        for name, (dictionary, codes) in encoded.items():
            self.vocabularies[name].add(dictionary, codes)
        for name, integers in whole.items():
            are_strings = not self.source.text and pa.types.is_large_string(batch.columns[name].type)
            self.vocabularies[name].add_integers(integers, are_strings)
        for name, values in numbers.items():
            self.numbers.setdefault(name, []).append(values)

    @property
    def _keeps_all(self) -> bool:
        return self.rules.on_bad_rows == "reject" and self.rejects.path is not None

    def _note_batch(self, batch: Batch, found: list[tuple[int, str, Any, str]], num_found: int) -> None:
        """Notes a batch's bad rows in the order of their lines."""
        if not num_found and not batch.bad:
            return
        found.sort(key=lambda entry: entry[0])
        if not self._keeps_all:
            found = found[:SHOWN]
        lines = batch.line_numbers()
        originals = batch.originals([entry[0] for entry in found])
        problems = list(batch.bad)
        for (row, column, value, reason), original in zip(found, originals, strict=True):
            problems.append((BadRow(self.source.name, int(lines[row]), self._column(column), value, reason), original))
        problems.sort(key=lambda entry: entry[0].row or 0)
        for problem, original in problems:
            self._note(problem, original)
        self.num_bad += num_found - len(found)
        self.num_left_out += num_found - len(found)

    def _note(self, problem: BadRow, original: str) -> None:
        self.num_bad += 1
        self.num_left_out += 1
        if len(self.shown) < SHOWN:
            self.shown.append(problem)
        if self.rules.on_bad_rows == "reject":
            self.rejects.write(problem, original)

    def _name(self, column: str, code: int) -> Any:
        return self.source.display(column, self.vocabularies[column].name(code))

    def _column(self, column: str) -> str:
        return self.source.found.get(column, column)

    def _integers(self, column: str, values: pa.Array) -> np.ndarray | None:
        """The short way for ids that are integers, all of them so far and without a bad one; None on the long way."""
        if column not in self.vocabularies or not self.vocabularies[column].takes_integers:
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
        if column == "label" and (classes := self.rules.names["label"]) is not None:
            outside = _outside(dictionary, classes) & ~blank
            if outside.any():
                problems.append((np.flatnonzero(outside[codes] & ~empty), self._not_one_of("label")))
        return dictionary, codes, problems

    def _not_one_of(self, column: str) -> Callable[[Any], str]:
        given = self.rules.names[column]
        assert given is not None
        names, what = given.tolist(), VOCABULARIES[column]
        shown = ", ".join(repr(name) for name in names[:10])
        listed = f"[{shown}, ... {len(names) - 10:,} more]" if len(names) > 10 else f"[{shown}]"
        hints: dict[Any, str] = {}

        def reason(value: Any) -> str:
            if value not in hints:
                hints[value] = f"is not one of the {what} {listed}.{did_you_mean(value, names)}"
            return hints[value]

        return reason

    # === All rows at once, after reading ===

    def _check_given(self, codes: dict[str, np.ndarray], late: list[_Late]) -> np.ndarray | None:
        """Rows whose task or annotator is none of the given ones."""
        keep: np.ndarray | None = None
        for column in ("task", "annotator"):
            vocabulary = self.vocabularies[column]
            if vocabulary.given is None or len(vocabulary) <= vocabulary.num_given:
                continue
            outside = codes[column] >= vocabulary.num_given
            if keep is not None:
                outside &= keep
            rows = np.flatnonzero(outside)
            if len(rows):
                keep = ~outside if keep is None else keep & ~outside
                describe = self._describe_given(rows, column, codes[column], self._not_one_of(column))
                late.append(_Late(self._line_numbers(rows), describe, np.arange(len(rows))))
        return keep

    def _describe_given(
        self, rows: np.ndarray, column: str, codes: np.ndarray, reason: Callable[[Any], str]
    ) -> Callable[[int], tuple[str, Any, str]]:
        def describe(number: int) -> tuple[str, Any, str]:
            value = self._name(column, codes[rows[number]])
            return column, value, reason(value)

        return describe

    def _check_repeats(
        self,
        codes: dict[str, np.ndarray],
        numbers: dict[str, np.ndarray],
        keep: np.ndarray | None,
        late: list[_Late],
    ) -> np.ndarray | None:
        """Rows with a (task, annotator[, position]) that was there before."""
        key = _pair_keys(codes, numbers.get("position"), keep, len(self.vocabularies["annotator"]))
        if not _any_repeat(key):
            return keep
        order = np.argsort(key, kind="stable")
        same = key[order[1:]] == key[order[:-1]]
        last_wins = self.rules.on_duplicate == "last"
        # within a run of equal keys, in order of appearance, the first (or last) row stays
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        ends = np.concatenate([starts[1:], [len(key)]]) - 1
        stays = np.repeat(order[ends if last_wins else starts], ends - starts + 1)
        leaves = stays != order
        rows, instead = order[leaves], stays[leaves]
        by_row = np.argsort(rows)
        rows, instead = rows[by_row], instead[by_row]
        if keep is not None:
            kept_rows = np.flatnonzero(keep)
            rows, instead = kept_rows[rows], kept_rows[instead]
        keep = np.ones(len(codes["task"]), dtype=bool) if keep is None else keep
        keep[rows] = False
        lines, other = self._line_numbers(rows), self._line_numbers(instead)
        tasks, annotators = codes["task"][rows], codes["annotator"][rows]

        def describe(number: int) -> tuple[str, Any, str]:
            task = self._name("task", tasks[number])
            what = f"task {task!r}"
            if "position" in numbers:
                what = f"position {numbers['position'][rows[number]]} of {what}"
            if self.rules.on_duplicate == "error":
                way_out = "Remove one, or pass on_duplicate='first' or 'last'."
                reason = f"has labelled {what} before, in row {other[number]}. {way_out}"
            else:
                reason = (
                    f"has labelled {what} more than once; row {other[number]}, the {self.rules.on_duplicate}, is kept."
                )
            return "annotator", self._name("annotator", annotators[number]), reason

        late.append(_Late(lines, describe, np.arange(len(rows) if self.rules.on_duplicate == "error" else 0)))
        if self.rules.on_duplicate != "error":
            self.repeat = self._bad_row(late[-1], 0)
        return keep

    def _check_lengths(
        self,
        codes: dict[str, np.ndarray],
        numbers: dict[str, np.ndarray],
        keep: np.ndarray | None,
        late: list[_Late],
    ) -> np.ndarray | None:
        """Annotators who leave out positions of a task, or stop before another annotator of it does."""
        rows = np.arange(len(codes["task"])) if keep is None else np.flatnonzero(keep)
        if not len(rows):
            return keep
        num_annotators = len(self.vocabularies["annotator"])
        pairs, pair_of_row = np.unique(
            codes["task"][rows].astype(np.int64) * num_annotators + codes["annotator"][rows], return_inverse=True
        )
        position = numbers["position"][rows]
        tokens = np.bincount(pair_of_row)
        last = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(last, pair_of_row, position)
        gaps = last != tokens - 1
        pair_task = pairs // num_annotators
        longest = np.zeros(len(self.vocabularies["task"]), dtype=np.int64)
        np.maximum.at(longest, pair_task[~gaps], tokens[~gaps])
        bad_pair = gaps | (tokens < longest[pair_task])
        if not bad_pair.any():
            return keep
        lowest = int(position.min())
        bad_rows = bad_pair[pair_of_row]
        wrong, wrong_pair = rows[bad_rows], pair_of_row[bad_rows]
        _, firsts = np.unique(wrong_pair, return_index=True)

        def describe(number: int) -> tuple[str, Any, str]:
            pair = wrong_pair[number]
            task = self._name("task", pair_task[pair])
            who = self._name("annotator", pairs[pair] % num_annotators)
            value = int(numbers["position"][wrong[number]])
            if gaps[pair]:
                reason = (
                    f"belongs to annotator {who!r}, who labels {tokens[pair]} positions of task {task!r}, "
                    f"not each of 0 to {last[pair]}."
                )
                if lowest > 0:
                    reason += f" Positions count from 0, and the lowest here is {lowest}."
            else:
                reason = (
                    f"belongs to annotator {who!r}, who labels {tokens[pair]} positions of task {task!r} where "
                    f"another annotator labels {longest[pair_task[pair]]}."
                )
            return "position", value, reason

        keep = np.ones(len(codes["task"]), dtype=bool) if keep is None else keep
        keep[wrong] = False
        late.append(_Late(self._line_numbers(wrong), describe, np.sort(firsts)))
        return keep

    def _line_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Line numbers of rows that passed the first checks."""
        starts = np.cumsum([0, *self.counts])
        batches = np.searchsorted(starts, rows, side="right") - 1
        lines = np.empty(len(rows), dtype=np.int64)
        for batch in np.unique(batches):
            here = batches == batch
            place = rows[here] - starts[batch]
            origin = self.lines[batch]
            lines[here] = origin[place] if isinstance(origin, np.ndarray) else origin + place
        return lines

    def _stop_if_bad(self, late: list[_Late]) -> None:
        for problem in late:
            self.num_bad += len(problem.shown)
            for number in problem.shown[: max(0, SHOWN - len(self.shown))].tolist():
                self.shown.append(self._bad_row(problem, number))
            self.num_left_out += len(problem.lines)
        if self.num_bad and self.rules.on_bad_rows == "error":
            self.shown.sort(key=lambda problem: problem.row or 0)
            rows = f"{self.num_bad:,} bad row{'s' * (self.num_bad != 1)}"
            raise DataError(f"{self.source.name}: {rows}. {_WAY_OUT}", self.shown, self.num_bad)

    def _bad_row(self, problem: _Late, number: int) -> BadRow:
        column, value, reason = problem.describe(number)
        return BadRow(self.source.name, int(problem.lines[number]), self._column(column), value, reason)

    def _write_late(self, late: list[_Late]) -> None:
        """Writes the rows found last; for their text the source is read once more."""
        late = [problem for problem in late if len(problem.lines)]
        if self.rejects.path is None or not late:
            return
        lines = np.concatenate([problem.lines for problem in late])
        owner = np.repeat(np.arange(len(late)), [len(problem.lines) for problem in late])
        number = np.concatenate([np.arange(len(problem.lines)) for problem in late])
        order = np.argsort(lines, kind="stable")
        lines, owner, number = lines[order], owner[order], number[order]
        done = 0
        for batch in self.source.batches():
            if not batch.num_rows:
                continue
            here = batch.line_numbers()
            end = int(np.searchsorted(lines, here[-1], side="right"))
            places = np.searchsorted(here, lines[done:end])
            for place, original in zip(range(done, end), batch.originals(places.tolist()), strict=True):
                self.rejects.write(self._bad_row(late[owner[place]], int(number[place])), original)
            done = end
            if done == len(lines):
                break


def _outside(dictionary: pa.Array, names: np.ndarray) -> np.ndarray:
    texts = pa.array([str(name) for name in names.tolist()], type=pa.large_string())
    return ~pc.is_in(dictionary.cast(pa.large_string()), value_set=texts).to_numpy(zero_copy_only=False)


def _pair_keys(
    codes: dict[str, np.ndarray], position: np.ndarray | None, keep: np.ndarray | None, num_annotators: int
) -> np.ndarray:
    """One number per (task, annotator[, position])."""
    task, annotator = codes["task"], codes["annotator"]
    if keep is not None:
        task, annotator = task[keep], annotator[keep]
        position = None if position is None else position[keep]
    key = task.astype(np.int64)
    key *= max(num_annotators, 1)
    key += annotator
    if position is not None and len(key):
        span = int(position.max()) + 1
        if (int(key.max()) + 1) * span >= 2**63:
            key = np.unique(key, return_inverse=True)[1]
            # and positions by rank, which A^2 < 2^63 always leaves room for
            position = np.unique(position, return_inverse=True)[1]
            span = int(position.max()) + 1
        key = key * span + position
    return key


def _any_repeat(key: np.ndarray) -> bool:
    if len(key) < 2 or bool((key[1:] > key[:-1]).all()):
        return False
    ordered = np.sort(key)
    return bool((ordered[1:] == ordered[:-1]).any())
