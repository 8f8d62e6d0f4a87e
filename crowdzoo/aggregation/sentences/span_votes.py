"""Span votes: spans of several annotators that overlap are one; it stands if more than half of the annotators drew it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.engine.clusters import clusters
from crowdzoo.aggregation.sentences.sequence_aggregation import FoundSpan, SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import Choice, Number, setting
from crowdzoo.data.drawn_spans import DrawnSpan, num_matched, outermost, shared_tokens
from crowdzoo.data.tags import SCHEMES, SpanTable

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences

OTHER_LABEL = 0.8  # what the intersection over union of spans with different labels is worth

Marked = tuple[int, DrawnSpan]  # by whom


@dataclass(frozen=True)
class SpanVotes(Aggregator):
    """Votes on spans as they were drawn: side by side, inside each other, overlapping or in pieces.

    Spans of a sentence that overlap are put together by clustering with average linkage, one of each annotator at most,
    by intersection over union of their tokens; where labels differ it counts for a fifth less. A cluster stands if more
    than `share` of those who saw the sentence have a span in it. Its label is that with the most votes, of equal ones
    the first by name. Its edges are those of the span with this label that has most in common with the others, of equal
    ones that which begins first, then the longer one. Nothing is drawn at random.

    Args:
        share: 0 to 1, 1 excluded.
        overlap: mean intersection over union of the spans of two clusters, from which on they are one; 1 takes spans
            with the same edges and label alone.
        scheme: scheme of annotations without tokens; `CrowdSequences` bring their own.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Several annotators a sentence.

    Source:
        Clustering with average linkage: R. R. Sokal and C. D. Michener, 1958. The vote on clusters.
    """

    kind: ClassVar[str] = "sequence"

    share: float = setting(0.5, Number(0, 1, below=True))
    overlap: float = setting(0.5, Number(0, 1, above=True))
    scheme: str = setting("BIO", Choice(tuple(SCHEMES)))

    def fit(self, sequences: CrowdSequences | Annotations) -> SequenceAggregation:
        """Counts the votes.

        Args:
            sequences: N sentences, R annotators, K classes; not changed. Of sentences with `drawn` these spans count.

        Returns:
            The spans that stand (`spans`), and labels with the `outermost` of them. `posteriors` are each token's vote
            shares, by tags. `skills` is the F1 of an annotator's spans against those that stand (1 where neither has
            any); spans are right that are the same.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.
        """
        table = SequenceTable.of(sequences, "Span votes", self.scheme)
        crowd, types = table.annotations, table.tag_set.types
        sentences = None if sequences is crowd else sequences
        stands: list[FoundSpan] = []
        flat: list[tuple[int, int, int]] = []
        right, both = np.zeros((2, crowd.num_annotators))
        for task, said in _by_task(table, sentences):
            marked = sorted(
                ((who, span) for who, spans in said.items() for span in spans),
                key=lambda one: (one[1].start, -one[1].end, one[1], one[0]),
            )
            found = [one for part in _parts(marked) for one in self._standing(task, part, len(said))]
            found.sort(key=lambda one: (one.span.start, -one.span.end, one.span))
            stands += found
            kept = [one.span for one in found]
            for who, spans in said.items():
                right[who] += 2 * num_matched(spans, kept)[0]
                both[who] += len(spans) + len(kept)
            start = int(table.starts[task])
            flat += [(start + span.start, start + span.end, types.index(span.label)) for span in outermost(kept)]
        starts, ends, codes = np.array(sorted(flat), np.int64).reshape(-1, 3).T
        return SequenceAggregation.of(
            "span-votes",
            table,
            MajorityVote().fit(table.as_classification()).posteriors,
            table.tag_set.codes_of(SpanTable(codes, starts, ends), table.num_tokens),
            skills=np.where(both > 0, right / np.maximum(both, 1), 1.0),
            spans=tuple(one if sentences is None else one.placed(sentences) for one in stands),
        )

    def _standing(self, task: int, part: list[Marked], heads: int) -> Iterator[FoundSpan]:
        """The spans that stand, of those of a sentence that overlap in a chain."""
        who, spans = [who for who, _ in part], [span for _, span in part]
        sizes = np.array([sum(end - start for start, end in span.fragments) for span in spans])
        shared, labels = shared_tokens(spans, spans), np.array([span.label for span in spans], object)
        near = shared / (sizes[:, None] + sizes - shared)
        similar = np.where(np.equal.outer(labels, labels).astype(bool), near, near * OTHER_LABEL)
        groups = np.array(clusters(similar, who, self.overlap))
        for group in dict.fromkeys(groups.tolist()):
            rows = np.flatnonzero(groups == group)
            if len(rows) <= self.share * heads:
                continue
            votes = Counter(labels[rows].tolist())
            label = min(votes, key=lambda name: (-votes[name], name))
            named = rows[labels[rows] == label]
            best = spans[named[near[np.ix_(named, rows)].sum(axis=1).argmax()]]
            yield FoundSpan(task, best, len(rows) / heads, votes[label] / len(rows))


def _by_task(
    table: SequenceTable, sentences: CrowdSequences | None
) -> Iterator[tuple[int, dict[int, tuple[DrawnSpan, ...]]]]:
    """Sentences that somebody saw, and the spans of each who did."""
    crowd = table.annotations
    begins = np.asarray(crowd.positions) == 0  # one row a (task, annotator)
    said: dict[int, dict[int, tuple[DrawnSpan, ...]]] = {}
    drawn = {} if sentences is None else sentences.drawn or {}
    for task, who in sorted(zip(crowd.task_ids[begins].tolist(), crowd.annotator_ids[begins].tolist(), strict=True)):
        said.setdefault(task, {})[who] = drawn.get((task, who), ())
    if not drawn:
        annotators, spans = table.said_spans()
        tasks = np.searchsorted(table.starts, spans.starts, side="right") - 1
        begin = table.starts[tasks]
        rows = (tasks, annotators, spans.types, spans.starts - begin, spans.ends - begin)
        for task, who, code, start, end in zip(*(each.tolist() for each in rows), strict=True):
            said[task][who] += (DrawnSpan(table.tag_set.types[code], ((start, end),)),)
    yield from said.items()


def _parts(marked: list[Marked]) -> Iterator[list[Marked]]:
    """Spans in the order of their starts, cut where no span goes on."""
    part: list[Marked] = []
    end = 0
    for one in marked:
        if part and one[1].start >= end:
            yield part
            part = []
        part.append(one)
        end = max(end, one[1].end)
    if part:
        yield part
