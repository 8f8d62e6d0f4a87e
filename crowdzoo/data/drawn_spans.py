"""DrawnSpan: a span as an annotator drew it, perhaps inside another one, across its edge, or in several pieces.

Tags say one thing of a token, so they hold spans side by side alone. Other spans are kept next to the tags, in
`CrowdSequences.drawn`, and each part of crowdzoo takes one of the two:

- Votes on spans (`SpanVotes`) and the agreement of annotators take the spans as they were drawn.
- Whatever needs one tag a token, such as the other methods and taggers, takes a projection: the `outermost` spans. The
  reader counts what is lost.

Where all spans of a file lie side by side, nothing is kept next to the tags, which hold them all.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GOLD = -1  # in the place of an annotator's code


class DrawnSpan(NamedTuple):
    """A span as it was drawn.

    Attributes:
        label: its type, such as "PER".
        fragments: its pieces in the order of the text, first token and the one after the last of each; between two of
            them lies a token. One piece as a rule.
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
        """As files of spans have it: start, end and label, and fragments where there are several.

        Args:
            edges: where each token of the sentence begins and ends.
        """
        pieces = [[edges[start][0], edges[end - 1][1]] for start, end in self.fragments]
        entry = {"start": pieces[0][0], "end": pieces[-1][1], "label": self.label}
        return entry if len(pieces) == 1 else {**entry, "fragments": pieces}


def side_by_side(spans: Iterable[tuple[str, int, int]]) -> tuple[DrawnSpan, ...]:
    """Spans of tags, each in one piece: label, first token and the one after the last."""
    return tuple(DrawnSpan(label, ((start, end),)) for label, start, end in spans)


# task and annotator (or `GOLD`) -> what was drawn; all who saw the task are there
Drawn = Mapping[tuple[int, int], tuple[DrawnSpan, ...]]


def outermost(spans: Iterable[DrawnSpan]) -> list[DrawnSpan]:
    """The spans that tags can hold: the longest first, of equal ones that which begins first, then by label.

    A span that has a token in common with one that was taken before is left out. A span in pieces counts from its first
    token to its last one.
    """
    ordered = sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label))
    return [ordered[row] for row in apart((span.start, span.end) for span in ordered)]


def apart(ends: Iterable[tuple[int, int]]) -> list[int]:
    """Which spans stay when they are taken in this order, and none may have a token in common with an earlier one."""
    kept, covered = list[int](), set[int]()
    for row, tokens in enumerate(range(*pair) for pair in ends):
        if covered.isdisjoint(tokens):
            covered.update(tokens)
            kept.append(row)
    return kept


def shared_tokens(first: Sequence[DrawnSpan], second: Sequence[DrawnSpan]) -> NDArray[np.int64]:
    """Tokens that each span has in common with each of others, int64 [n, m]; there is one at least on either side."""
    sides = [np.array([piece for span in side for piece in span.fragments], np.int64) for side in (first, second)]
    counts = [np.cumsum([0, *(len(span.fragments) for span in side)])[:-1] for side in (first, second)]
    ends, starts = (pick.outer(sides[0][:, at], sides[1][:, at]) for pick, at in ((np.minimum, 1), (np.maximum, 0)))
    pieces = np.maximum(ends - starts, 0)
    tokens: NDArray[np.int64] = np.add.reduceat(np.add.reduceat(pieces, counts[0], axis=0), counts[1], axis=1)
    return tokens


def num_matched(first: Sequence[DrawnSpan], second: Sequence[DrawnSpan]) -> tuple[int, int]:
    """How many spans of two annotators are the same, and how many match.

    Spans are the same if their labels and all their pieces are. They match if they have the label and a token in
    common; each matches one of the other's at most, so that as many as possible do. 2 matched / (n + m) is the F1.

    Args:
        first: n spans, each once.
        second: m spans likewise.
    """
    same = len({*first} & {*second})
    if same == min(len(first), len(second)):
        return same, same
    from scipy.optimize import linear_sum_assignment

    labels = (np.array([span.label for span in side], object) for side in (first, second))
    alike = np.equal.outer(*labels).astype(bool) & (shared_tokens(first, second) > 0)
    return same, int(alike[linear_sum_assignment(alike, maximize=True)].sum())
