"""CrowdSequences: sentences, the annotators' tags of their tokens, and the true tags if known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.drawn_spans import GOLD, Drawn, DrawnSpan, side_by_side
from crowdzoo.data.tags import Span, TagSet, spans_of
from crowdzoo.data.tokens import token_edges
from crowdzoo.errors import SHOWN, BadRow, DataError, short_repr


@dataclass(frozen=True, eq=False, repr=False)
class CrowdSequences:
    """N sentences with tags of R annotators; an annotator tags all tokens of a sentence or none.

    Immutable. Task i of the annotations is sentence i.

    Attributes:
        tokens: tokens of each sentence, N lists of one or more strings.
        annotations: kind "sequence", one row per token of a (task, annotator); the K classes are tags of the scheme,
            with all tags of each type.
        gold: codes of the true tags, N arrays int64 [T_i], None for a sentence whose truth is unknown; None if all are
            unknown.
        texts: the original sentences, N strings, or None.
        offsets: positions of the tokens in `texts`, N arrays int64 [T_i, 2] of the first character and the one after
            the last, in Unicode code points; None without texts.
        scheme: "BIO" or "IOBES".
        num_mended: number of tags (for spans: spans) that a reader changed, see `read_conll` and `read_spans`.
        drawn: the spans as annotators drew them, if some overlap or have several pieces; the tags are then a projection
            of them, see `crowdzoo.data.drawn_spans`. None: the tags represent all spans.
    """

    tokens: Sequence[Sequence[str]]
    annotations: Annotations
    gold: Sequence[NDArray[np.int64] | None] | None = None
    texts: Sequence[str] | None = None
    offsets: Sequence[NDArray[np.int64]] | None = None
    scheme: str = "BIO"
    num_mended: int = 0
    drawn: Drawn | None = None

    def __post_init__(self) -> None:
        crowd = self.annotations
        if crowd.positions is None:
            raise DataError(f"CrowdSequences needs annotations of kind 'sequence'. Received: kind {crowd.kind!r}.")
        self.tag_set  # noqa: B018  (checks classes and scheme)
        if (self.texts is None) != (self.offsets is None):
            raise DataError("texts and offsets must come together: offsets are the positions of tokens in texts.")
        for name in ("tokens", "gold", "texts", "offsets"):
            values = getattr(self, name)
            if values is not None and len(values) != crowd.num_tasks:
                raise DataError(f"{name} must have one entry per task, {crowd.num_tasks:,}. Received: {len(values):,}.")
        object.__setattr__(self, "tokens", tuple(tuple(sentence) for sentence in self.tokens))
        lengths = self.lengths
        if not lengths.all():
            raise DataError(f"sentence {int(lengths.argmin())} has no tokens. Leave it out.")
        if self.gold is not None:
            gold = tuple(self._checked_gold(lengths))
            object.__setattr__(self, "gold", gold if not gold or any(tags is not None for tags in gold) else None)
        if self.texts is not None and self.offsets is not None:
            object.__setattr__(self, "texts", tuple(self.texts))
            object.__setattr__(self, "offsets", tuple(self._checked_offsets(self.texts, self.offsets)))
        self._check_whole_sentences()

    def _checked_gold(self, lengths: NDArray[np.int64]) -> list[NDArray[np.int64] | None]:
        arrays: list[NDArray[np.int64] | None] = []
        for task, codes in enumerate(self.gold or ()):
            if codes is None:
                arrays.append(None)
                continue
            array = np.asarray(codes)
            if array.shape != (lengths[task],) or array.dtype.kind not in "iu":
                raise DataError(
                    f"gold of sentence {task} must have one class code per token, {lengths[task]}. Received: shape "
                    f"{array.shape}, type {array.dtype}."
                )
            if (array < 0).any() or (array >= self.annotations.num_classes).any():
                raise DataError(f"gold of sentence {task} has a code outside 0 to {self.annotations.num_classes - 1}.")
            arrays.append(_read_only(array, np.int64))
        return arrays

    def _checked_offsets(self, texts: Sequence[str], offsets: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        arrays = []
        for task, (text, tokens) in enumerate(zip(texts, self.tokens, strict=True)):
            array = np.asarray(offsets[task])
            fits = array.shape == (len(tokens), 2) and array.dtype.kind in "iu"
            if not fits or [text[start:end] for start, end in array.tolist()] != list(tokens):
                raise DataError(f"the offsets of sentence {task} do not match its tokens.")
            arrays.append(_read_only(array, np.int64))
        return arrays

    def _check_whole_sentences(self) -> None:
        """Checks that each annotator of a sentence has labelled each token once."""
        crowd, lengths = self.annotations, self.lengths
        positions = np.asarray(crowd.positions)
        outside = np.flatnonzero((positions < 0) | (positions >= lengths[crowd.task_ids]))
        pairs, rows = np.unique(crowd.task_ids * crowd.num_annotators + crowd.annotator_ids, return_counts=True)
        cells = np.unique((self.starts[crowd.task_ids] + positions) * crowd.num_annotators + crowd.annotator_ids)
        ragged = np.flatnonzero(rows != lengths[pairs // max(crowd.num_annotators, 1)])
        if len(outside):
            reason = "is a position beyond the sentence's last token."
            bad = [BadRow("annotations", int(row), "position", int(positions[row]), reason) for row in outside[:SHOWN]]
            raise DataError("Annotations do not fit the sentences.", bad, len(outside))
        if len(ragged) or len(cells) < len(crowd):
            problems = []
            for pair in ragged[:SHOWN]:
                task, annotator = divmod(int(pairs[pair]), crowd.num_annotators)
                sentence = short_repr(crowd.tasks[task])
                reason = f"labels of sentence {sentence}, which has {lengths[task]} tokens. Label all or none."
                problems.append(BadRow("annotations", None, str(crowd.annotators[annotator]), int(rows[pair]), reason))
            raise DataError("Each annotator of a sentence must label each of its tokens once.", problems, len(ragged))

    # === Sizes ===

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        known = sum(tags is not None for tags in self.gold or ())
        gold = "with gold" if known == len(self) else f"gold of {known:,}" if known else "no gold"
        return (
            f"<CrowdSequences: {len(self):,} sentences, {int(self.starts[-1]):,} tokens, "
            f"{self.annotations.num_annotators:,} annotators, {self.scheme} of {len(self.types)} types, {gold}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CrowdSequences):
            return NotImplemented
        return (
            (self.tokens, self.texts, self.scheme) == (other.tokens, other.texts, other.scheme)
            and _all_equal(self.gold, other.gold)
            and _all_equal(self.offsets, other.offsets)
            and self.drawn == other.drawn
            and self.annotations == other.annotations
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def tag_set(self) -> TagSet:
        """The classes as a `TagSet`."""
        return TagSet([] if self.annotations.classes is None else self.annotations.classes.tolist(), self.scheme)

    @property
    def classes(self) -> list[str]:
        """Names of the tags, [K]."""
        return self.tag_set.classes

    @property
    def types(self) -> list[str]:
        """Types of the spans, sorted."""
        return self.tag_set.types

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens per sentence, int64 [N]."""
        return np.array([len(tokens) for tokens in self.tokens], np.int64)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each sentence starts if all are concatenated, and the end of the last one: int64 [N + 1]."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    # === Looking in ===

    def gold_tags(self) -> list[list[str] | None]:
        """The true tags, N lists of strings; None for a sentence whose truth is unknown.

        Raises:
            DataError: the truth of all sentences is unknown.
        """
        if self.gold is None:
            raise DataError("These sentences have no gold.")
        return [None if codes is None else self.tag_set.tags(codes) for codes in self.gold]

    def gold_spans(self) -> list[list[Span] | None]:
        """The true spans, N lists; None where unknown. Raises as `gold_tags`."""
        return [None if tags is None else spans_of(tags, self.scheme) for tags in self.gold_tags()]

    def gold_drawn(self) -> list[tuple[DrawnSpan, ...] | None]:
        """The true spans as they were drawn, None where unknown. Raises as `gold_tags`."""
        drawn = self.drawn or {}
        return [
            None if spans is None else drawn.get((task, GOLD), side_by_side(spans))
            for task, spans in enumerate(self.gold_spans())
        ]

    def edges(self, task: int) -> list[list[int]]:
        """Start and end of each token of a sentence, as in files of spans: in its text, otherwise counted in tokens.

        Args:
            task: code of the sentence.
        """
        offsets = token_edges(len(self.tokens[task])) if self.offsets is None else self.offsets[task]
        return [[start, end] for start, end in offsets.tolist()]

    def answers(self, task: int) -> dict[Any, list[str]]:
        """The tags of a sentence by annotator: name -> tags [T_i], in the order of the annotators.

        Args:
            task: code of the sentence.
        """
        order, begins = self._by_task
        rows = order[begins[task] : begins[task + 1]]
        crowd = self.annotations
        names = crowd.annotators.tolist()
        answers: dict[Any, list[str]] = {}
        for row in rows.tolist():
            answers.setdefault(names[crowd.annotator_ids[row]], []).append(self.classes[crowd.labels[row]])
        return answers

    @cached_property
    def _by_task(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        crowd = self.annotations
        order = np.lexsort((np.asarray(crowd.positions), crowd.annotator_ids, crowd.task_ids))
        return order, np.searchsorted(crowd.task_ids[order], np.arange(len(self) + 1))

    def answers_of(self, annotator: int) -> tuple[NDArray[np.int64], list[list[str]]]:
        """All answers of one annotator.

        Args:
            annotator: code of the annotator.

        Returns:
            Codes of the n sentences that the annotator labelled, int64 [n], ascending, and n lists of tags.
        """
        crowd = self.annotations
        rows = np.flatnonzero(crowd.annotator_ids == annotator)
        rows = rows[np.lexsort((np.asarray(crowd.positions)[rows], crowd.task_ids[rows]))]
        tasks, begins = np.unique(crowd.task_ids[rows], return_index=True)
        parts = np.split(crowd.labels[rows], begins[1:]) if len(rows) else []
        return tasks, [self.tag_set.tags(part) for part in parts]

    # === Selection ===

    def select(self, tasks: ArrayLike) -> CrowdSequences:
        """Keeps some sentences, in the order of `tasks`; annotators and classes are unchanged.

        Args:
            tasks: int codes, or a bool mask [N]; each sentence at most once.

        Returns:
            Sentences in the order selected; tasks keep their names.

        Raises:
            DataError: unknown or repeated codes.
        """
        selection = np.asarray(tasks)
        annotations = self.annotations.select_tasks(selection)
        chosen = (np.flatnonzero(selection) if selection.dtype == bool else selection.astype(np.int64)).tolist()
        kept: dict[str, Any] = {
            name: [values[code] for code in chosen]
            for name in ("tokens", "gold", "texts", "offsets")
            if (values := getattr(self, name)) is not None
        }
        if self.drawn is not None:
            place = {code: row for row, code in enumerate(chosen)}
            kept["drawn"] = {(place[task], who): spans for (task, who), spans in self.drawn.items() if task in place}
        return replace(self, annotations=annotations, **kept)


def annotations_of(crowd: Annotations | CrowdSequences) -> Annotations:
    """The table of what annotators said."""
    return crowd.annotations if isinstance(crowd, CrowdSequences) else crowd


def with_annotations(crowd: Annotations | CrowdSequences, table: Annotations) -> Any:
    """The same crowd, of that kind of value, with another table."""
    return replace(crowd, annotations=table) if isinstance(crowd, CrowdSequences) else table


def _read_only(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    view = np.asarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _all_equal(left: Sequence[NDArray[Any] | None] | None, right: Sequence[NDArray[Any] | None] | None) -> bool:
    if left is None or right is None:
        return left is right
    return len(left) == len(right) and all(
        a is b if a is None or b is None else np.array_equal(a, b) for a, b in zip(left, right, strict=True)
    )


def sentence_annotations(
    answers: Sequence[tuple[int, int, NDArray[np.int64]]],
    tasks: NDArray[Any],
    annotators: NDArray[Any],
    classes: Sequence[str],
) -> Annotations:
    """Creates annotations of kind "sequence" from a list of answers.

    Args:
        answers: task code, annotator code, and the tag codes of all tokens, int64 [T].
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        classes: tags in the order of their codes.

    Returns:
        The annotations, in the order of the answers.
    """
    lengths = [len(codes) for _, _, codes in answers]
    pairs = np.array([pair for *pair, _ in answers], np.int64).reshape(-1, 2)
    task_ids, annotator_ids = (np.repeat(column, np.array(lengths, np.int64)) for column in pairs.T)
    none = np.empty(0, np.int64)
    labels = np.concatenate([none, *(codes for _, _, codes in answers)])
    positions = np.concatenate([none, *map(np.arange, lengths)])
    names = np.array(classes, object)
    return Annotations("sequence", task_ids, annotator_ids, labels, tasks, annotators, names, positions=positions)
