"""Reads a complete source: checks rows batch by batch, and then all rows together."""

import functools
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.data.annotations import VOCABULARIES
from crowdzoo.data.numbers import Problem, numbers_of, outside_scale, scale_reason
from crowdzoo.data.vocabulary import Vocabulary, as_named, is_among, text_as_integers
from crowdzoo.errors import SHOWN, BadRow, DataError, DataWarning, Setting, did_you_mean, keep_one, short_repr
from crowdzoo.files.paths import check_output_file
from crowdzoo.reading.tables.annotation_files import rejects_file
from crowdzoo.reading.tables.cells import YES, Cells, check_pairs, json_answers, listed, made_of_others
from crowdzoo.reading.tables.layout import OPTIONAL
from crowdzoo.reading.tables.naming import VOID, warn_of_guess
from crowdzoo.reading.tables.options import Rules, not_excluded
from crowdzoo.reading.tables.sources import Batch, Source
from crowdzoo.reading.tables.suspicious import spelt_alike, strange_ids, suspicious_classes

_IDS = {"task": "task_ids", "left": "task_ids", "annotator": "annotator_ids"}
_ATTRIBUTES = {**_IDS, "label": "labels", "position": "positions"}

LONG, DISTINCT = 3, 20  # words of a class that looks like a text, and number of classes from which this is checked
LEAST_LABELS = 5  # labels of a wide table's column; if no other column has them, it is not an annotator
COUNTED = 20  # integer labels up to this, most of them 0, look like counts
COUNTS = ": its labels look like counts of votes, which do not say who voted. Write a row for each annotator"
LOOKED_AT = 100  # classes checked for JSON objects
MOST_CLASSES = 10_000  # with more, combined labels are not searched

SEVERAL_HOLD = "where several may hold for a task, give --multi-label to crowdzoo aggregate or report."
# Words in a status column, or, like 1, in a column of flags, that mark answers that do not count
_WORDS = ["rejected", "draft", "skipped", "deleted", "cancelled", "canceled", "discarded", "expired", "survey preview"]
_ALL_BAD = "Is it the right file, and do its columns and its names mean what they are taken for?"


def collect(source: Source, rules: Rules) -> dict[str, Any]:
    """Read a complete source.

    Args:
        source: source of the rows.
        rules: rules for the rows.

    Returns:
        The arguments of `Annotations`.

    Raises:
        DataError: bad rows, unless they are rejected; or no row is left.
        ConfigError: `rejects` is the input file, not a regular file, or not writable.
    """
    if rules.rejects is not None:
        check_output_file(rules.rejects, "rejects", inputs=[] if source.path is None else [source.path])
    with rejects_file(rules.rejects) as reject:
        return Collector(source, rules, reject).run()


@dataclass
class Late:
    """Rows found to be bad after reading, sorted by line."""

    rows: np.ndarray
    lines: np.ndarray
    column: str
    reason: Callable[[int], str]  # by index in `rows`
    shown: np.ndarray  # indices in `rows` that an error lists and counts


