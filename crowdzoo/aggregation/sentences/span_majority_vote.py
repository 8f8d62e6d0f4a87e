"""Span majority vote: keeps spans that more than half of the sentence's annotators marked exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.sentences.sequence_aggregation import SequenceAggregation
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable
from crowdzoo.checks.constraints import Choice, Number, setting
from crowdzoo.data.drawn_spans import apart
from crowdzoo.data.tags import SCHEMES, SpanTable

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.data.crowd_sequences import CrowdSequences


@dataclass(frozen=True)
class SpanMajorityVote(Aggregator):
    """Votes on whole spans: same type, same first and last token.

    A span is kept if more than `share` of the sentence's annotators marked it; exactly that share is not enough. With a
    share of at least one half, kept spans never overlap, as an annotator would have marked both. With a smaller share
    they may; then the span with more votes is kept, ties go to the first in the text, then to the longer one, then to
    the type that is first by name. Nothing is random.

    Args:
        share: share of the annotators, 0 to 1, 1 excluded.
        scheme: scheme of annotations without tokens; `CrowdSequences` have their own.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import SpanMajorityVote
        >>> task, position, annotator = [1] * 9, [0, 1, 2] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> tags = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "O", "B-PER", "O"]
        >>> annotations = Annotations.from_arrays(task, annotator, tags, position=position, kind="sequence")
        >>> SpanMajorityVote().fit(annotations).tags()
        [['B-PER', 'I-PER', 'O']]

    Needs:
        Several annotators per sentence.

    Source:
        The vote on whole spans.
    """

    kind: ClassVar[str] = "sequence"

    share: float = setting(0.5, Number(0, 1, below=True))
    scheme: str = setting("BIO", Choice(tuple(SCHEMES)))

    def fit(self, sequences: CrowdSequences | Annotations) -> SequenceAggregation:
        """Counts the votes.

        Args:
            sequences: N sentences, R annotators, K classes; not changed.

        Returns:
            Labels of the kept spans, all others outside; they keep the scheme. `posteriors` are each token's vote
            shares, so the label's share may be lower than another class's. Sentences without annotations have no spans.
            `skills` is the F1 of an annotator's spans against the kept ones (1 if neither has any).

        Raises:
            DataError: annotations are not of kind sequence, or do not cover whole sentences.
        """
        table = SequenceTable.of(sequences, "Span majority vote", self.scheme)
        crowd = table.annotations
        annotator, spans = table.said_spans()
        sentence = np.searchsorted(table.starts, spans.starts, side="right") - 1
        num_types = max(len(table.tag_set.types), 1)
        # all votes for a span have the same number
        lengths = spans.ends - spans.starts
        width = int(lengths.max(initial=0)) + 1
        key = (spans.starts * width + lengths) * num_types + spans.types
        _, example, place, votes = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        begins = np.asarray(crowd.positions) == 0  # one row per (task, annotator)
        tasks, annotators = crowd.task_ids[begins], crowd.annotator_ids[begins]
        heads = np.bincount(tasks, minlength=crowd.num_tasks)
        stands = np.flatnonzero(votes > self.share * heads[sentence[example]])
        if self.share < 0.5:
            stands = _without_overlaps(stands, votes, spans, example)
        stands = stands[np.argsort(spans.starts[example[stands]])]
        chosen = example[stands]
        kept = SpanTable(spans.types[chosen], spans.starts[chosen], spans.ends[chosen])
        labels = table.tag_set.codes_of(kept, table.num_tokens)

        right = np.isin(place, stands)
        correct = np.bincount(annotator[right], minlength=crowd.num_annotators)
        num_said = np.bincount(annotator, minlength=crowd.num_annotators)
        in_sentence = np.bincount(sentence[chosen], minlength=crowd.num_tasks)
        voted = np.bincount(annotators, weights=in_sentence[tasks], minlength=crowd.num_annotators)
        both = num_said + voted
        return SequenceAggregation.of(
            "span-majority-vote",
            table,
            MajorityVote().fit(table.as_classification()).posteriors,
            labels,
            skills=np.where(both > 0, 2 * correct / np.maximum(both, 1), 1.0),
        )


def _without_overlaps(
    stands: NDArray[np.int64], votes: NDArray[np.int64], spans: SpanTable, example: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Selects spans in the order of the class's rule, without those that overlap an earlier one."""
    chosen = example[stands]
    lengths = spans.ends[chosen] - spans.starts[chosen]
    order = np.lexsort((spans.types[chosen], -lengths, spans.starts[chosen], -votes[stands]))
    rows = chosen[order]
    stay = apart(zip(spans.starts[rows].tolist(), spans.ends[rows].tolist(), strict=True))
    return stands[order[np.array(stay, np.int64)]]
