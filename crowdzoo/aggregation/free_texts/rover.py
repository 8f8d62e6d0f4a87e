"""ROVER: texts of a task aligned token by token, and a vote at each place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.aggregation.free_texts.text_method import TextMethod
from crowdzoo.aggregation.free_texts.text_table import TextTable

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class ROVER(TextMethod):
    """The texts of a task, aligned one after the other with the fewest edits, and the most frequent token at each place.

    No token counts as one, too. Of tokens that are equally frequent the longer one wins, then the later one in the
    alphabet. The text is made of normalized tokens, and may be one that nobody wrote. It depends on the order of a
    task's texts, which is that of the rows.

    Args:
        unit: what is aligned: "words", or "characters" for scripts without blanks.
        normalize: what does not count: "blanks" (only their number), "case", "punctuation", or both ("words").

    Needs:
        Texts of one wording, such as transcriptions; three a task or more.

    Source:
        J. G. Fiscus: A Post-Processing System to Yield Reduced Word Error Rates: Recognizer Output Voting Error
        Reduction (ROVER), ASRU 1997, with plain votes.

    Examples:
        >>> from crowdzoo.tables import Annotations
        >>> texts = Annotations.from_arrays(
        ...     [1, 1, 1], ["ann", "bob", "cem"], ["a cat sat", "the cat sat", "the hat sat"], kind="free-text"
        ... )
        >>> ROVER().fit(texts).texts.tolist()
        ['the cat sat']
    """

    title: ClassVar[str] = "ROVER"
    name: ClassVar[str] = "rover"

    def fit(self, annotations: Annotations) -> TextAggregation:
        """Aligns and votes; see `TextMethod.fit`."""
        table = TextTable.of(annotations, self.title, self.unit, self.normalize)
        bounds = np.r_[0, np.cumsum(table.sizes)]
        codes, starts = _voted(table.tokens.codes, table.tokens.starts, table.said, bounds)
        texts = np.array([table.tokens.joined(part) for part in np.split(codes, starts[1:-1])], object)
        return TextAggregation.of(self, table, texts, (codes, starts))


@compiled()
def _aligned(slots: Codes, number: int, said: Codes, before: int) -> Codes:  # pragma: no cover
    """Adds a text to a network of words.

    Args:
        slots: how often each token was said at each place, [places or more, 1 + V]; the first is no token.
        number: of places.
        said: tokens of the text, from 1.
        before: texts in the network.

    Returns:
        The network, [places, 1 + V].
    """
    length = len(said)
    costs = np.empty((length + 1, number + 1), np.int64)
    moves = np.empty((length + 1, number + 1), np.int8)  # 0 to the same place, 1 without a token, 2 to a place of its own
    for row in range(length + 1):
        costs[row, 0], moves[row, 0] = row, 2
    for place in range(1, number + 1):
        costs[0, place], moves[0, place] = place, 1
    for row in range(1, length + 1):
        for place in range(1, number + 1):
            least = costs[row - 1, place - 1] + (slots[place - 1, said[row - 1]] == 0)
            move = 0
            if costs[row, place - 1] + (slots[place - 1, 0] == 0) < least:
                least, move = costs[row, place - 1] + (slots[place - 1, 0] == 0), 1
            if costs[row - 1, place] + 1 < least:
                least, move = costs[row - 1, place] + 1, 2
            costs[row, place], moves[row, place] = least, move
    made = np.zeros((length + number, slots.shape[1]), np.int64)
    row, place, at = length, number, length + number
    while row > 0 or place > 0:
        at -= 1
        move = moves[row, place]
        if move == 2:
            made[at, 0] = before
        else:
            made[at] = slots[place - 1]
            place -= 1
        if move == 1:
            made[at, 0] += 1
        else:
            row -= 1
            made[at, said[row]] += 1
    return made[at:]


@compiled()
def _voted(codes: Codes, starts: Codes, said: Codes, bounds: Codes) -> tuple[Codes, Codes]:  # pragma: no cover
    """Tokens that win, one task after the other, and starts of the tasks, [N + 1]."""
    size = 0
    for text in said:
        size += starts[text + 1] - starts[text]
    found, ends, number = np.empty(size, np.int64), np.zeros(len(bounds), np.int64), 0
    for task in range(len(bounds) - 1):
        texts = said[bounds[task] : bounds[task + 1]]
        size = 0
        for text in texts:
            size += starts[text + 1] - starts[text]
        everything, size = np.empty(size, np.int64), 0
        for text in texts:
            own = codes[starts[text] : starts[text + 1]]
            everything[size : size + len(own)] = own
            size += len(own)
        known = np.unique(everything)
        slots = np.zeros((0, 1 + len(known)), np.int64)
        for before, text in enumerate(texts):
            own = np.searchsorted(known, codes[starts[text] : starts[text + 1]]) + 1
            slots = _aligned(slots, len(slots), own, before)
        for place in range(len(slots)):
            best = 0
            for token in range(1, slots.shape[1]):
                if slots[place, token] >= slots[place, best]:
                    best = token
            if best:
                found[number] = known[best - 1]
                number += 1
        ends[task + 1] = number
    return found[:number], ends
