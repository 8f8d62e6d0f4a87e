"""SequenceTable: tagged sentences in the layout that the methods compute with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.drawn_spans import Drawn, DrawnSpan
from crowdzoo.data.label_kinds import SEQUENCE, require_kind
from crowdzoo.data.tags import SpanTable, TagSet
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences


@dataclass(frozen=True, eq=False)
class SequenceTable:
    """Concatenated sentences in the layout that the methods compute with: T tokens, A annotations.

    Attributes:
        annotations: the original annotations.
        tag_set: the K classes as tags.
        starts: where each sentence begins, and the end of the last, int64 [N + 1].
        tokens: token of each annotation, counted through all sentences, int64 [A]; ascending.
        annotators: annotator of each annotation, int64 [A]; ascending within a token.
        labels: label of each annotation, int64 [A].
        previous: the same annotator's label of the previous token, int64 [A]; K at the first token.
        words: code of each token's text, int64 [T]; None without text.
        num_words: number of distinct words, 0 without text.
    """

    annotations: Annotations
    tag_set: TagSet
    starts: NDArray[np.int64]
    tokens: NDArray[np.int64]
    annotators: NDArray[np.int64]
    labels: NDArray[np.int64]
    previous: NDArray[np.int64]
    words: NDArray[np.int64] | None
    num_words: int

    @classmethod
    def of(cls, sequences: CrowdSequences | Annotations, method: str, scheme: str = "BIO") -> SequenceTable:
        """Creates the table.

        Args:
            sequences: sentences with their own scheme; or only annotations of kind "sequence", where a sentence has as
                many tokens as were labelled (none if nobody labelled it) and no text.
            method: name of the method, for the message.
            scheme: scheme of annotations alone.

        Raises:
            DataError: wrong kind of annotations, classes that are not tags of the scheme, or a sentence that an
                annotator labelled in part.
        """
        from crowdzoo.data.annotations import Annotations
        from crowdzoo.data.crowd_sequences import CrowdSequences

        if isinstance(sequences, CrowdSequences):
            crowd, tag_set, starts = sequences.annotations, sequences.tag_set, sequences.starts
            codes: dict[str, int] = {}
            words = np.array(
                [codes.setdefault(word, len(codes)) for tokens in sequences.tokens for word in tokens], np.int64
            )
        else:
            crowd, words, codes = sequences, None, {}
            if not isinstance(crowd, Annotations):
                raise DataError(
                    f"{method} needs CrowdSequences, or annotations of kind 'sequence', got {type(crowd).__name__}."
                )
            require_kind(crowd.label_kind, method, SEQUENCE)
            tag_set = TagSet([str(name) for name in np.asarray(crowd.classes).tolist()], scheme)
            lengths = np.zeros(crowd.num_tasks, np.int64)
            np.maximum.at(lengths, crowd.task_ids, np.asarray(crowd.positions) + 1)
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        num_classes, positions = len(tag_set.classes), np.asarray(crowd.positions)
        token = starts[crowd.task_ids] + positions
        # sorted by annotator within a sentence, so the row before is the previous token
        order = np.lexsort((positions, crowd.annotator_ids, crowd.task_ids))
        begins = positions[order] == 0
        follows = (np.diff(token[order], prepend=-2) == 1) & (np.diff(crowd.annotator_ids[order], prepend=-1) == 0)
        number = max(crowd.num_annotators, 1)
        pairs, rows = np.unique(crowd.task_ids * number + crowd.annotator_ids, return_counts=True)
        if not (begins | follows).all() or (rows != np.diff(starts)[pairs // number]).any():
            raise DataError(f"{method}: each annotator of a sentence must label each of its tokens once.")
        tags = np.concatenate([[num_classes], crowd.labels[order]])
        previous = np.empty(len(crowd), np.int64)
        previous[order] = np.where(begins, num_classes, tags[:-1])
        by_token = np.lexsort((crowd.annotator_ids, token))
        return cls(
            crowd,
            tag_set,
            starts,
            token[by_token],
            crowd.annotator_ids[by_token],
            crowd.labels[by_token],
            previous[by_token],
            words,
            len(codes),
        )

    @property
    def num_tokens(self) -> int:
        """T, including tokens that nobody labelled."""
        return int(self.starts[-1])

    @property
    def firsts(self) -> NDArray[np.bool_]:
        """Marks tokens that begin a sentence, bool [T]."""
        firsts = np.zeros(self.num_tokens, bool)
        firsts[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return firsts

    def said_spans(self) -> tuple[NDArray[np.int64], SpanTable]:
        """Annotators' spans: annotators, int64 [S], and the spans with tokens counted through all sentences."""
        crowd = self.annotations
        order = np.lexsort((np.asarray(crowd.positions), crowd.annotator_ids, crowd.task_ids))
        positions = np.asarray(crowd.positions)[order]
        spans = self.tag_set.span_table(crowd.labels[order], positions == 0)
        starts = (self.starts[crowd.task_ids[order]] + positions)[spans.starts]
        ends = starts + (spans.ends - spans.starts)
        return crowd.annotator_ids[order][spans.starts], SpanTable(spans.types, starts, ends)

    def drawn_by_task(self, drawn: Drawn | None = None) -> dict[int, dict[int, list[DrawnSpan]]]:
        """Sentences that anybody saw, with the spans of each annotator who did.

        Args:
            drawn: spans as they were drawn; None: the spans of the tags.
        """
        crowd, spans_of_task = self.annotations, dict[int, dict[int, list[DrawnSpan]]]()
        for row in np.flatnonzero(np.asarray(crowd.positions) == 0).tolist():  # one per (task, annotator)
            task, who = int(crowd.task_ids[row]), int(crowd.annotator_ids[row])
            spans_of_task.setdefault(task, {})[who] = list(drawn[task, who]) if drawn else []
        if drawn is None:
            annotators, spans = self.said_spans()
            tasks = np.searchsorted(self.starts, spans.starts, side="right") - 1
            columns = tasks, annotators, spans.types, spans.starts - self.starts[tasks], spans.ends - self.starts[tasks]
            for task, who, code, *tokens in np.stack(columns, axis=1).tolist():
                spans_of_task[task][who].append(DrawnSpan(self.tag_set.types[code], (tuple(tokens),)))
        return spans_of_task

    def as_classification(self) -> Annotations:
        """Converts each token to a task of its own, 0 to T-1."""
        from crowdzoo.data.annotations import Annotations

        crowd = self.annotations
        return Annotations(
            "classification",
            self.tokens,
            self.annotators,
            self.labels,
            np.arange(self.num_tokens),
            crowd.annotators,
            crowd.classes,
        )
