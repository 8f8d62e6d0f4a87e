"""CoNLL columns: one line per token, one column per annotator. Read line by line, written atomically."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.tags import OUTSIDE, READ_AS, TagSet, allowed_tags, mended, tag_problem, tag_problems
from crowdzoo.data.vocabulary import names_array
from crowdzoo.errors import BadRow, DataError, Setting, did_you_mean, shorten
from crowdzoo.files.text import is_text
from crowdzoo.reading.sentences.text_lines import TextFile, integers_if_all, write_lines

MISSING = "?"
DOCUMENT = "-DOCSTART-"
BAD_TAGS = ("error", "mend", "keep")


@checked(on_bad_tags=Choice(BAD_TAGS))
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
    """Read sentences in columns: one line per token, the token first, then one column per annotator.

    Columns are separated by tabs if a line has one, else by spaces. `?` means that the annotator did not label the
    sentence. Sentences are separated by one or more blank lines; lines that start with `-DOCSTART-` are ignored. In a
    folder, each file belongs to one annotator, whose name it has, and contains all sentences with the tags in the last
    column. UTF-8, with or without byte order mark; gzip if the name ends in .gz. The file is read line by line.

    Tags that break the scheme (such as I- without a B- before it, common on Mechanical Turk) are an error unless
    `on_bad_tags` allows them: no label is changed silently. The usual choice is "mend": by conlleval's rules, such a
    tag starts a span, and "mend" writes the same spans with the right letters.

    Args:
        path: path of the file, or of the folder.
        gold: path of a file with the same sentences in the same order and the true tag in its last column; `?` at all
            tokens of a sentence without gold.
        scheme: "BIO", "IOBES", or "BILOU" (L and U for E and S), whose tags become those of IOBES.
        annotators: names of the columns, or None for 1, 2, 3 ... (or the header's).
        classes: tags in the order of their codes, each type with all its tags; or None for "O", then all tags of the
            types that occur, sorted.
        header: whether the first line contains names of columns: any name for the tokens, then the annotators.
        on_bad_tags: "error", "mend" (counted in `num_mended`), or "keep" to leave them unchanged.

    Returns:
        Sentences in the file's order, named 0, 1, 2 ...

    Raises:
        DataError: with file, line, column, value and a fix (ten shown, the rest counted): another number of
            columns than the first line, an invalid tag, one that breaks the scheme, a sentence that an annotator
            labelled in part, bytes that are not UTF-8; tokens or a number of sentences that differ from the gold
            file's; or for the whole file: missing, empty, cut off.
    """
    reader = _Conll(path, scheme, on_bad_tags, classes, header)
    if annotators is not None:
        reader.names = names_array(annotators, "annotators")
    readers = _folder(Path(path), scheme, on_bad_tags, reader.given) if Path(path).is_dir() else [reader.read()]
    if gold is None:
        return _sequences(None, *readers)
    known = _Conll(gold, scheme, on_bad_tags, reader.given, last_only=True).read()
    _check_same_sentences(readers[0], known)
    return _sequences(known, *readers)


@checked(on_bad_tags=Choice(BAD_TAGS))
def read_gold(
    path: str | os.PathLike[str],
    *,
    scheme: str = "BIO",
    classes: Iterable[str] | None = None,
    header: bool = False,
    on_bad_tags: str = "error",
) -> CrowdSequences:
    """Read sentences with true tags and no annotators, such as a test set: token first, tag in the last column.

    Columns in between (part of speech, chunk) are ignored; otherwise see `read_conll`. A sentence with `?` at all
    tokens has no gold.

    Args:
        path: path of the file.
        scheme: as in `read_conll`.
        classes: as in `read_conll`.
        header: whether the first line contains names of columns.
        on_bad_tags: as in `read_conll`.

    Returns:
        Sentences with gold and 0 annotators.

    Raises:
        DataError: see `read_conll`.
    """
    return _sequences(_Conll(path, scheme, on_bad_tags, classes, header, last_only=True).read())


def write_conll(
    sequences: CrowdSequences,
    path: str | os.PathLike[str],
    *,
    gold: str | os.PathLike[str] | None = None,
    header: bool = False,
) -> Path:
    """Write a file for `read_conll`: tabs between columns, one blank line after each sentence.

    Names of tasks, texts and offsets are not written, and names of annotators only with a header.

    Args:
        sequences: sentences to write.
        path: path of the file, which is written atomically; compressed if the name ends in .gz.
        gold: path of a second file, for tokens and true tags.
        header: whether to write a first line of names.

    Returns:
        The path.

    Raises:
        DataError: a token that a line cannot contain (empty, with a tab, a line break or a NUL, or `-DOCSTART-`), no
            gold although requested, or names of annotators that a header cannot contain.
    """
    crowd = sequences.annotations
    names = [str(name) for name in crowd.annotators.tolist()]
    for name in names if header else ():
        if reason := _cell_problem(name):
            raise DataError(f"annotator {name!r} {reason}")
    _check_cells(sequences)

    def lines() -> Iterator[str]:
        if header:
            yield "\t".join(["token", *names]) + "\n\n"
        for task, tokens in enumerate(sequences.tokens):
            answers = sequences.answers(task)
            columns = [answers.get(name, [MISSING] * len(tokens)) for name in crowd.annotators.tolist()]
            yield _sentence_lines(tokens, *columns)

    if gold is not None:
        write_gold(sequences, gold)
    return write_lines(path, lines())


def write_gold(sequences: CrowdSequences, path: str | os.PathLike[str]) -> Path:
    """Write tokens and true tags for `read_gold`; `?` at the tokens of a sentence without gold.

    Args:
        sequences: sentences with gold.
        path: path of the file, which is written atomically; compressed if the name ends in .gz.

    Returns:
        The path.

    Raises:
        DataError: see `write_conll`; or no sentence has gold.
    """
    known = zip(sequences.gold_tags(), sequences.tokens, strict=True)
    return write_tags(sequences, [[MISSING] * len(tokens) if tags is None else tags for tags, tokens in known], path)


def write_tags(sequences: CrowdSequences, tags: Sequence[Sequence[str]], path: str | os.PathLike[str]) -> Path:
    """Write tokens and any tags, N lists [T_i], in two columns; otherwise see `write_gold`."""
    _check_cells(sequences)
    pairs = zip(sequences.tokens, tags, strict=True)
    return write_lines(path, (_sentence_lines(tokens, own) for tokens, own in pairs))


def _sentence_lines(*columns: Sequence[str]) -> str:
    """One line per token of a sentence, followed by a blank line."""
    return "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)) + "\n"


def _folder(folder: Path, *options: Any) -> list[_Conll]:
    """Files of a folder, one per annotator, with tags in the last column."""
    readers: list[_Conll] = []
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        reader = _Conll(path, *options, last_only=True).read()
        reader.names = np.array([path.stem], object)
        readers.append(reader)
        _check_same_sentences(readers[0], reader)
    if not readers:
        fix = f"If its folders are a platform's export, such as brat's: {Setting('platform', 'brat')}."
        raise DataError(f"{folder} holds no files. {fix}")
    return readers


@dataclass
class _Conll:
    """Reader of one file of columns; tags are coded in order of appearance until the classes are known."""

    path: str | os.PathLike[str]
    scheme: str
    on_bad_tags: str
    classes: Iterable[str] | None
    header: bool = False
    last_only: bool = field(default=False, kw_only=True)  # a gold file: only the last column counts
    names: NDArray[Any] | None = None
    tokens: list[list[str]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # line of each sentence's first token
    num_mended: int = 0
    vocabulary: dict[str, int] = field(default_factory=dict)
    answers: list[tuple[int, int, list[int]]] = field(default_factory=list)  # task, annotator, codes
    breaks_scheme: bool = False

    def __post_init__(self) -> None:
        Choice(READ_AS).checked("", "scheme", self.scheme)
        self.file = TextFile(self.path)
        self.own = _bilou if self.scheme == "BILOU" else str  # from the file's scheme to IOBES, and back
        self.scheme = READ_AS[self.scheme]
        self.given = None if self.classes is None else TagSet(map(self.own, self.classes), self.scheme).classes

    def read(self) -> _Conll:
        """Read the file, and return self."""
        width = first_line = start = 0
        rows: list[list[str]] = []
        broken = False  # after a bad line, missing tags of the sentence are not reported
        for number, line in self.file.lines():
            if line is None:
                broken = True
                continue
            cells = line.split("\t") if "\t" in line else line.split(" ")
            if "" in cells and "\t" not in line:
                cells = [cell for cell in cells if cell]
            is_header = self.header and not width
            if not line.strip(" \t") or (cells[0] == DOCUMENT and not is_header):
                self._sentence([] if broken else rows, start)
                rows, broken = [], False
                continue
            if not width:
                width, first_line = len(cells), number
                if is_header and not self.last_only and self.names is None:
                    self.names = _header_names(self.file.name, number, cells[1:])
                self._check_width(number, line, width)
            if is_header:
                continue
            if len(cells) != width:
                reason = f"has {len(cells)} value{'s' * (len(cells) != 1)} where line {first_line} has {width}."
                self.file.note(number, None, shorten(line), f"{reason} Write a tag in each column, or {MISSING}.")
                broken = True
            elif not cells[0].strip(" "):
                self.file.note(number, "token", "", "is not a token. Fill it in, or remove the line.")
                broken = True
            elif not broken:
                start = start if rows else number
                rows.append(cells)
        self._sentence([] if broken else rows, start)
        if not self.tokens and not self.file.num_bad:
            raise DataError(f"{self.file.name} has no sentences.")
        if self.last_only and not self.answers and not self.file.num_bad:
            raise DataError(f"{self.file.name} has no true tags: its last column holds {MISSING} alone.")
        mend = f"read with {Setting('on_bad_tags', 'mend')} (corrects the letters and keeps the spans)"
        self.file.stop_if_bad(hint=f" Fix tags that break the scheme, or {mend}." * self.breaks_scheme)
        return self

    def _check_width(self, number: int, line: str, width: int) -> None:
        if width < 2:
            what = "the tag" if self.last_only else "one column an annotator"
            reason = f"has one value. After the token comes {what}, behind a tab or a space."
            name = self.file.name
            raise DataError(f"{name} has no tags.", [BadRow(name, number, None, shorten(line), reason)])
        if self.last_only:
            self.names = np.array([0])
        elif self.names is None:
            self.names = np.arange(1, width)
        elif len(self.names) != width - 1:
            text = f"{width - 1} columns of annotators, but {len(self.names)} names were given."
            raise DataError(f"{self.file.name}, row {number}: {text}")

    def _sentence(self, rows: list[list[str]], start: int) -> None:
        """Add a sentence that starts in line `start`."""
        if not rows:
            return
        tokens, *columns = zip(*rows, strict=True)
        task = len(self.tokens)
        self.tokens.append(list(tokens))
        self.starts.append(start)
        for annotator, column in enumerate(columns[-1:] if self.last_only else columns):
            count = column.count(MISSING)
            if count < len(column):
                column = tuple(self.own(tag.strip(" ")) for tag in column)
                count = column.count(MISSING)
            if 0 < count < len(column):
                self._note_missing(annotator, column, start, count)
            elif not count:
                self.answers.append((task, annotator, self._codes(annotator, column, start)))

    def _note_missing(self, annotator: int, tags: Sequence[str], start: int, count: int) -> None:
        known = f"{len(tags) - count} of the sentence's {len(tags)} tokens (lines {start} to {start + len(tags) - 1})"
        reason = f"is missing, but the annotator labelled {known}. Label all of them, or none."
        if self.last_only:
            reason = f"is not a true tag, but {known} have one. Fill it in, or write {MISSING} at all of them."
        self.file.note(start + tags.index(MISSING), self._column(annotator), MISSING, reason, count)

    def _codes(self, annotator: int, tags: Sequence[str], start: int) -> list[int]:
        known = self.vocabulary
        unknown = False
        for place, tag in enumerate(tags):
            if tag not in known:
                if reason := self._unknown(tag):
                    self.file.note(start + place, self._column(annotator), self.own(tag), self.own(reason))
                    unknown = True
                else:
                    known[tag] = len(known)
        if not unknown and self.on_bad_tags != "keep" and (problems := tag_problems(tags, self.scheme)):
            if self.on_bad_tags == "mend":
                right = mended(tags, self.scheme)
                self.num_mended += sum(old != new for old, new in zip(tags, right, strict=True))
                return [known.setdefault(tag, len(known)) for tag in right]
            self.breaks_scheme = True
            for place, reason in problems:
                self.file.note(start + place, self._column(annotator), self.own(tags[place]), self.own(reason))
        return [known.get(tag, -1) for tag in tags]

    def _unknown(self, tag: str) -> str:
        """Why a tag is invalid, or ""."""
        if self.given is not None and tag not in self.given:
            names = ", ".join(map(repr, self.given))
            same = [name for name in self.given if name.lower() == tag.lower()]
            hint = did_you_mean(tag.upper() if same else tag, same or self.given)
            return f"is not one of the classes [{names}].{hint}"
        reason = tag_problem(tag, self.scheme)
        if reason and not self.header and not self.tokens[1:]:
            reason += " If the line names the columns, remove it; read_conll in Python has the argument header for it."
        return reason

    def _column(self, annotator: int) -> str:
        return "tag" if self.last_only or self.names is None else str(self.names[annotator])

    def coded(self, tag_set: TagSet) -> list[tuple[int, int, NDArray[np.int64]]]:
        """The answers in codes of the classes."""
        place = tag_set.codes(self.vocabulary)
        return [(task, annotator, place[codes]) for task, annotator, codes in self.answers]


_IN_OTHER_SCHEME = {"L": "E", "E": "L", "U": "S", "S": "U", "BILOU": "IOBES", "IOBES": "BILOU"}


def _bilou(text: str) -> str:
    """Convert tags in a text from BILOU to IOBES, and vice versa."""
    return re.sub(r"(?<![\w-])(?:[LEUS](?=-)|BILOU|IOBES)", lambda tag: _IN_OTHER_SCHEME[tag[0]], text)


def _sequences(known: _Conll | None, *readers: _Conll) -> CrowdSequences:
    """Sentences of a gold file, of files of answers, or of both."""
    files = [*readers, *([] if known is None else [known])]
    tokens, scheme = files[0].tokens, files[0].scheme
    types = {tag[2:] for file in files for tag in file.vocabulary if tag != OUTSIDE}
    tag_set = TagSet(files[0].given or allowed_tags(types, scheme), scheme)
    names = [name for reader in readers for name in np.asarray(reader.names).tolist()]
    coded = ((place, *answer) for place, file in enumerate(readers) for answer in file.coded(tag_set))
    answers = [(task, place + who, codes) for place, task, who, codes in coded]
    annotators = names_array(names, "annotators") if names else np.empty(0, np.int64)
    crowd = sentence_annotations(answers, np.arange(len(tokens)), annotators, tag_set.classes)
    truth = {} if known is None else {task: codes for task, _, codes in known.coded(tag_set)}
    gold = [truth.get(task) for task in range(len(tokens))]
    return CrowdSequences(tokens, crowd, gold, scheme=scheme, num_mended=sum(file.num_mended for file in files))


def _check_same_sentences(reader: _Conll, known: _Conll) -> None:
    """Reject a gold file with other sentences; names the first differing tokens."""
    name, gold = reader.file.name, known.file.name
    for mine, theirs, line, other in zip(reader.tokens, known.tokens, reader.starts, known.starts, strict=False):
        if mine != theirs:
            pairs = enumerate(zip_longest(mine, theirs, fillvalue=""))
            place, (here, there) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
            end = "the sentence's end"
            reason = f"is where {name}, line {line + place}, has {here or end!r}."
            reason += " Both have the same sentences in the same order."
            row = BadRow(gold, other + place, "token", there or end, reason)
            raise DataError(f"{gold} does not have the tokens of {name}.", [row])
    if len(reader.tokens) != len(known.tokens):
        raise DataError(
            f"{gold} has {len(known.tokens):,} sentences, {name} has {len(reader.tokens):,}. Both have the same "
            f"sentences in the same order; {MISSING} is at each token of a sentence without tags."
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
            document = "means a new document in files of columns." if token == DOCUMENT else ""
            if reason := document or _cell_problem(token):
                raise DataError(f"sentence {task}: token {token!r} {reason}")


def _cell_problem(text: str) -> str:
    if not text.strip(" \t"):
        return "is empty, which a column cannot be."
    if any(letter in text for letter in "\t\n\r\0"):
        return "holds a tab, a line break or a NUL, which a column cannot."
    return "" if is_text(text) else "holds half a character."
