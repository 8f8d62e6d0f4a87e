"""DrawnSpan: a span as an annotator drew it; it may be nested, overlap others, or have several pieces.

Each token has one tag, so tags represent only spans that do not overlap. Other spans are stored next to the tags, in
`CrowdSequences.drawn`, and each part of crowdzoo uses one of the two:

- Votes on spans (`SpanVotes`) and inter-annotator agreement use the spans as they were drawn.
- What needs one tag per token, such as the other methods and taggers, uses a projection: the `outermost` spans. The
  reader counts the spans that are lost.

If no spans of a file overlap or have several pieces, only the tags are stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GOLD = -1  # in place of an annotator's code


class DrawnSpan(NamedTuple):
    """A span as it was drawn.

    Attributes:
        label: its type, such as "PER".
        fragments: its pieces in the order of the text, as first token and the one after the last; pieces are separated
            by at least one token. Usually one piece.
    """

    label: str
    fragments: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """The first token."""
        return self.fragments[0][0]

    @property
    def end(self) -> int:
        """The token after the last one."""
        return self.fragments[-1][1]

    def entry(self, edges: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Returns the span as in files of spans: start, end and label, and fragments if there are several.

        Args:
            edges: start and end of each token of the sentence.
        """
        pieces = [[edges[start][0], edges[end - 1][1]] for start, end in self.fragments]
        entry = {"start": pieces[0][0], "end": pieces[-1][1], "label": self.label}
        return entry if len(pieces) == 1 else {**entry, "fragments": pieces}


def side_by_side(spans: Iterable[tuple[str, int, int]]) -> tuple[DrawnSpan, ...]:
    """Converts spans of tags (label, first token, the one after the last) to spans of one piece."""
    return tuple(DrawnSpan(label, ((start, end),)) for label, start, end in spans)


# task and annotator (or `GOLD`) -> the drawn spans; includes all who saw the task
Drawn = Mapping[tuple[int, int], tuple[DrawnSpan, ...]]


def outermost(spans: Iterable[DrawnSpan]) -> list[DrawnSpan]:
    """Selects the spans that tags can represent, the longest first; ties go to the first in the text, then by label.

    A span that shares a token with one selected before is left out. A span in pieces covers all tokens from its first
    to its last.
    """
    ordered = sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label))
    return [ordered[row] for row in apart((span.start, span.end) for span in ordered)]


def apart(ends: Iterable[tuple[int, int]]) -> list[int]:
    """Selects, in this order, the spans that share no token with one selected before; returns their rows."""
    kept, covered = list[int](), set[int]()
    for row, tokens in enumerate(range(*pair) for pair in ends):
        if covered.isdisjoint(tokens):
            covered.update(tokens)
            kept.append(row)
    return kept


def shared_tokens(first: Sequence[DrawnSpan], second: Sequence[DrawnSpan]) -> NDArray[np.int64]:
    """Number of tokens that each span shares with each of the others, int64 [n, m]; n and m are at least one."""
    sides = [np.array([piece for span in side for piece in span.fragments], np.int64) for side in (first, second)]
    counts = [np.cumsum([0, *(len(span.fragments) for span in side)])[:-1] for side in (first, second)]
    ends, starts = (pick.outer(sides[0][:, at], sides[1][:, at]) for pick, at in ((np.minimum, 1), (np.maximum, 0)))
    pieces = np.maximum(ends - starts, 0)
    tokens: NDArray[np.int64] = np.add.reduceat(np.add.reduceat(pieces, counts[0], axis=0), counts[1], axis=1)
    return tokens


def num_matched(first: Sequence[DrawnSpan], second: Sequence[DrawnSpan]) -> tuple[int, int]:
    """Counts the spans of two annotators that are the same, and those that match.

    Spans are the same if their labels and all their pieces are equal. They match if they have the same label and share
    a token; each matches at most one of the other annotator's, in the pairing with most matches. F1 is
    2 matched / (n + m).

    Args:
        first: n distinct spans.
        second: m distinct spans.
    """
    same = len({*first} & {*second})
    if same == min(len(first), len(second)):
        return same, same
    from scipy.optimize import linear_sum_assignment

    labels = (np.array([span.label for span in side], object) for side in (first, second))
    alike = np.equal.outer(*labels).astype(bool) & (shared_tokens(first, second) > 0)
    return same, int(alike[linear_sum_assignment(alike, maximize=True)].sum())
