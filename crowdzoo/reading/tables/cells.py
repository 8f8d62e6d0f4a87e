"""Cells to annotations: wide tables, marks of missing labels, and cells with several labels."""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.data.numbers import parse_numbers
from crowdzoo.data.orders import order_pairs, parse_order
from crowdzoo.data.vocabulary import without_zeros
from crowdzoo.errors import BadRow, DataError, DataWarning, Setting, short_repr, unknown
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.reading.tables.options import Rules
from crowdzoo.reading.tables.sources import LABEL_OF, PART_OF, Batch, Source

SEPARATORS = ("|", ";", ",", "\n")  # between several labels in a cell
JOINT = " | "  # between the columns that name a task
YES = ("1", "1.0", "true", "yes", "x", "y", "on", "\N{CHECK MARK}", "ja", "oui")  # values in the column of a label
NO = ("", "0", "0.0", "false", "no", "n", "off", "nein", "non")
HEAD = 1000  # rows checked for cells with several annotators


def listed(text: str, of: tuple[type, ...] = (str, int, float)) -> list[str] | None:
    """Items of a JSON or Python list, as in `["cat", "dog"]`; None if the text is not a list of labels.

    Args:
        text: text of a cell.
        of: types of items that the list may contain; None is not a label.
    """
    text = text.strip()
    if text[:1] not in ("[", "(", "{"):
        return None
    try:
        parsed: Any = ast.literal_eval(re.sub(r"(?<=\w['\"])\s+(?=['\"])", ", ", text))  # ['a' 'b'], as NumPy writes it
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    of_labels = isinstance(parsed, (list, tuple, set)) and all(isinstance(item, of) for item in parsed)
    return ["" if item is None else str(item).strip() for item in parsed] if of_labels else None


def json_answers(text: str) -> dict[str, Any]:
    """Question -> answer for a cell such as {"T0": "yes"} or [{"task": "T0", "value": "yes"}]; {} for other cells."""
    try:
        parsed = parse_json(text) if text.lstrip()[:1] in ("[", "{") else []
    except JsonError:
        return {}
    objects = parsed if isinstance(parsed, list) else [parsed]
    if not all(isinstance(entry, dict) for entry in objects):
        return {}
    parts = [{str(entry["task"]): entry["value"]} if {"task", "value"} <= entry.keys() else entry for entry in objects]
    return {name: answer for part in parts for name, answer in part.items()}


def check_pairs(source: Source, rules: Rules, batch: Batch) -> None:
    """Reject a table whose cells contain several annotators and their labels, unless its classes are given.

    Raises:
        DataError: all of the first rows have this form, and an annotator is in two of them.
    """
    kind = source.label_kind
    if rules.names["label"] is not None or source.own or kind.has_positions or kind.values:
        return
    pair = [batch.columns.get(name, pa.nulls(0)).slice(0, HEAD) for name in ("annotator", "label")]
    if not all(pa.types.is_large_string(values.type) for values in pair):
        return
    rows = [(who or "", label or "") for who, label in zip(*(values.to_pylist() for values in pair), strict=True)]
    for mark in SEPARATORS:
        parts = [[_parts(text, mark) for text in row] for row in rows]
        several = [row for row, (people, _) in zip(rows, parts, strict=True) if len(people) > 1]
        if not several or any(len(people) != len(labels) for people, labels in parts):
            continue
        everybody = [who for people, _ in parts for who in {*people}]
        if len({*everybody}) < len(everybody):
            who, label = several[0]
            raise DataError(
                f"{source.name}: the annotator {short_repr(who)} looks like several, and {short_repr(label)} like a "
                f"label of each. Split both: {Setting('annotator_separator', mark)}. If it is one, name all the "
                f"classes, as in {Setting('classes', ['A', 'B'])}."
            )


def _no_one(text: str) -> str:
    fix = f"Leave such rows out by {Setting('missing', [text])}, or name the answer: {Setting('no_label', 'none')}."
    return f"is blank or 0, and so are the columns of all other labels. {fix}"


def _parts(text: str, mark: str) -> list[str]:
    return listed(text) or [part.strip() for part in text.split(mark) if part.strip()]


