"""Span votes: merges overlapping spans of several annotators, and keeps those that more than half drew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.engine.clusters import clusters
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import Choice, Number, setting
from crowdzoo.data.drawn_spans import DrawnSpan, num_matched, outermost, shared_tokens
from crowdzoo.data.tags import SCHEMES, tags_of

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences

OTHER_LABEL = 0.8  # factor of the intersection over union of spans with different labels


@dataclass(frozen=True)
class SpanVotes(Aggregator):
    """Votes on spans as they were drawn: side by side, nested, overlapping or in pieces.

    Overlapping spans of a sentence are clustered by average linkage, at most one per annotator, using the intersection
    over union of their tokens, a fifth less for different labels. A cluster is kept if more than `share` of those who
    saw the sentence have a span in it. Its label is the one with the most votes; ties go to the first by name. Its
    edges are those of the span with this label that overlaps most with the others; ties go to the one that begins
    first, then to the longer one. Nothing is random.

    Args:
        share: share of the annotators, 0 to 1, 1 excluded.
        overlap: mean intersection over union from which on two clusters are merged; 1 merges only spans with the same
            edges and label.
        scheme: scheme of annotations without tokens; `CrowdSequences` have their own.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import SpanVotes
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-PER", "O", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> SpanVotes().fit(annotations).spans_of(0)
        [Span(type='PER', start=0, end=2)]

    Needs:
        Several annotators per sentence.

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
            sequences: N sentences, R annotators, K classes; not changed. Spans in `drawn` are used if present.

        Returns:
            The kept spans (`spans`, for `CrowdSequences`), and labels of the `outermost` of them. `posteriors` are each
            token's vote shares, by tags. `skills` is the F1 of an annotator's spans against the kept ones (1 if neither
            has any); only exactly equal spans are right.

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.
        """
        from crowdzoo.data.crowd_sequences import CrowdSequences

        table = SequenceTable.of(sequences, "Span votes", self.scheme)
        whole = sequences if isinstance(sequences, CrowdSequences) else None
        stands: list[dict[str, Any]] = []
        labels = np.full(table.num_tokens, table.tag_set.outside)
        right, both = np.zeros((2, table.annotations.num_annotators))
        for task, said in table.drawn_by_task(None if whole is None else whole.drawn).items():
            votes = sorted(self._standing(said), key=lambda vote: (vote[0].start, -vote[0].end, vote[0]))
            stands += [_row(whole, task, *vote) for vote in votes if whole is not None]
            kept = [span for span, *_ in votes]
            for who, spans in said.items():
                right[who] += 2 * num_matched(spans, kept)[0]
                both[who] += len(spans) + len(kept)
            first, last = table.starts[task : task + 2].tolist()
            flat = [(span.label, span.start, span.end) for span in outermost(kept)]
            labels[first:last] = table.tag_set.codes(tags_of(flat, last - first, table.tag_set.scheme))
        return SequenceAggregation.of(
            "span-votes",
            table,
            MajorityVote().fit(table.as_classification()).posteriors,
            labels,
            skills=np.where(both > 0, right / np.maximum(both, 1), 1.0),
            spans=None if whole is None else stands,
        )

    def _standing(self, marked_by: dict[int, list[DrawnSpan]]) -> Iterator[tuple[DrawnSpan, float, float]]:
        """Yields the kept spans of a sentence, and their shares."""
        marked = [(span, who) for who, spans in marked_by.items() for span in spans]
        marked.sort(key=lambda vote: (vote[0].start, -vote[0].end, *vote))
        ends = np.maximum.accumulate([span.end for span, _ in marked] or [0])
        cuts = np.flatnonzero(np.array([span.start for span, _ in marked[1:]]) >= ends[:-1]) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(marked)]):  # spans only overlap within these
            spans = [span for span, _ in marked[first:last]]
            if not spans:
                continue
            shared, labels = shared_tokens(spans, spans), np.array([span.label for span in spans], object)
            near = shared / (np.diag(shared)[:, None] + np.diag(shared) - shared)
            similar = np.where(np.equal.outer(labels, labels).astype(bool), near, near * OTHER_LABEL)
            groups = np.array(clusters(similar, [who for _, who in marked[first:last]], self.overlap))
            for group in np.unique(groups):
                rows = np.flatnonzero(groups == group)
                if len(rows) > self.share * len(marked_by):
                    votes = Counter(labels[rows].tolist())
                    label = min(votes, key=lambda name: (-votes[name], name))
                    named = rows[labels[rows] == label]
                    best = spans[named[near[np.ix_(named, rows)].sum(axis=1).argmax()]]
                    yield best, len(rows) / len(marked_by), votes[label] / len(rows)


def _row(sequences: CrowdSequences, task: int, span: DrawnSpan, share: float, label_share: float) -> dict[str, Any]:
    """A kept span, as in `SequenceAggregation.spans`."""
    words = [" ".join(sequences.tokens[task][slice(*piece)]) for piece in span.fragments]
    (name,) = sequences.annotations.tasks[task : task + 1].tolist()
    about = {"task": name, "fragments": None, **span.entry(sequences.edges(task))}
    return {**about, "share": share, "label_share": label_share, "text": " … ".join(words)}