class Collector:
    """Checks rows batch by batch, and then all rows together.

    Args:
        source: source of the rows.
        rules: rules for the rows.
        reject: receives a bad row, and the row's text.
    """

    def __init__(self, source: Source, rules: Rules, reject: Callable[[BadRow, str], None]):
        self.source = source
        self.rules = rules
        self.reject = reject
        apart = source.layout.takes_apart or source.label_kind.has_pairs
        self.batches = (Cells(source, rules) if apart else source).batches  # one label a row
        self.keeps_all = rules.on_bad_rows == "reject" and rules.rejects is not None
        self.sides = source.label_kind.sides
        self.image_column = "label" if source.label_kind.has_regions else None
        named = {*source.required} - {*source.label_kind.number_columns}
        self.vocabularies = {column: Vocabulary(rules.names[column]) for column in VOCABULARIES if column in named}
        self.numbers: dict[str, list[np.ndarray]] = {}  # chunks of numeric columns
        self.lines: list[int | np.ndarray] = []  # line numbers of each batch's good rows, or the first of them
        self.counts: list[int] = []
        self.shown: list[BadRow] = []  # first bad rows, for the error
        self.repeat: BadRow | None = None  # a dropped duplicate, for the warning
        self.unread: dict[str, str] = {}  # optional columns left out -> reason
        self.num_bad = 0  # rows found bad while reading
        self.num_void = 0
        self.excluded: set[str] = set()  # annotators of `rules.exclude` found in the source
        self.repeats = False  # whether duplicates were kept
        # after reading: codes and numbers of the good rows
        self.rows: dict[str, np.ndarray] = {}
        # which of `rows` are kept, and problems of the others
        self.keep = np.empty(0, dtype=bool)
        self.late: list[Late] = []
        self.num_replaced = 0  # rows that `on_duplicate` drops

    def run(self) -> dict[str, Any]:
        """Read the complete source; see `collect`."""
        batches = self.batches()
        for batch in itertools.islice(batches, self.source.most_batches):
            self._add(batch)
        self.source.complete = next(batches, None) is None
        warn_of_guess(self.source.name, self.source.guessed, self.source.layout.option, stacklevel=5)
        self.rows = {name: vocabulary.codes() for name, vocabulary in self.vocabularies.items()}
        self.rows.update({name: np.concatenate(parts) for name, parts in self.numbers.items()})
        self.numbers.clear()
        if self.source.sparse:
            for name in {*OPTIONAL} & self.rows.keys():
                if np.isnan(self.rows[name]).all():
                    del self.rows[name]
        if "right" in self.vocabularies:  # left and right share their names
            left, right = self.vocabularies["left"], self.vocabularies["right"]
            self.rows["left"], self.rows["right"] = left.join(right, self.rows["left"], self.rows["right"])
            self.vocabularies["right"] = left
        self._refuse_nothing()
        self.keep = np.ones(sum(self.counts), dtype=bool)
        for column in (*self.sides, "annotator"):
            self._check_given(column)
        if "right" in self.vocabularies:
            self._check_different()
        self._check_repeats()
        self._check_none()
        if "position" in self.rows:
            self._check_lengths()
        self._stop_if_bad()
        self._write_late()
        if not self.keep.all():
            self.rows = {name: values[self.keep] for name, values in self.rows.items()}
        num_left_out = self.num_bad + sum(len(problem.lines) for problem in self.late)
        self._tell_left_out(num_left_out, len(self.rows["annotator"]))
        counts = {"num_rejected": num_left_out, "num_replaced": self.num_replaced}
        result: dict[str, Any] = {"kind": self.source.label_kind.name, "repeats": self.repeats, **counts}
        if "right" in self.vocabularies:
            self.rows["left"] = np.concatenate([self.rows["left"], self.rows.pop("right")])
        for column in list(self.rows):
            values = self.rows.pop(column)
            if column in self.vocabularies:
                is_text = self.source.text and not (column == "label" and self.source.label_kind.values)
                values, names = self.vocabularies[column].finish(values, is_text, column == "label")
                if column == "label":
                    self._check_several(names)
                some = names[: MOST_CLASSES + 1].tolist()
                if column == "annotator" and self.rules.names[column] is None:
                    self._tell(spelt_alike(some, "annotators"))
                if column in ("task", "annotator") and self.rules.names[column] is None:
                    self._tell(strange_ids(some, f"{column}s"))
                objects = self.source.objects.get(column)
                result[VOCABULARIES[column]] = names if objects is None else objects[names]
            result[_ATTRIBUTES.get(column, column)] = values
        if "right" in self.vocabularies:
            result["task_ids"], result["right_ids"] = np.split(result["task_ids"], 2)
        result["classes_sorted"] = "classes" in result and self.rules.names["label"] is None
        if self.source.label_kind.values:
            value_of = self.source.image if self.image_column else str
            result["values"] = [value_of(str(name)) for name in result.pop("classes").tolist()]
        if result.get("classes") is not None:
            what = self.source.axes[1]
            self._check_wide(result[f"{what}_ids"], result[f"{what}s"], result["labels"], result["classes"])
            self._tell_suspicious(result["classes"], result["labels"])
        return result

    # === Checks batch by batch ===

    def _excluded(self, values: pa.Array) -> np.ndarray:
        """Which rows are by excluded annotators, bool [n]."""
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
        good = np.ones(batch.num_rows, dtype=bool)
        if self.rules.exclude:
            good = ~self._excluded(batch.columns["annotator"])
        for column in [column for column in batch.columns if column.startswith(VOID)]:
            words = pc.utf8_lower(pc.utf8_trim_whitespace(batch.columns.pop(column).cast(pa.large_string())))
            of_status = "status" in column.casefold()  # 1 may mean completed there
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
                listed = rows if self.keeps_all else rows[:SHOWN]
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
        """Whether the start of a guessed column is completely unreadable; the column is then left out."""
        if column not in OPTIONAL or column in self.source.layout.columns or not problems or any(self.counts):
            return False
        if sum(len(rows) for rows, _ in problems) < np.count_nonzero(~np.isnan(numbers)):
            return False
        rows, reason = problems[0]
        value = values[int(rows[0])].as_py()
        self.unread[column] = f"{short_repr(value)} {reason if isinstance(reason, str) else reason(value)}"
        self.numbers.pop(column, None)  # of batches without a good row
        return True

    def _note_bad(self, batch: Batch, bad_rows: list[tuple[int, str, Any, str]], num_found: int) -> None:
        """Record a batch's bad rows in line order."""
        if not num_found and not batch.bad:
            return
        bad_rows.sort(key=lambda entry: entry[0])
        bad_rows, lines = bad_rows if self.keeps_all else bad_rows[:SHOWN], batch.line_numbers()
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
        """The name or number of a row in a column, after reading."""
        if column not in self.vocabularies:
            return self.rows[column][row].item()
        return self.source.display(column, self.vocabularies[column].name(self.rows[column][row]))

    def _column(self, column: str) -> str | None:
        return self.source.found.get(column, column) or None

    def _integers(self, column: str, values: pa.Array) -> np.ndarray | None:
        """Fast path for ids if all so far are valid integers; None if it does not apply."""
        if column not in self.vocabularies or not self.vocabularies[column].takes_integers:
            return None
        if column == self.image_column:
            return None
        if pa.types.is_integer(values.type) and not values.null_count:
            return values.to_numpy()
        return text_as_integers(values) if pa.types.is_large_string(values.type) else None

    def _names(self, column: str, values: pa.Array) -> tuple[pa.Array, np.ndarray, list[Problem]]:
        """The chunk's dictionary and codes (-1 for bad ones), and the bad rows with reasons."""
        problems: list[Problem] = []
        if pa.types.is_floating(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            whole = np.isnan(numbers) | ((np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53))
            problems.append((np.flatnonzero(~whole), "is not an id. Use strings or integers."))
            missing = np.isnan(numbers) | ~whole
            values = pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)
        encoded = values.dictionary_encode()
        dictionary = encoded.dictionary
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        blank = np.zeros(len(dictionary), dtype=bool)
        if pa.types.is_large_string(dictionary.type):
            trimmed = pc.utf8_trim_whitespace(dictionary)
            blank = pc.equal(trimmed, "").to_numpy(zero_copy_only=False)
            dictionary = trimmed if self.source.trim else dictionary
        empty = np.append(blank, True)[codes]  # -1 is the last
        problems.append((np.flatnonzero(empty), "is empty. Fill it in, or remove the row."))
        if column == self.image_column:
            bad = np.array([*(self._no_regions(text) != "" for text in dictionary.to_pylist()), False])  # -1 is empty
            problems.append((np.flatnonzero(bad[codes] & ~empty), self._no_regions))
        if column == "label" and (classes := self.rules.names["label"]) is not None:
            if self.source.text:
                dictionary = as_named(dictionary, classes)
            outside = np.append(~is_among(dictionary, classes), False)[codes] & ~empty
            problems.append((np.flatnonzero(outside), self._not_one_of("label")))
        return dictionary, codes, problems

    def _no_regions(self, label: object) -> str:
        """Why a label is not valid regions, as the end of a sentence; "" if it is."""
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
        if column == "label" and "right" in self.vocabularies:
            hint = " If the file has other words for left, right and equal, name them in this order: "
            hint += f"{Setting('classes', ['LEFT', 'RIGHT', 'EQUAL'])}."
        first_names = ", ".join(repr(name) for name in names[:10])
        listed = f"[{first_names}, ... {len(names) - 10:,} more]" if len(names) > 10 else f"[{first_names}]"

        @functools.cache
        def reason(value: Any) -> str:
            # ids with different digits are different ids, even if similar
            near = names if column == "label" else [name for name in names if _digits(name) == _digits(value)]
            suggestion = did_you_mean(value, near)
            if not suggestion or str(value).casefold() in names:  # the file may differ only in case throughout
                suggestion += hint
            return f"is not one of the {what} {listed}.{suggestion}"

        return reason

    # === Checks of all rows, after reading ===

    def _refuse_nothing(self) -> None:
        unmet = [name for name in self.rules.exclude if name not in self.excluded]
        if unmet and self.source.complete:
            known = self.vocabularies["annotator"]
            raise not_excluded(unmet[0], self.source.name, [known.name(code) for code in range(len(known))])
        are_named = all(self.rules.names[column] is not None for column in (*self.sides, "annotator"))
        if not (sum(self.counts) or self.num_bad or are_named):
            void = self._void() if self.num_void else self.source.void
            why = f": left out: {void}." if void else " has no rows."
            raise DataError(f"{self.source.name}{why}")

    def _void(self) -> str:
        names = " or ".join(f"'{name}'" for ours, name in self.source.found.items() if ours.startswith(VOID))
        return f"answers that column {names} says do not count: {self.num_void:,}"

    def _tell_left_out(self, num_left_out: int, num_kept: int) -> None:
        """Warn of columns and rows left out; reject a source if all rows were."""
        for column, why in self.unread.items():
            option = Setting(self.source.layout.option, {column: ""})
            text = f"{self.source.name}: column '{self._column(column)}' is left out: {why} Give {option} to say so."
            warnings.warn(text, DataWarning, stacklevel=6)
        if self.num_void:
            warnings.warn(f"{self.source.name}: left out: {self._void()}", UserWarning, stacklevel=6)
        if num_left_out and not num_kept:
            text = f"{self.source.name}: all {num_left_out:,} rows are bad. {_ALL_BAD}"
            raise DataError(text, self.shown, num_left_out)
        if num_left_out and self.rules.rejects is None:
            example = self.shown[0] if self.shown else self.repeat
            text = f"{num_left_out:,} row{'s were' if num_left_out > 1 else ' was'} left out, e.g. {example}"
            warnings.warn(text, UserWarning, stacklevel=6)

    def _tell_suspicious(self, classes: np.ndarray, labels: np.ndarray) -> None:
        """Warn of suspicious classes, [K], given the labels, [n] codes."""
        if self.rules.names["label"] is not None:
            return
        counts, rows = np.bincount(labels, minlength=len(classes)), np.flatnonzero(self.keep)

        def row_of(code: int) -> int:
            """Line number of the first annotation of a class."""
            return int(self._line_numbers(rows[[np.argmax(labels == code)]])[0])

        number, long = len(classes), sum(len(str(name).split()) >= LONG for name in classes.tolist())
        if number >= DISTINCT and 2 * min(long / number, number / counts.sum()) > 1:
            look = f"{number:,} classes look like texts that annotators wrote, such as {short_repr(classes[0])}"
            self._tell([f"{look}. If they are, use {Setting('kind', 'free-text')}."])
        else:
            names, no_label = classes.tolist(), self.source.layout.no_label
            sentences = suspicious_classes(names, counts, no_label, row_of)
            self._tell(sentences, sentences and suspicious_classes(names, counts, no_label))

    def _tell(self, sentences: list[str], notes: list[str] | None = None) -> None:
        """Warn with each sentence; the versions without row numbers become notes of a report."""
        if not self.source.own:  # crowdzoo's own files were checked when their source was read
            for sentence, note in zip(sentences, sentences if notes is None else notes, strict=True):
                warnings.warn(DataWarning(f"{self.source.name}: {sentence}", [note]), stacklevel=7)

    def _check_different(self) -> None:
        """Drop comparisons of a task with itself."""
        rows = np.flatnonzero(self.keep & (self.rows["left"] == self.rows["right"]))
        reason = f"is in column '{self._column('left')}', too. Remove the row."
        if len(rows):
            self._leave_out(rows, "right", lambda _: reason)

    def _check_several(self, names: np.ndarray) -> None:
        """Reject a file with a label that combines other labels, unless the classes are given."""
        source = self.source
        no_cells = (source.path is None and not source.found) or source.label_kind.values
        if no_cells or source.own or self.rules.names["label"] is not None or names.dtype.kind == "i":
            return
        answers = {name: json_answers(str(name)) for name in names[:LOOKED_AT].tolist()}
        questions = [*dict.fromkeys(question for form in answers.values() for question in form)]
        if questions == ["ImportId"]:
            text = "has more lines below its header, as Qualtrics writes them, which are not answers"
            raise DataError(f"{source.name}: {text}. Remove rows 2 and 3 (docs/platforms.md, Surveys).")
        if questions:
            label = short_repr(next(name for name, form in answers.items() if form))
            raise DataError(
                f"{source.name}: labels such as {label} hold answers as JSON objects, to the questions "
                f"{short_repr(questions)}. Choose one: {Setting('field', questions[0])}. If they are classes, name all "
                f"of them, as in {Setting('classes', ['A', 'B'])}."
            )
        if source.layout.label_separator or len(names) > MOST_CLASSES:
            return
        composed = made_of_others(names.tolist())
        lists = [name for name in names.tolist() if isinstance(name, str) and listed(name) is not None]
        if composed or lists:
            name, mark = (lists[0], ",") if lists else composed or ("", "")
            what = "a list" if listed(name) is not None else "made of other labels"
            split = Setting("label_separator", mark)
            raise DataError(
                f"{self.source.name}: the label {short_repr(name)} is {what}. If a cell may hold several, split them "
                f"with {split}; {keep_one()} then says which of them counts; {SEVERAL_HOLD} If it is one class, "
                f"name all of them, as in {Setting('classes', ['A', 'B'])}."
            )

    def _check_wide(self, who: np.ndarray, annotators: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> None:
        """Reject counts of votes, and guessed annotator columns whose labels are in no other column."""
        if not self.source.layout.wide or self.source.axes[1] in self.source.layout.columns:
            return
        names = [*map(str, annotators)]
        whole = classes.dtype.kind == "i" and classes.max(initial=0) >= COUNTED
        if whole and 2 * np.count_nonzero(classes[labels] == 0) > len(labels):
            raise self.source.no_annotators(names, names, COUNTS)
        pairs = np.unique(np.stack([labels, who]), axis=1)
        shared = np.isin(labels, np.flatnonzero(np.bincount(pairs[0]) > 1))
        counts, common = (np.bincount(rows, minlength=len(annotators)) for rows in (who, who[shared]))
        strangers = [names[code] for code in np.flatnonzero((common == 0) & (counts >= LEAST_LABELS))]
        if strangers and common.any():
            raise self.source.no_annotators(names, strangers, ": none of its labels is in another column")

    def _leave_out(
        self, rows: np.ndarray, column: str, reason: Callable[[int], str], shown: np.ndarray | None = None
    ) -> None:
        """Drop rows; for arguments see `Late`. By default, all are shown."""
        self.keep[rows] = False
        every = np.arange(len(rows))
        self.late.append(Late(rows, self._line_numbers(rows), column, reason, every if shown is None else shown))

    def _check_given(self, column: str) -> None:
        """Drop rows whose task or annotator is not among the given ones."""
        vocabulary = self.vocabularies[column]
        if vocabulary.given is None or len(vocabulary) <= vocabulary.num_given:
            return
        rows = np.flatnonzero(self.keep & (self.rows[column] >= vocabulary.num_given))
        reason = self._not_one_of(column)
        self._leave_out(rows, column, lambda number: reason(self._name(column, rows[number])))

    def _check_repeats(self) -> None:
        """Drop rows with duplicate (task, annotator[, position])."""
        key = self._pair_keys()
        if len(np.unique(key)) == len(key):
            return
        policy = self.rules.on_duplicate
        if policy == "all" or (policy == "error" and self.source.repeats):
            self.repeats = True
            return
        places = np.arange(len(key))
        _, chosen, key_of = np.unique(key, return_index=True, return_inverse=True)  # the first of each key
        if policy == "last":
            np.maximum.at(chosen, key_of, places)
        stays = chosen[key_of]
        leaves = np.flatnonzero(stays != places)
        kept = np.flatnonzero(self.keep)
        rows, other = kept[leaves], self._line_numbers(kept[stays[leaves]])
        in_one_answer = self.source.label_kind.one_class & (self._line_numbers(rows) == other)

        def reason(number: int) -> str:
            tasks = [repr(self._name(column, rows[number])) for column in self.sides]
            what = f"task {tasks[0]}" if len(tasks) == 1 else f"{tasks[0]} (left) with {tasks[1]} (right)"
            did = "labelled" if len(tasks) == 1 else "compared"
            if "position" in self.rows:
                what = f"position {self.rows['position'][rows[number]]} of {what}"
            if policy != "error":
                return f"has {did} {what} more than once; row {other[number]}, the {policy}, is kept."
            fixes = [f"Remove one, or keep one with {keep_one()}"]
            if len(tasks) > 1:
                fixes.append(f"{Setting('on_duplicate', 'all')} where it is another comparison, as of another text")
            if self.source.layout.label_separator or self.source.layout.several("label") or in_one_answer[number]:
                fixes.append(SEVERAL_HOLD.removesuffix("."))
            return f"has {did} {what} before, in row {other[number]}. {'; '.join(fixes)}."

        self._leave_out(rows, "annotator", reason, np.arange(len(rows) if policy == "error" else 0))
        if policy != "error":
            self.repeat, self.num_replaced = self._bad_row(self.late[-1], 0), len(rows)

    def _check_none(self) -> None:
        """For answers that are sets of labels, drop those that contain both the label for none and another one."""
        none, labels = self.source.layout.no_label, self.rows.get("label")
        if none is None or labels is None or "label" not in self.vocabularies or self.rules.on_duplicate != "all":
            return
        key, kept = self._pair_keys(), np.flatnonzero(self.keep)
        codes = [code for code in np.unique(labels).tolist() if str(self.vocabularies["label"].name(code)) == none]
        is_none = np.isin(labels[kept], codes)
        is_both = np.isin(key, np.intersect1d(key[is_none], key[~is_none]))
        both, firsts = kept[is_both], np.unique(key[is_both], return_index=True)[1]
        if not len(both):
            return

        def reason(number: int) -> str:
            who, what = (self._name(column, both[number]) for column in ("annotator", "task"))
            answer = f"is of an answer of {who!r} to task {what!r} that holds {none!r}, for no label, and a label"
            return f"{answer}. Remove one of them."

        self._leave_out(both, "label", reason, np.sort(firsts))

    def _check_lengths(self) -> None:
        """Drop annotators' answers that lack positions of a task, or end before those of another annotator."""
        rows = np.flatnonzero(self.keep)
        if not len(rows):
            return
        num_annotators = len(self.vocabularies["annotator"])
        task, annotator, position = (self.rows[name][rows] for name in ("task", "annotator", "position"))
        pairs, pair_of_row = np.unique(task.astype(np.int64) * num_annotators + annotator, return_inverse=True)
        tokens = np.bincount(pair_of_row)
        last = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(last, pair_of_row, position)
        gaps = last != tokens - 1
        pair_task = pairs // num_annotators
        longest = np.zeros(len(self.vocabularies["task"]), dtype=np.int64)
        np.maximum.at(longest, pair_task[~gaps], tokens[~gaps])
        bad_pair = gaps | (tokens < longest[pair_task])
        if not bad_pair.any():
            return
        lowest = int(position.min())
        bad_rows = bad_pair[pair_of_row]
        wrong, wrong_pair = rows[bad_rows], pair_of_row[bad_rows]
        _, firsts = np.unique(wrong_pair, return_index=True)

        def reason(number: int) -> str:
            row, pair = wrong[number], wrong_pair[number]
            who, what = self._name("annotator", row), self._name("task", row)
            text = f"belongs to annotator {who!r}, who labels {tokens[pair]} positions of task {what!r}"
            if not gaps[pair]:
                return f"{text} where another annotator labels {longest[pair_task[pair]]}."
            count = f" Positions count from 0, and the lowest here is {lowest}." if lowest > 0 else ""
            return f"{text}, not each of 0 to {last[pair]}.{count}"

        self._leave_out(wrong, "position", reason, np.sort(firsts))

    def _pair_keys(self) -> np.ndarray:
        """A number per distinct (task, annotator[, position]) or (left, right, annotator) of the remaining rows."""
        names = (*self.sides, "annotator", "position")
        columns = {name: self.rows[name] for name in names if name in self.rows}
        if not self.keep.all():
            columns = {name: values[self.keep] for name, values in columns.items()}
        key = columns[self.sides[0]].astype(np.int64)
        if "right" in columns:
            key = np.unique(key * len(self.vocabularies["right"]) + columns["right"], return_inverse=True)[1]
        key *= max(len(self.vocabularies["annotator"]), 1)
        key += columns["annotator"]
        position = columns.get("position")
        if position is not None and len(key):
            span = int(position.max()) + 1
            if (int(key.max()) + 1) * span >= 2**63:
                key = np.unique(key, return_inverse=True)[1]
                # and positions by rank, which always fits, since A^2 < 2^63
                position = np.unique(position, return_inverse=True)[1]
                span = int(position.max()) + 1
            key = key * span + position
        return key

    def _line_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Line numbers of rows that passed the checks while reading."""
        counted = zip(self.lines, self.counts, strict=True)
        lines = [first if isinstance(first, np.ndarray) else first + np.arange(count) for first, count in counted]
        return np.concatenate(lines)[rows]

    def _stop_if_bad(self) -> None:
        num_bad = self.num_bad + sum(len(problem.shown) for problem in self.late)
        for problem in self.late:
            for number in problem.shown[: max(0, SHOWN - len(self.shown))].tolist():
                self.shown.append(self._bad_row(problem, number))
        if num_bad and self.rules.on_bad_rows == "error":
            self.shown.sort(key=lambda problem: problem.row or 0)
            fix, rows = Setting("on_bad_rows", "reject"), f"{num_bad:,} bad row{'s' * (num_bad != 1)}"
            way_out = f"Fix the file, or skip bad rows with {fix} ({Setting('rejects', 'FILE')} keeps them)."
            if num_bad > 1 and not self.keep.any():  # skipping them would leave nothing
                rows, way_out = f"all {num_bad:,} rows are bad", _ALL_BAD
            raise DataError(f"{self.source.name}: {rows}. {way_out}", self.shown, num_bad, fix=fix)

    def _bad_row(self, problem: Late, number: int) -> BadRow:
        line, value = int(problem.lines[number]), self._name(problem.column, problem.rows[number])
        return BadRow(self.source.name, line, self._column(problem.column), value, problem.reason(number))

    def _write_late(self) -> None:
        """Write the rows rejected after reading; reads the source again for their text."""
        if self.rules.rejects is None or not self.late:
            return
        lines = np.concatenate([problem.lines for problem in self.late])
        owner = np.repeat(np.arange(len(self.late)), [len(problem.lines) for problem in self.late])
        number = np.concatenate([np.arange(len(problem.lines)) for problem in self.late])
        order = np.argsort(lines, kind="stable")
        lines, owner, number = lines[order], owner[order], number[order]
        done = 0
        for batch in self.batches():
            if not batch.num_rows:
                continue
            here = batch.line_numbers()
            end = int(np.searchsorted(lines, here[-1], side="right"))
            places = np.searchsorted(here, lines[done:end])
            for place, original in zip(range(done, end), batch.originals(places.tolist()), strict=True):
                self.reject(self._bad_row(self.late[owner[place]], int(number[place])), original)
            done = end
            if done == len(lines):
                break


def _digits(name: Any) -> str:
    return "".join(letter for letter in str(name) if letter.isdigit())