def made_of_others(names: Sequence[str]) -> tuple[str, str] | None:
    """A name that consists of other names and one of the usual separators; and that separator."""
    known = set(names)
    for name in names:
        for mark in (*SEPARATORS, "/", " "):
            parts = _parts(name, mark)
            # names do not contain line breaks, so one known part is enough
            if len(parts) > 1 and (known.issuperset(parts) or ("\n" == mark in name and not known.isdisjoint(parts))):
                return name, mark
    return None


class Cells:
    """Convert the cells of a source to one row per annotation, according to its layout.

    The rows of a wide table keep its line numbers, and annotators the order of its columns within a line.

    Args:
        source: source of the rows.
        rules: rules for the rows.
    """

    def __init__(self, source: Source, rules: Rules):
        self.source, self.name, self.layout = source, source.name, source.layout
        self.rules = rules
        self._renamed: set[str] = set()

    def batches(self) -> Iterator[Batch]:
        """Iterate over the source from its start."""
        for number, batch in enumerate(self.source.batches()):
            if self.source.by_winner:
                self._mix_sides(batch)
            if self.source.by_ranking:
                batch = self._compared(batch)
            batch = self._named(batch)
            if self.layout.annotator_separator:
                batch = self._one_person(batch)
            if self.layout.wide:
                batch = self._long(batch)
            elif any(name.startswith(LABEL_OF) for name in batch.columns):
                batch = self._chosen(batch)
            if self.layout.question is not None:
                batch = self._of_question(batch)
            if self.layout.missing and not self.layout.wide:
                label = batch.columns["label"]
                present = self._present(label)
                if self.layout.no_label is None:
                    present &= _filled(label)
                batch = _taken(batch, np.flatnonzero(present))
            if self.layout.label_separator:
                if not number:
                    check_pairs(self.source, self.rules, batch)
                batch = self._split(batch)
            if self.layout.rename:
                self._rename(batch)
            if self.layout.no_label is not None:  # also for cells with only separators
                self._fill(batch)
            yield batch
        if unmet := [name for name in self.layout.rename if name not in self._renamed]:
            text = f"{self.name}: {Setting('rename')}: no label is {short_repr(unmet[0])}."
            warnings.warn(text, DataWarning, stacklevel=5)

    def _present(self, values: pa.Array) -> np.ndarray:
        """Which cells do not contain a mark of a missing label, bool [n]. The mark -1 also matches -1.0."""
        if pa.types.is_floating(values.type):
            whole = pc.equal(pc.subtract(values, pc.floor(values)), 0)  # NaN for infinite values
            whole = whole.fill_null(False).to_numpy(zero_copy_only=False)
            pairs = zip(values.to_pylist(), whole, strict=True)
            values = pa.array([str(int(value)) if flat else str(value) for value, flat in pairs], pa.large_string())
        else:
            values = pc.utf8_trim_whitespace(values.cast(pa.large_string()))
        marks = without_zeros(pa.array(self.layout.missing, pa.large_string()))
        if self.source.label_kind.has_numbers:  # regardless of notation
            numbers, words = self._ratings(marks)
            ratings, no_number = self._ratings(values)
            return ~((np.isin(ratings, numbers[~words]) & ~no_number) | _is_in(values, marks))
        return ~_is_in(without_zeros(values), marks)

    def _ratings(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        empty = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
        numbers, unreadable = parse_numbers("label", texts, empty, self.layout.decimal)
        return numbers, unreadable | empty

    def _mix_sides(self, batch: Batch) -> None:
        """Put the better task on the left or right at random, and set the label accordingly.

        If it were always on one side, annotators would seem to prefer that side. The choice is a hash of the row
        number.
        """
        better, worse = _one_type([batch.columns["left"], batch.columns["right"]], batch.num_rows)
        mixed = batch.line_numbers().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
        left = pa.array((mixed >> np.uint64(40)) & np.uint64(1) == 0)
        names = self.rules.names["label"]
        assert names is not None
        batch.columns["left"], batch.columns["right"] = pc.if_else(left, better, worse), pc.if_else(left, worse, better)
        batch.columns["label"] = pc.if_else(left, *(pa.scalar(str(name), pa.large_string()) for name in names[:2]))

    def _compared(self, batch: Batch) -> Batch:
        """One row per pair of tasks in a ranking."""
        row, pairs, wrong = list[int](), list[tuple[str, str, str]](), dict[int, tuple[str, str, str]]()
        for place, text in enumerate(_texts(batch.columns["ranking"]).to_pylist()):
            try:
                of_list = [*order_pairs(parse_order(text))]
            except DataError as error:
                wrong[place] = self.source.found["ranking"], text, str(error)
                continue
            row += [place] * len(of_list)
            pairs += of_list
        self._refuse(batch, wrong)
        left, right, label = zip(*pairs, strict=True) if pairs else ((), (), ())
        classes = self.rules.names["label"]
        assert classes is not None
        names = dict(zip(("left", "right", "equal"), map(str, classes), strict=False))
        columns = {"left": left, "right": right, "label": [names.get(answer, answer) for answer in label]}
        return _taken(batch, np.array(row, np.int64), columns, without=("ranking",))

    def _long(self, batch: Batch) -> Batch:
        """One row per non-empty cell."""
        cells = {name[len(LABEL_OF) :]: values for name, values in batch.columns.items() if name.startswith(LABEL_OF)}
        present = np.empty((len(cells), batch.num_rows), dtype=bool)
        for kind in {values.type for values in cells.values()}:
            places = [place for place, values in enumerate(cells.values()) if values.type == kind]
            values = pa.concat_arrays([values for values in cells.values() if values.type == kind])
            present[places] = (self._present(values) & _filled(values)).reshape(len(places), batch.num_rows)
        row, column = np.nonzero(present.T)
        # the type of columns without labels is ignored
        labelled = [values if present[place].any() else None for place, values in enumerate(cells.values())]
        arrays = _one_type(labelled, batch.num_rows)
        starts = np.arange(len(cells)) * batch.num_rows
        label = pa.concat_arrays(arrays).take(pa.array(starts[column] + row))
        names = np.fromiter(cells, dtype=object, count=len(cells))
        new = {self.source.axes[1]: names[column], "label": label}
        kept = _taken(batch, row, new, without=[f"{LABEL_OF}{name}" for name in cells])
        return replace(kept, cell=lambda cell: str(names[column[cell]]))

    def _of_question(self, batch: Batch) -> Batch:
        """The answers to the question; cells without one are dropped, and lists are rankings.

        A cell that is not JSON is itself the answer: Label Studio writes several choices as JSON, and a single one as
        text.
        """
        texts = _texts(batch.columns["label"]).to_pylist()
        cells = [json_answers(text) for text in texts]
        answers_of_rows = [
            cell.get(str(self.layout.question)) if cell or text[:1] in ("", "[", "{") else text
            for cell, text in zip(cells, texts, strict=True)
        ]
        if batch.num_rows and not any(self.layout.question in cell for cell in cells):
            names = dict.fromkeys(name for cell in cells for name in cell)
            raise DataError(f"{self.name}: {unknown('field', self.layout.question, names)}")
        lists: list[Any] = [answer if isinstance(answer, list) else [answer] for answer in answers_of_rows]
        flat = [[part.get("choice", part) if isinstance(part, dict) else part for part in answer] for answer in lists]
        if odd := [choice for answer in flat for choice in answer if isinstance(choice, (dict, list))]:
            text = f"{Setting('field', self.layout.question)}: answers such as {short_repr(odd[0])} are not labels."
            raise DataError(f"{self.name}: {text} Choose a question that is answered with labels.")
        pairs = zip(answers_of_rows, flat, strict=True)
        lists = [sorted(map(str, parts)) if isinstance(answer, list) else parts[0] for answer, parts in pairs]
        texts = [answer if isinstance(answer, str) else json.dumps(answer) for answer in lists if answer is not None]
        answered = np.flatnonzero([answer is not None for answer in answers_of_rows])
        return _taken(batch, answered, {"label": texts})

    def _named(self, batch: Batch) -> Batch:
        """Name tasks after several columns, or after their rows."""
        parts = {name: _texts(values) for name, values in batch.columns.items() if name.startswith(PART_OF)}
        rest = {name: values for name, values in batch.columns.items() if name not in parts}
        if parts:
            empty = np.any([pc.equal(values, "").to_numpy(zero_copy_only=False) for values in parts.values()], axis=0)
            joined = pc.binary_join_element_wise(*parts.values(), pa.scalar(JOINT, pa.large_string()))
            rest = {"task": pc.if_else(pa.array(empty), "", joined), **rest}
        elif self.layout.columns.get("task") == "":
            rest = {"task": pa.array(batch.line_numbers()).cast(pa.large_string()), **rest}
        for name, values in parts.items():
            if (place := pc.index(pc.match_substring(values, JOINT), True).as_py()) >= 0:
                reason = f"holds {JOINT!r}, which joins the columns that name a task."
                line, value = int(batch.line_numbers()[place]), values[place].as_py()
                row = BadRow(self.name, line, self.source.found[name], value, reason)
                raise DataError(f"{self.name}: tasks cannot be named.", [row])
        return replace(batch, columns=rest)

    def _one_person(self, batch: Batch) -> Batch:
        """One row per annotator, if a cell contains several and another one their labels."""
        texts = [_texts(batch.columns[name]).to_pylist() for name in ("annotator", "label")]
        people, labels = ([self._items(text) for text in column] for column in texts)
        sizes = np.array([len(entries) for entries in people], np.int64)
        numbers = [len(entries) for entries in labels]
        wrong = np.flatnonzero(sizes != numbers).tolist()
        reason = "are {} annotators, with {} labels. Give each a label, an empty one for none."
        column = self.source.found["annotator"]
        self._refuse(batch, {row: (column, texts[0][row], reason.format(sizes[row], numbers[row])) for row in wrong})
        sizes[wrong] = 0
        flat = {
            name: [item for size, cell in zip(sizes, cells, strict=True) for item in cell[:size]]
            for name, cells in (("annotator", people), ("label", labels))
        }
        kept = _taken(batch, np.repeat(np.arange(len(sizes)), sizes), flat)
        answered = pc.not_equal(kept.columns["label"], "").to_numpy(zero_copy_only=False)
        return kept if self.layout.no_label is not None else _taken(kept, np.flatnonzero(answered))

    def _items(self, text: str) -> list[str]:
        """Items of a cell."""
        items = listed(text, (str, int, float, list, type(None)))
        return [part.strip() for part in text.split(str(self.layout.annotator_separator))] if items is None else items

    def _chosen(self, batch: Batch) -> Batch:
        """One row per label, if each label has a column with 1 where it is given; one row if none is given."""
        columns = {name: values for name, values in batch.columns.items() if name.startswith(LABEL_OF)}
        cells = {name: pc.utf8_lower(_texts(values)) for name, values in columns.items()}
        yes, no = (pa.array(words, pa.large_string()) for words in (YES, [*NO, *self.layout.missing]))
        is_yes = np.array([_is_in(values, yes) for values in cells.values()])
        strange = ~is_yes & ~np.array([_is_in(values, no) for values in cells.values()])
        wrong, names = strange.any(axis=0), [*cells]
        advice = "Write 1 where the label was given"
        reason = f"is neither 1 nor 0. {advice}. Counts do not say who voted: write a row for each annotator."
        theirs = self.source.found
        last_first = ((names[place], row) for place, row in np.argwhere(strange)[::-1].tolist())
        self._refuse(batch, {row: (theirs[name], cells[name][row].as_py(), reason) for name, row in last_first})
        if not self.layout.missing and self.layout.no_label is None:
            none = ~is_yes.any(axis=0) & ~wrong
            first = [(theirs[names[0]], text, _no_one(text)) for text in cells[names[0]].to_pylist()]
            self._refuse(batch, {row: first[row] for row in np.flatnonzero(none).tolist()})
            wrong |= none
        row, place = np.nonzero((np.vstack([is_yes, ~is_yes.any(axis=0)]) & ~wrong).T)
        labels = np.array([*(name[len(LABEL_OF) :] for name in names), ""], object)
        return _taken(batch, row, {"label": labels[place]}, without=names)

    def _refuse(self, batch: Batch, wrong: Mapping[int, tuple[str, str, str]]) -> None:
        """Mark rows of a batch as bad: row number -> column, value, reason."""
        lines = batch.line_numbers()
        for (row, problem), original in zip(wrong.items(), batch.originals([*wrong]), strict=True):
            batch.bad.append((BadRow(self.name, int(lines[row]), *problem), original))

    def _rename(self, batch: Batch) -> None:
        """Rename labels, or the classes of regions."""
        encoded = _texts(batch.columns["label"]).dictionary_encode()
        self._renamed |= {*encoded.dictionary.to_pylist()} & self.layout.rename.keys()
        names = [self.layout.rename.get(name, name) for name in encoded.dictionary.to_pylist()]
        if self.source.label_kind.has_regions:  # their classes
            names = [self._with_other_classes(text) for text in names]
            self._renamed |= self.layout.rename.keys()  # gold may contain them
        batch.columns["label"] = pa.array(names, pa.large_string()).take(encoded.indices)

    def _with_other_classes(self, text: str) -> str:
        """Rename classes in the text of an image; invalid text is unchanged and rejected later."""
        with contextlib.suppress(DataError):
            return self.source.image(text).rename(self.layout.rename).text
        return text

    def _fill(self, batch: Batch) -> None:
        """Fill empty cells with the label that they represent."""
        label = batch.columns["label"]
        if pa.types.is_large_string(label.type):
            batch.columns["label"] = pc.if_else(pa.array(_filled(label)), label, self.layout.no_label)

    def _split(self, batch: Batch) -> Batch:
        """One row per label, if a cell contains several."""
        label = batch.columns["label"]
        if not pa.types.is_large_string(label.type):
            return batch
        label = label.fill_null("")
        parts = pc.split_pattern(label, self.layout.label_separator)
        if pc.any(pc.match_substring_regex(label, r"^\s*[\[({]")).as_py():
            cells = zip(label.to_pylist(), parts.to_pylist(), strict=True)
            parts_of_cells = [split if (own := listed(cell)) is None else own or [""] for cell, split in cells]
            parts = pa.array(parts_of_cells, parts.type)
        row = pc.list_parent_indices(parts).to_numpy()
        texts = pc.utf8_trim_whitespace(parts.flatten())
        # empty parts between separators are dropped; an empty cell is kept, to be rejected later
        keep = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        keep |= (np.bincount(row, keep, len(label)) == 0)[row] & (np.concatenate([[-1], row[:-1]]) != row)
        return _taken(batch, row[keep], {"label": texts.filter(pa.array(keep))})


def _texts(values: pa.Array) -> pa.Array:
    """Cells as stripped text; missing cells are ""."""
    return pc.utf8_trim_whitespace(values.cast(pa.large_string()).fill_null(""))


def _is_in(values: pa.Array, wanted: pa.Array) -> np.ndarray:
    return pc.is_in(values, value_set=wanted).to_numpy(zero_copy_only=False)


def _taken(batch: Batch, row: np.ndarray, new: Mapping[str, Any] | None = None, without: Sequence[str] = ()) -> Batch:
    """Select rows of a batch, in order, possibly with repetition.

    Args:
        batch: all rows.
        row: row numbers, int64 [n].
        new: columns [n] that replace or extend those of the batch; text, or any type of Arrow.
        without: names of columns to leave out.
    """
    columns = {
        name: values if isinstance(values, pa.Array) else pa.array(values, pa.large_string())
        for name, values in (new or {}).items()
    }
    # replaced columns are not copied: a cell with many labels would be copied for each of them
    kept = {name: values for name, values in batch.columns.items() if name not in (*without, *columns)}
    columns = {name: values.take(pa.array(row)) for name, values in kept.items()} | columns
    originals, cell = batch.originals, batch.cell
    return Batch(
        columns,
        batch.line_numbers()[row],
        lambda wanted: originals([int(row[position]) for position in wanted]),
        batch.bad,
        None if cell is None else lambda position: cell(int(row[position])),
    )


def _filled(values: pa.Array) -> np.ndarray:
    """Which cells are not empty, bool [n]."""
    if pa.types.is_large_string(values.type):
        return ~pc.equal(pc.utf8_trim_whitespace(values), "").fill_null(True).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        return ~np.isnan(values.to_numpy(zero_copy_only=False))
    return values.is_valid().to_numpy(zero_copy_only=False)


def _one_type(arrays: list[pa.Array | None], length: int) -> list[pa.Array]:
    """Cast arrays to a common type; None becomes nulls."""
    types = {array.type for array in arrays if array is not None}
    number = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
    kind = types.pop() if len(types) == 1 else pa.float64() if number and types else pa.large_string()
    return [pa.nulls(length, kind) if array is None else array.cast(kind) for array in arrays]
