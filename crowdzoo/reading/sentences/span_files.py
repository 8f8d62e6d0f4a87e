"""JSON lines of spans, as written by annotation tools. Read line by line."""

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Choice
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.drawn_spans import GOLD, DrawnSpan, outermost
from crowdzoo.data.tags import TagSet, allowed_tags, check_scheme, tags_of, type_problem
from crowdzoo.data.tokens import split_tokens, token_edges
from crowdzoo.data.vocabulary import names_array
from crowdzoo.errors import BadRow, DataError, Setting, did_you_mean, keep_one, shorten
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.files.text import is_text, shown
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.sentences.text_lines import ExportLines, TextFile, integers_if_all, sorted_names
from crowdzoo.reading.tables.annotation_files import rejects_file
from crowdzoo.reading.tables.layout import Layout

_KEYS = ("task", "annotator", "gold", "text", "tokens", "spans")
HEAD = ("tasks", "annotators", "classes")
_SPAN_KEYS = ("start", "end", "label")
_FRAGMENTS = "fragments"
_KNOWN = (*_SPAN_KEYS, _FRAGMENTS)


def read_spans(
    path: str | os.PathLike[str],
    *,
    scheme: str = "BIO",
    annotators: Iterable[Any] | None = None,
    types: Iterable[str] | None = None,
    on_bad_tags: str = "error",
    platform: str | None = None,
    field: str | None = None,
    text: str | None = None,
    encoding: str | None = None,
    on_bad_rows: str = "error",
    on_duplicate: str = "error",
    rejects: str | os.PathLike[str] | None = None,
    layer: str | Sequence[str] | None = None,
) -> CrowdSequences:
    r"""Read spans as written by annotation tools: one JSON object per line, for one sentence by one annotator.

    Keys:
        task: name of the sentence, a string or an integer. All lines of a task have the same text and tokens.
        annotator: name of the annotator, a string or an integer. Instead, `"gold": true` marks gold. A line with
            neither (and without spans) only declares a sentence.
        text: the sentence. Without `tokens`, it is split by `split_tokens`.
        tokens: list of strings; if there is a text, they follow each other in it, with only white space in between. At
            least one of `text` and `tokens` is required.
        spans: list of objects `{"start": 0, "end": 4, "label": "PER"}`. With a text, start and end count its characters
            (Unicode code points, from 0; end is exclusive), and both must be edges of tokens. Without a text, they
            count tokens. A span in pieces also has `"fragments": [[0, 4], [8, 12]]`, from its start to its end.

    Spans of a line may be nested, overlap or be in pieces. All are in `drawn`; tags contain the `outermost` ones, and a
    warning tells how many are missing. Repeated spans of a line count once.

    Ids are compared as text: 7 and "7" are the same, and if all are integers they become integers. UTF-8; gzip if the
    name ends in .gz. The file is read line by line; blank lines are ignored.

    A first line with only `tasks`, `annotators` or `classes`, lists of names in the order of their codes, defines what
    the other lines cannot: unused names, another order, strings that look like integers. `write_spans` writes one if
    needed.

    Args:
        path: path of the file.
        scheme: scheme of the tags that the spans become, "BIO" or "IOBES".
        annotators: names in code order, or None for the sorted names that occur.
        types: the possible labels, or None for those that occur.
        on_bad_tags: handling of spans whose edge is not an edge of a token: "error" (default) makes it a bad line,
            "mend" takes all tokens that the span touches, and `num_mended` counts such spans. A span that touches no
            token is always a bad line.
        platform: name of the labelling platform of an export (see `PLATFORMS` of `crowdzoo.reading.platforms.export`);
            None: not an export.
        field: question of the export; may be None if only one is answered with spans.
        text: text column of the export; None: `text`, or the only column with strings.
        encoding: encoding of an export; None: UTF-8, or that of a byte order mark.
        on_bad_rows: "error" (default) raises an error for bad lines, "reject" skips them; in an export, these are an
            annotator's answer for a text, or an entry. They are counted in `annotations.num_rejected` and, unless
            written to `rejects`, in a warning.
        on_duplicate: handling of a second line by the same annotator for a task: "error" (default) makes it a bad line,
            "first" and "last" keep that line.
        rejects: CSV file for skipped lines, as in `ReadingOptions`.
        layer: labels of the spans to read, a list or comma-separated, such as one level of nested spans; None: all.

    Returns:
        Sentences in order of first appearance, with gold if they have any; classes are "O", then the tags of the types,
        sorted.

    Raises:
        DataError: with file, line, key, value and a fix (ten shown, the rest counted): invalid JSON, an unknown key, a
            value of another type, text or tokens that differ from the task's first line, a repeated (task, annotator)
            or second gold, a span outside the text, inside a token or empty; or for the whole file: missing, empty, cut
            off, or without a label of `layer`.

    Warns:
        UserWarning: number of spans missing from tags.
    """
    check_scheme(scheme)
    Choice(("error", "mend")).checked("", "on_bad_tags", on_bad_tags)
    Choice(("error", "reject")).checked("", "on_bad_rows", on_bad_rows)
    Choice(("error", "first", "last")).checked("", "on_duplicate", on_duplicate)
    if platform is None:
        file = TextFile(path)
    else:
        export = Export(path, platform, "sequence", field, layout=Layout.of({"encoding": encoding}))
        file = ExportLines(export, text)
    file.skips = on_bad_rows == "reject"
    reader = _Spans(
        file,
        scheme,
        None if annotators is None else names_array(annotators, "annotators"),
        None if types is None else list(types),
        on_bad_tags == "mend",
        on_duplicate,
        [name.strip() for name in layer.split(",")] if isinstance(layer, str) else layer,
    )
    reader.read()
    _tell_left_out(file.bad + reader.repeated, rejects)
    if isinstance(file, ExportLines):
        file.export.warn_of(file.export.left_out)
    return reader.result()


