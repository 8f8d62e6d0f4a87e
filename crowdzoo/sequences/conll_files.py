"""CoNLL columns: a line a token, a column an annotator. Read line by line, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import SHOWN, BadRow, ConfigError, DataError, did_you_mean, shorten
from crowdzoo.files.text import is_text
from crowdzoo.sequences.crowd_sequences import CrowdSequences
from crowdzoo.sequences.tags import (
    OUTSIDE,
    TagSet,
    allowed_tags,
    check_scheme,
    mended,
    tag_problem,
    tag_problems,
)
from crowdzoo.sequences.text_lines import integers_if_all, name_array, read_lines, write_lines
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.vocabulary import names_array

__all__ = ["read_conll", "read_gold", "write_conll", "write_gold", "write_tags"]

MISSING = "?"
DOCUMENT = "-DOCSTART-"
BAD_TAGS = ("error", "mend", "keep")


def read_conll(
    path: str | os.PathLike[str],
    *,
    gold: str | os.PathLike[str] | None = None,
    scheme: str = "BIO",
    annotators: Iterable[Any] | None = None,
    classes: Iterable[str] | None = None,
    header: bool = False,
    on_bad_tags: str = "error",
) -> CrowdSequences:
    """Reads sentences in columns: a line a token, the token first, then one column an annotator.

    Columns are separated by tabs where a line has one, else by spaces. `?` says that the annotator did not label the
    sentence. One or more blank lines stand between sentences; lines that begin with `-DOCSTART-` are passed over.
    UTF-8, with or without byte order mark; gzip where the name ends in .gz. The file is read line by line.

    Tags that break the scheme (an I- without a B- before it, as workers on Mechanical Turk write) are an error unless
    `on_bad_tags` says what to do: no label is changed silently. "mend" is the usual answer: by conlleval's
    rules such a tag begins a span, and "mend" writes the same spans with the right letters.

    Args:
        path: path of the file.
        gold: path of a file with the same sentences in the same order and the true tag in its last column.
        scheme: "BIO" or "IOBES".
        annotators: names of the columns, or None for 1, 2, 3 ... (or the header's).
        classes: tags in the order of their codes, each type with all its tags; or None for "O", then all tags of the
            types that occur, sorted.
        header: the first line holds names of columns: that of the tokens (any), then the annotators.
        on_bad_tags: "error", "mend" (counted in `num_mended`), or "keep" them as they are.

    Returns:
        Sentences in the file's order, named 0, 1, 2 ...

    Raises:
        DataError: with file, line, column, value and a way out (ten shown, the rest counted): another number of
            columns than the first line, a tag that is none, one that breaks the scheme, a sentence that an annotator
            labelled in part, bytes that are no UTF-8; tokens or a number of sentences that differ from the gold
            file's; or for the whole file: missing, empty, cut off.
    """
    check_scheme(scheme)
    _check_policy(on_bad_tags)
    reader = _Conll(os.fspath(path), scheme, on_bad_tags, None if classes is None else list(classes), header)
    if reader.given is not None:
        TagSet(reader.given, scheme)
    if annotators is not None:
        reader.names = names_array(annotators, "annotators")
    reader.read()
    known = None if gold is None else _gold_of(gold, scheme, on_bad_tags, reader.given)
    if known is not None:
        _check_same_sentences(reader, known)
    tag_set = TagSet(*_classes(reader.given, [reader, known], scheme))
    columns = reader.codes(tag_set)
    assert reader.names is not None
    crowd = Annotations(
        "sequence",
        *columns,
        np.arange(len(reader.tokens)),
        reader.names,
        name_array(tag_set.classes),
        positions=reader.positions(),
    )
    return CrowdSequences(
        reader.tokens,
        crowd,
        None if known is None else known.gold(tag_set),
        scheme=scheme,
        num_mended=reader.num_mended + (known.num_mended if known is not None else 0),
    )


def read_gold(
    path: str | os.PathLike[str],
    *,
    scheme: str = "BIO",
    classes: Iterable[str] | None = None,
    header: bool = False,
    on_bad_tags: str = "error",
) -> CrowdSequences:
    """Reads sentences with their true tags and no annotators, such as a test set: token first, tag in the last column.

    The columns between (part of speech, chunk) are passed over; otherwise as `read_conll`.

    Args:
        path: path of the file.
        scheme: "BIO" or "IOBES".
        classes: as in `read_conll`.
        header: the first line holds names of columns.
        on_bad_tags: as in `read_conll`.

    Returns:
        Sentences with gold and 0 annotators.

    Raises:
        DataError: as `read_conll`.
    """
    check_scheme(scheme)
    _check_policy(on_bad_tags)
    reader = _gold_of(path, scheme, on_bad_tags, None if classes is None else list(classes), header)
    tag_set = TagSet(*_classes(reader.given, [reader], scheme))
    none = np.empty(0, np.int64)
    crowd = Annotations(
        "sequence",
        none,
        none,
        none,
        np.arange(len(reader.tokens)),
        none,
        name_array(tag_set.classes),
        positions=none,
    )
    return CrowdSequences(
        reader.tokens, crowd, reader.gold(tag_set), scheme=scheme, num_mended=reader.num_mended
    )  # fmt: skip


def write_conll(
    sequences: CrowdSequences,
    path: str | os.PathLike[str],
    *,
    gold: str | os.PathLike[str] | None = None,
    header: bool = False,
) -> Path:
    """Writes what `read_conll` reads: tabs between columns, one blank line after each sentence.

    The names of tasks are not written, those of annotators only with a header, texts and offsets not at all.

    Args:
        sequences: sentences to write.
        path: path of the file, which appears when it is complete; compressed where the name ends in .gz.
        gold: path of a second file, for tokens and true tags.
        header: write a first line of names.

    Returns:
        The path.

    Raises:
        DataError: a token that no line can hold (empty, with a tab, a line break or a NUL, or `-DOCSTART-`), gold
            wanted and not there, or names of annotators that no header can hold.
    """
    crowd = sequences.annotations
    names = [str(name) for name in crowd.annotators.tolist()]
    if header:
        for name in names:
            if reason := _cell_problem(name):
                raise DataError(f"annotator {name!r} {reason}")
    _check_cells(sequences)

    def lines() -> Iterator[str]:
        if header:
            yield "\t".join(["token", *names]) + "\n\n"
        for task, tokens in enumerate(sequences.tokens):
            answers = sequences.answers(task)
            columns = [answers.get(name, [MISSING] * len(tokens)) for name in crowd.annotators.tolist()]
            for row in zip(tokens, *columns, strict=True):
                yield "\t".join(row) + "\n"
            yield "\n"

    if gold is not None:
        write_gold(sequences, gold)
    return write_lines(path, lines())


def write_gold(sequences: CrowdSequences, path: str | os.PathLike[str]) -> Path:
    """Writes tokens and true tags, as `read_gold` reads them.

    Args:
        sequences: sentences with gold.
        path: path of the file, which appears when it is complete; compressed where the name ends in .gz.

    Returns:
        The path.

    Raises:
        DataError: as `write_conll`.
    """
    return write_tags(sequences, sequences.gold_tags(), path)


def write_tags(sequences: CrowdSequences, tags: Sequence[Sequence[str]], path: str | os.PathLike[str]) -> Path:
    """Writes tokens and tags of any source, N lists [T_i], in two columns; otherwise as `write_gold`."""
    _check_cells(sequences)

    def lines() -> Iterator[str]:
        for tokens, own in zip(sequences.tokens, tags, strict=True):
            for token, tag in zip(tokens, own, strict=True):
                yield f"{token}\t{tag}\n"
            yield "\n"

    return write_lines(path, lines())


@dataclass
class _Conll:
    """One file of columns while it is read; codes are of tags as they come, until the classes are known."""

    name: str
    scheme: str
    on_bad_tags: str
    given: list[str] | None
    header: bool = False
    last_only: bool = False  # a gold file: only the last column counts, and nothing may be missing
    names: NDArray[Any] | None = None
    tokens: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of each sentence's first token
    num_mended: int = 0
    vocabulary: dict[str, int] = field(default_factory=dict)
    answers: list[tuple[int, int, list[int]]] = field(default_factory=list)  # task, annotator, codes
    bad: list[BadRow] = field(default_factory=list)
    num_bad: int = 0
    breaks_scheme: bool = False

    def read(self) -> None:
        width, first_line = 0, 0
        waits_for_header = self.header
        rows: list[list[str]] = []
        numbers: list[int] = []
        broken = False  # a line of the sentence is bad: what the others lack by that is no news
        for number, line in read_lines(self.name, self._note):
            if line is None:
                broken = True
                continue
            if not line.strip(" \t"):
                self._sentence([] if broken else rows, numbers)
                rows, numbers, broken = [], [], False
                continue
            cells = line.split("\t") if "\t" in line else line.split(" ")
            if "" in cells and "\t" not in line:
                cells = [cell for cell in cells if cell]
            if waits_for_header:
                waits_for_header = False
                if not self.last_only and self.names is None:
                    self.names = _header_names(self.name, number, cells[1:])
                width, first_line = len(cells), number
                self._check_width(number, line, width)
                continue
            if cells[0] == DOCUMENT:
                self._sentence([] if broken else rows, numbers)
                rows, numbers, broken = [], [], False
                continue
            if not width:
                width, first_line = len(cells), number
                self._check_width(number, line, width)
            if len(cells) != width:
                values = f"{len(cells)} value{'s' * (len(cells) != 1)}"
                reason = (
                    f"has {values} where line {first_line} has {width}. Each token has a tag or {MISSING} a column."
                )
                self._note(BadRow(self.name, number, None, shorten(line), reason))
                broken = True
                continue
            if not cells[0].strip(" "):
                self._note(BadRow(self.name, number, "token", "", "is no token. Fill it in, or remove the line."))
                broken = True
                continue
            rows.append(cells)
            numbers.append(number)
        self._sentence([] if broken else rows, numbers)
        if not self.tokens and not self.num_bad:
            raise DataError(f"{self.name} has no sentences.")
        self._stop_if_bad()

    def _check_width(self, number: int, line: str, width: int) -> None:
        if width < 2:
            what = "the tag" if self.last_only else "one column an annotator"
            reason = f"has one value. After the token comes {what}, behind a tab or a space."
            raise DataError(f"{self.name} has no tags.", [BadRow(self.name, number, None, shorten(line), reason)])
        if self.last_only:
            self.names = np.array([0])
        elif self.names is None:
            self.names = np.arange(1, width)
        elif len(self.names) != width - 1:
            raise DataError(
                f"{self.name}, row {number}: {width - 1} columns of annotators, but {len(self.names)} names were given."
            )

    def _sentence(self, rows: list[list[str]], numbers: list[int]) -> None:
        if not rows:
            return
        columns = list(zip(*rows, strict=True))
        task = len(self.tokens)
        self.tokens.append(list(columns[0]))
        self.lines.append(numbers[0])
        chosen = [columns[-1]] if self.last_only else columns[1:]
        for annotator, column in enumerate(chosen):
            if column.count(MISSING) == len(column) and not self.last_only:
                continue
            tags = [tag.strip(" ") for tag in column]
            count = tags.count(MISSING)
            if count == len(tags) and not self.last_only:
                continue
            if count:
                self._note_missing(annotator, tags, numbers, count)
            else:
                self.answers.append((task, annotator, self._codes(annotator, tags, numbers)))

    def _note_missing(self, annotator: int, tags: list[str], numbers: list[int], count: int) -> None:
        reason = (
            f"is missing, but the annotator labelled {len(tags) - count} of the sentence's {len(tags)} tokens "
            f"(lines {numbers[0]} to {numbers[-1]}). Label all of them, or none."
        )
        if self.last_only:
            reason = "is no true tag. Leave the sentence out, or fill it in."
        place = tags.index(MISSING)
        self._note(BadRow(self.name, numbers[place], self._column(annotator), MISSING, reason), count)

    def _codes(self, annotator: int, tags: list[str], numbers: list[int]) -> list[int]:
        codes = []
        known = self.vocabulary
        for place, tag in enumerate(tags):
            code = known.get(tag)
            if code is None:
                if reason := self._unknown(tag):
                    self._note(BadRow(self.name, numbers[place], self._column(annotator), tag, reason))
                    code = -1
                else:
                    code = known[tag] = len(known)
            codes.append(code)
        if min(codes) < 0:
            return codes
        if self.on_bad_tags != "keep" and (problems := tag_problems(tags, self.scheme)):
            if self.on_bad_tags == "mend":
                right = mended(tags, self.scheme)
                self.num_mended += sum(old != new for old, new in zip(tags, right, strict=True))
                return [known.setdefault(tag, len(known)) for tag in right]
            self.breaks_scheme = True
            for place, reason in problems:
                self._note(BadRow(self.name, numbers[place], self._column(annotator), tags[place], reason))
        return codes

    def _unknown(self, tag: str) -> str:
        """Why a tag is not to be taken, or ""."""
        if self.given is not None and tag not in self.given:
            shown = ", ".join(map(repr, self.given))
            same = [name for name in self.given if name.lower() == tag.lower()]
            return (
                f"is not one of the classes [{shown}].{did_you_mean(tag.upper() if same else tag, same or self.given)}"
            )
        reason = tag_problem(tag, self.scheme)
        if reason and not self.header and not self.tokens[1:]:
            reason += " If the line names the columns, pass header=True."
        return reason

    def _column(self, annotator: int) -> str:
        return "tag" if self.last_only or self.names is None else str(self.names[annotator])

    def _note(self, problem: BadRow, count: int = 1) -> None:
        self.num_bad += count
        if len(self.bad) < SHOWN:
            self.bad.append(problem)

    def _stop_if_bad(self) -> None:
        if self.num_bad:
            self.bad.sort(key=lambda row: row.row or 0)
            what = "1 bad value" if self.num_bad == 1 else f"{self.num_bad:,} bad values"
            raise DataError(f"{self.name} has {what}.{_WAY * self.breaks_scheme}", self.bad, self.num_bad)

    # === What was read, as arrays ===

    def codes(self, tag_set: TagSet) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Task, annotator and label of each annotation."""
        lengths = [len(codes) for _, _, codes in self.answers]
        place = tag_set.codes(self.vocabulary)
        said = np.array([code for _, _, codes in self.answers for code in codes], np.int64)
        tasks = np.array([task for task, _, _ in self.answers], np.int64)
        who = np.array([annotator for _, annotator, _ in self.answers], np.int64)
        return np.repeat(tasks, lengths), np.repeat(who, lengths), place[said] if len(said) else said

    def positions(self) -> NDArray[np.int64]:
        """Position of each annotation."""
        parts = [np.arange(len(codes)) for _, _, codes in self.answers]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def gold(self, tag_set: TagSet) -> list[NDArray[np.int64]]:
        """True codes of each sentence, of a gold file."""
        place = tag_set.codes(self.vocabulary)
        return [place[np.array(codes)] for _, _, codes in self.answers]


_WAY = " Fix tags that break the scheme, or read with on_bad_tags='mend' (corrects the letters and keeps the spans)."


def _gold_of(
    path: str | os.PathLike[str], scheme: str, on_bad_tags: str, given: list[str] | None, header: bool = False
) -> _Conll:
    if given is not None:
        TagSet(given, scheme)
    reader = _Conll(os.fspath(path), scheme, on_bad_tags, given, header, last_only=True)
    reader.read()
    return reader


def _check_same_sentences(reader: _Conll, known: _Conll) -> None:
    """Refuses a gold file with other sentences, and names the first tokens that differ."""
    for mine, theirs, line, other in zip(reader.tokens, known.tokens, reader.lines, known.lines, strict=False):
        if mine != theirs:
            place = next(
                (place for place, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b),
                min(len(mine), len(theirs)),
            )
            here = mine[place] if place < len(mine) else "the sentence's end"
            there = theirs[place] if place < len(theirs) else "the sentence's end"
            row = BadRow(known.name, other + place, "token", there, f"stands where {reader.name}, line {line + place}, "
                         f"has {here!r}. Gold has the same sentences in the same order.")  # fmt: skip
            raise DataError(f"{known.name} does not have the tokens of {reader.name}.", [row])
    if len(reader.tokens) != len(known.tokens):
        raise DataError(
            f"{known.name} has {len(known.tokens):,} sentences, {reader.name} has {len(reader.tokens):,}. Gold has the "
            "same sentences in the same order."
        )


def _header_names(file: str, number: int, names: list[str]) -> NDArray[Any]:
    stripped = [name.strip(" ") for name in names]
    try:
        return names_array(integers_if_all(stripped), "annotators")
    except ValueError as error:
        raise DataError(f"{file}, row {number}: the header names columns: {error}") from None


def _check_cells(sequences: CrowdSequences) -> None:
    for task, tokens in enumerate(sequences.tokens):
        for token in tokens:
            reason = _cell_problem(token)
            if token == DOCUMENT:
                reason = "means a new document in files of columns."
            if reason:
                raise DataError(f"sentence {task}: token {token!r} {reason}")


def _cell_problem(text: str) -> str:
    if not text.strip(" \t"):
        return "is empty, which a column cannot be."
    if any(letter in text for letter in "\t\n\r\0"):
        return "holds a tab, a line break or a NUL, which a column cannot."
    return "" if is_text(text) else "holds half a character."


def _classes(given: list[str] | None, readers: Sequence[_Conll | None], scheme: str) -> tuple[list[str], str]:
    if given is not None:
        return given, scheme
    tags = {tag for reader in readers if reader is not None for tag in reader.vocabulary}
    return allowed_tags({tag[2:] for tag in tags if tag != OUTSIDE}, scheme), scheme


def _check_policy(on_bad_tags: str) -> None:
    if on_bad_tags not in BAD_TAGS:
        expected = ", ".join(map(repr, BAD_TAGS))
        raise ConfigError(
            f"on_bad_tags is one of {expected}. Received: {on_bad_tags!r}.{did_you_mean(on_bad_tags, BAD_TAGS)}"
        )
