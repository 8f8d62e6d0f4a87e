"""How far tagged sentences are from the annotators' tags."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.against_votes import different_note, empty_classes
from crowdzoo.aggregation.sentences.sequence_table import SequenceTable


def notes_against_tags(table: SequenceTable, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Sentences on what a reader should check before using a result; empty as a rule. See `notes_against_votes`.

    There is one where the tags of more than a fifth of the annotated tokens are not among those with the most votes,
    and one where no span has a type that at least a hundredth of the annotators' spans, and two of them, have.

    Args:
        table: T tokens, K classes.
        labels: class codes, int64 [T].
    """
    notes = different_note(table.as_classification(), labels, "tokens", "sentences whose spans are known")
    types = table.tag_set.types
    annotated_spans = table.said_spans()[1]
    label_spans = table.tag_set.span_table(labels, table.firsts)
    counts = (np.bincount(spans.types, minlength=len(types)) for spans in (annotated_spans, label_spans))
    for code, share, num_others in empty_classes(*counts):
        more = f", as {num_others} more such types" if num_others else ""
        notes += (f"No span is of type {types[code]!r}, although {share:.1%} of the annotators' spans are{more}.",)
    return notes