@dataclass
class Sentence:
    """A sentence from the first line of its task."""

    code: int
    line: int
    text: str | None
    tokens: list[str]
    offsets: NDArray[np.int64] | None
    given: list[str] | None  # tokens in the file
    lines: dict[str, int] = field(default_factory=dict)  # annotator -> line
    gold: list[DrawnSpan] | None = None

    def __post_init__(self) -> None:
        edges = token_edges(len(self.tokens)) if self.offsets is None else self.offsets
        # first character (or token) of each token -> its number, and end -> its number
        self.first, self.last = ({place: token for token, place in enumerate(side)} for side in edges.T.tolist())

    def check_ends(self, key: str, start: int, end: int) -> None:
        """Reject a span that is empty or exceeds the sentence."""
        size, unit = (len(self.tokens), "tokens") if self.text is None else (len(self.text), "characters")
        if not 0 <= start < end <= size:
            name, value = ("end", end) if 0 <= start < size else ("start", start)
            what = "is not after the start" if 0 <= start < size and end <= start else "is outside the sentence"
            fix = "Correct it, or leave the span out."
            raise LineError(f"{key}.{name}", value, f"{what}: start < end, and there are {size} {unit}, from 0. {fix}")

    def off_edge(self, name: str, value: int) -> str:
        """Reason for an offset that is not an edge of a token, with the nearest edge."""
        assert self.offsets is not None
        for (start, end), token in zip(self.offsets.tolist(), self.tokens, strict=True):
            if start < value < end:
                where = f"inside the token {token!r} (characters {start} to {end})"
                fix = f"set {Setting('on_bad_tags', 'mend')} to mark the whole token"
                return f"is {where}. Move it to the token's edge, or {fix}."
        side, where = (0, "begins") if name == "start" else (1, "ends")
        nearest = self.offsets[np.abs(self.offsets[:, side] - value).argmin(), side]
        return f"is not a place where a token {where}. Did you mean {nearest}?"


class LineError(Exception):
    """An invalid value of a line: its key or None, the value, and the reason."""

    def __init__(self, key: str | None, value: Any, reason: str):
        super().__init__(key, shown(value), reason)


def check_keys(row: dict[str, Any], known: Sequence[str], before: str = "") -> None:
    """Reject an object with an unknown key."""
    for key in row:
        if key not in known:
            reason = f"is under an unknown key; there are {', '.join(known)}.{did_you_mean(key, known)}"
            raise LineError(f"{before}{key}", row[key], reason)


def aligned(text: str, tokens: Sequence[str]) -> NDArray[np.int64] | str:
    """Offsets of tokens in a text, int64 [T, 2], or the problem as the end of a sentence."""
    offsets = []
    place = 0
    for number, token in enumerate(tokens):
        while place < len(text) and text[place].isspace():
            place += 1
        if not text.startswith(token, place):
            return f"are not in the text: token {number}, {token!r}, is not at character {place}."
        offsets.append((place, place + len(token)))
        place += len(token)
    if text[place:].strip():
        return f"do not cover the text, which goes on with {shorten(text[place:].strip())!r}."
    return np.array(offsets, np.int64).reshape(-1, 2)


def is_token(token: Any) -> bool:
    """Whether a value can be a token: a string with a visible character."""
    return isinstance(token, str) and bool(token.strip()) and is_text(token)


@dataclass
class _Spans:
    """Reader of one file of spans."""

    file: TextFile
    scheme: str
    annotators: NDArray[Any] | None
    types: list[str] | None
    widens: bool
    on_duplicate: str
    layer: Sequence[str] | None = None
    num_mended: int = 0
    sentences: dict[str, Sentence] = field(default_factory=dict)
    answers: dict[tuple[int, str], list[DrawnSpan]] = field(default_factory=dict)
    flat: bool = True  # whether no spans overlap or are in pieces
    repeated: list[BadRow] = field(default_factory=list)  # skipped by `on_duplicate`
    tasks: list[Any] | None = None  # from the first line
    classes: list[str] | None = None

    def read(self) -> None:
        name, is_first = self.file.name, True
        for number, line in self.file.lines():
            if line is not None and line.strip(" \t"):
                try:
                    self._line(number, line, is_first)
                    is_first = False
                except LineError as problem:
                    self.file.note(number, *problem.args)
        self.file.stop_if_bad(hint=f" Fix the file, or skip bad lines with {Setting('on_bad_rows', 'reject')}.")
        if not self.sentences:
            raise DataError(f"{name} has no sentences.")
        if self.tasks is not None and [str(name) for name in self.tasks] != list(self.sentences):
            raise DataError(f"{name}: the tasks are not those that the first line names, in their order.")

    def _line(self, number: int, line: str, is_first: bool) -> None:
        try:
            row = parse_json(line)
        except JsonError as error:
            raise LineError(None, line, f"{error}.") from None
        if not isinstance(row, dict):
            raise LineError(None, line, "is not a JSON object.")
        if is_first and row and set(row) <= set(HEAD):
            self._names(row)
            return
        check_keys(row, _KEYS)
        task = self._id(row, "task")
        if task is None:
            raise LineError("task", None, "is missing. Each line names its task.")
        annotator = self._id(row, "annotator")
        gold = row.get("gold", False)
        if not isinstance(gold, bool):
            raise LineError("gold", gold, "is neither true nor false.")
        if gold and annotator is not None:
            both = 'is next to "gold": true. A line is the truth or an annotator\'s.'
            raise LineError("annotator", annotator, both)
        sentence = self._sentence(task, row, number)
        if annotator is None and not gold:
            if row.get("spans"):
                raise LineError("spans", row["spans"], 'belong to nobody: name the annotator, or say "gold": true.')
            return
        if "spans" not in row:
            raise LineError("spans", None, "is missing. Write [] for none.")
        spans = self._drawn(sentence, row["spans"])
        if annotator is None:
            if sentence.gold is not None:
                raise LineError("gold", True, f"is the second truth of task {task!r}. Keep one.")
            sentence.gold = spans
            return
        if annotator in sentence.lines:
            before = f"labelled task {task!r} before, in line {sentence.lines[annotator]}"
            if self.on_duplicate == "error":
                fix = f"Remove one, or keep one with {keep_one()}."
                raise LineError("annotator", annotator, f"{before}. {fix}")
            reason = f"{before}; the {self.on_duplicate} one is kept."
            self.repeated.append(BadRow(self.file.name, number, "annotator", annotator, reason))
            if self.on_duplicate == "last":
                self.answers[sentence.code, annotator] = spans
            return
        if self.annotators is not None:
            names = [str(name) for name in self.annotators.tolist()]
            if annotator not in names:
                hint = did_you_mean(annotator, names)
                raise LineError("annotator", annotator, f"is not one of the annotators.{hint}")
        sentence.lines[annotator] = number
        self.answers[sentence.code, annotator] = spans

    def _names(self, row: dict[str, Any]) -> None:
        """Read names from the first line; arguments take precedence."""
        for key, names in row.items():
            known = isinstance(names, list) and all(type(name) in (str, int) for name in names)
            if not known or not all(is_text(str(name)) for name in names):
                raise LineError(key, names, "is not a list of names.")
            try:
                if key == "classes":
                    tag_set = TagSet(names, self.scheme)
                else:
                    names_array(names, key)
            except (ValueError, TypeError) as error:
                raise LineError(key, names, f"cannot be taken: {error}") from None
            if key == "tasks":
                self.tasks = names
            elif key == "annotators" and self.annotators is None:
                self.annotators = names_array(names, key)
            elif key == "classes" and self.types is None:
                self.types, self.classes = tag_set.types, names

    def _id(self, row: dict[str, Any], key: str) -> str | None:
        value = row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise LineError(key, value, "is not a string or an integer.")
        if not str(value).strip():
            raise LineError(key, value, "is empty. Fill it in, or remove the line.")
        if not is_text(str(value)):
            raise LineError(key, value, "holds a NUL or half a character.")
        return str(value)

    def _sentence(self, task: str, row: dict[str, Any], number: int) -> Sentence:
        """The task's sentence, from this line or an earlier equal one."""
        text, given_tokens = row.get("text"), row.get("tokens")
        if (known := self.sentences.get(task)) is not None:
            for key, mine, theirs in (("text", text, known.text), ("tokens", given_tokens, known.given)):
                if mine != theirs:
                    reason = f"differs from what line {known.line} says of task {task!r}. A task is one sentence."
                    raise LineError(key, mine, reason)
            return known
        if text is not None and not (isinstance(text, str) and is_text(text)):
            raise LineError("text", text, "is not a string, or holds a NUL or half a character.")
        if given_tokens is not None and not (
            isinstance(given_tokens, list) and all(is_token(token) for token in given_tokens)
        ):
            raise LineError("tokens", given_tokens, "is not a list of strings with something to see in each.")
        offsets: NDArray[np.int64] | str | None
        if given_tokens is not None:
            tokens, offsets = given_tokens, None if text is None else aligned(text, given_tokens)
        elif text is not None:
            tokens, offsets = split_tokens(text)
        else:
            raise LineError("text", None, "is missing. Each line has the sentence as text, as tokens, or both.")
        if isinstance(offsets, str):
            raise LineError("tokens", given_tokens, offsets)
        if not tokens:
            key = "text" if given_tokens is None else "tokens"
            raise LineError(key, text or given_tokens, "has no tokens. Leave it out.")
        first = next(iter(self.sentences.values()), None)
        if first is not None and (first.text is None) != (text is None):
            have = "no text" if first.text is None else "a text"
            reason = f"differs from line {first.line}, which has {have}. All lines have one, or none."
            raise LineError("text", text, reason)
        self.sentences[task] = Sentence(len(self.sentences), number, text, tokens, offsets, given_tokens)
        return self.sentences[task]

    def _drawn(self, sentence: Sentence, spans: Any) -> list[DrawnSpan]:
        """Distinct spans of a line, in the order of the text."""
        if not isinstance(spans, list):
            raise LineError("spans", spans, "is not a list.")
        drawn: list[DrawnSpan] = []
        for number, span in enumerate(spans):
            key = f"spans[{number}]"
            if not isinstance(span, dict):
                raise LineError(key, span, 'is not an object {"start": ..., "end": ..., "label": ...}.')
            check_keys(span, _KNOWN, f"{key}.")
            for name in _SPAN_KEYS:
                if name not in span:
                    raise LineError(key, span, f"has no {name}.")
            label, ends = span["label"], (span["start"], span["end"])
            if self.layer is not None and label not in self.layer:
                continue
            whole = _FRAGMENTS not in span
            pieces = (self._tokens_of(sentence, key, *ends, label),) if whole else self._pieces(sentence, key, span)
            drawn.append(DrawnSpan(label, pieces))
        drawn = sorted({*drawn}, key=lambda span: (span.fragments, span.label))
        side_by_side = all(left.end <= right.start for left, right in pairwise(drawn))
        self.flat &= side_by_side and all(len(span.fragments) == 1 for span in drawn)
        return drawn

    def _pieces(self, sentence: Sentence, key: str, span: dict[str, Any]) -> tuple[tuple[int, int], ...]:
        """Tokens of a span's pieces; adjacent pieces are merged."""
        fragments = span[_FRAGMENTS]
        pairs = isinstance(fragments, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in fragments)
        pieces: list[tuple[int, int]] = []
        for start, end in fragments if pairs else ():
            first, last = self._tokens_of(sentence, key, start, end, span["label"])
            if pieces and first <= pieces[-1][1]:
                before = pieces.pop()
                first, last = before[0], max(before[1], last)
            pieces.append((first, last))
        crossing = any(start < end for (_, end), (start, _) in pairwise(fragments if pieces else ()))
        if not pieces or crossing or [fragments[0][0], fragments[-1][1]] != [span["start"], span["end"]]:
            reason = "is not a list of pieces [start, end], one after the other, from the start of the span to its end."
            raise LineError(f"{key}.{_FRAGMENTS}", fragments, reason)
        return tuple(pieces)

    def _tokens_of(self, sentence: Sentence, key: str, start: Any, end: Any, label: Any) -> tuple[int, int]:
        """First token of a piece of a span, and its end (exclusive)."""
        for name, value in (("start", start), ("end", end)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise LineError(f"{key}.{name}", value, "is not an integer.")
        if reason := type_problem(label):
            raise LineError(f"{key}.label", label, reason)
        if not is_text(label):
            raise LineError(f"{key}.label", label, "holds half a character.")
        if self.types is not None and label not in self.types:
            reason = f"is not one of the types [{', '.join(map(repr, self.types))}].{did_you_mean(label, self.types)}"
            raise LineError(f"{key}.label", label, reason)
        sentence.check_ends(key, start, end)
        if self.widens and (start not in sentence.first or end not in sentence.last):
            assert sentence.offsets is not None  # spans that count tokens are always at edges
            touched = np.flatnonzero((sentence.offsets[:, 0] < end) & (sentence.offsets[:, 1] > start))
            if len(touched):
                self.num_mended += 1
                return int(touched[0]), int(touched[-1]) + 1
        for name, value, edges in (("start", start, sentence.first), ("end", end, sentence.last)):
            if value not in edges:
                raise LineError(f"{key}.{name}", value, sentence.off_edge(name, value))
        return sentence.first[start], sentence.last[end] + 1

    def result(self) -> CrowdSequences:
        sentences = list(self.sentences.values())
        gold = {(sentence.code, ""): sentence.gold for sentence in sentences if sentence.gold is not None}
        answers = {**gold, **self.answers}
        types = {label for spans in answers.values() for label, _ in spans}
        if unmet := [name for name in self.layer or () if name not in types]:
            reason = f"nobody marked a span of {Setting('layer', unmet[0])}. Correct it, or leave it out."
            raise DataError(f"{self.file.name}: {reason}")
        allowed = allowed_tags(types if self.types is None else self.types, self.scheme)
        tag_set = TagSet(self.classes or allowed, self.scheme)
        names = sorted_names({name for _, name in self.answers}) if self.annotators is None else self.annotators
        place = {str(name): code for code, name in enumerate(names.tolist())}
        kept = answers if self.flat else {key: outermost(spans) for key, spans in answers.items()}
        codes = {}
        for (task, name), spans in kept.items():
            flat = [(span.label, span.start, span.end) for span in spans]
            codes[task, name] = tag_set.codes(tags_of(flat, len(sentences[task].tokens), self.scheme))
        rows = [(task, place[name], codes[task, name]) for task, name in self.answers]
        tasks = names_array(self.tasks or integers_if_all(list(self.sentences)), "tasks")
        crowd = sentence_annotations(rows, tasks, names, tag_set.classes)
        crowd = replace(crowd, num_rejected=self.file.num_bad + len(self.repeated), num_replaced=len(self.repeated))
        texts = offsets = drawn = None
        if sentences[0].text is not None:
            texts = [sentence.text or "" for sentence in sentences]
            offsets = [sentence.offsets for sentence in sentences if sentence.offsets is not None]
        if not self.flat:
            self._tell_lost(answers, kept)
            drawn = {(task, place.get(name, GOLD)): tuple(spans) for (task, name), spans in answers.items()}
        tokens = [sentence.tokens for sentence in sentences]
        truth = [codes.get((sentence.code, "")) for sentence in sentences]
        return CrowdSequences(tokens, crowd, truth, texts, offsets, self.scheme, self.num_mended, drawn)

    def _tell_lost(self, answers: dict[Any, list[DrawnSpan]], kept: dict[Any, list[DrawnSpan]]) -> None:
        """Warn of spans that tags do not contain."""
        total, flat = (sum(map(len, spans.values())) for spans in (answers, kept))
        pieces = sum(len(span.fragments) > 1 for spans in answers.values() for span in spans)
        warnings.warn(
            f"{self.file.name}: of {total:,} spans, {total - flat:,} lie inside longer ones or overlap them, and tags "
            f"lack these; {pieces:,} are in pieces, and tags fill their gaps. The method span-votes and the agreement "
            f"of annotators take spans as they are, and all else tags. {Setting('layer', 'LABEL')} reads one label.",
            UserWarning,
            stacklevel=4,
        )


def _tell_left_out(bad: list[BadRow], rejects: str | os.PathLike[str] | None) -> None:
    """Write skipped lines to `rejects`, or warn of them."""
    with rejects_file(None if rejects is None else Path(rejects)) as write:
        for row in bad:
            write(row, "")
    if bad and rejects is None:
        warnings.warn(f"rows left out: {len(bad):,}, e.g. {bad[0]}", UserWarning, stacklevel=3)
