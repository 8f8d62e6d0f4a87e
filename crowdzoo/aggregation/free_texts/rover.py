"""ROVER: aligns the texts of a task token by token, and votes at each place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.aggregation.free_texts.chosen_text import TextMethod
from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.aggregation.free_texts.tokens import Tokens

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class ROVER(TextMethod):
    """Aligns the texts of a task one by one with the fewest edits; the most frequent token at each place wins.

    A gap counts as a token. Ties go to the longer token, then to the later one in the alphabet. The result consists of
    normalized tokens, and may be a text that nobody wrote. It depends on the order of a task's texts, which is the
    order of the rows.

    Args:
        unit: what is aligned: "words", or "characters" for scripts without spaces.
        normalize: what to ignore: "blanks" (only their number), "case", "punctuation", or both ("words").

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import ROVER
        >>> words = ["a cat sat", "the cat sat", "the hat sat"]
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], words, kind="free-text")
        >>> ROVER().fit(texts).texts.tolist()
        ['the cat sat']

    Needs:
        Texts with one correct wording, such as transcriptions; at least three per task.

    Source:
        J. G. Fiscus: A Post-Processing System to Yield Reduced Word Error Rates: Recognizer Output Voting Error
        Reduction (ROVER), ASRU 1997, with plain votes.
    """

    title: ClassVar[str] = "ROVER"
    name: ClassVar[str] = "rover"

    def fit(self, annotations: Annotations) -> TextAggregation:
        """Aligns and votes; see `ChosenText.fit`."""
        table = TextTable.of(annotations, self.title, self.unit, self.normalize)
        parts = np.split(table.tokens.codes, table.tokens.starts[1:-1])
        rows = [parts[place] for place in table.said.tolist()]
        starts = np.cumsum([0, *map(len, rows)])
        codes, ends = _voted(np.concatenate(rows), starts, np.r_[0, np.cumsum(table.sizes)])
        texts = np.array([table.tokens.joined(part) for part in np.split(codes, ends[1:-1])], object)
        tokens = Tokens.of([*table.tokens.texts, *texts], self.unit)
        return TextAggregation.of(self, table, texts, tokens, len(parts) + np.arange(len(texts)))


@compiled()
def _aligned(slots: Codes, answer: Codes, before: int) -> Codes:  # pragma: no cover
    """Adds a text to a network of words.

    Args:
        slots: counts of each token at each place, [places, 1 + V]; index 0 is a gap.
        answer: tokens of the text, from 1.
        before: number of texts in the network.

    Returns:
        The network, [places, 1 + V].
    """
    length, number = len(answer), len(slots)
    costs = np.zeros((length + 1, number + 1), np.int64)
    moves = np.zeros((length + 1, number + 1), np.int8)  # 0 to the same place, 1 gap in the text, 2 to a new place
    for row in range(length + 1):
        for place in range(number + 1):
            least, move = (row + place) << 32, 0
            if row and place:
                least = costs[row - 1, place - 1] + (slots[place - 1, answer[row - 1]] == 0)
            if place and costs[row, place - 1] + (row == 0 or slots[place - 1, 0] == 0) < least:
                least, move = costs[row, place - 1] + (row == 0 or slots[place - 1, 0] == 0), 1
            if row and costs[row - 1, place] + 1 < least:
                least, move = costs[row - 1, place] + 1, 2
            costs[row, place], moves[row, place] = least, move
    merged = np.zeros((length + number, slots.shape[1]), np.int64)
    row, place, at = length, number, length + number
    while row or place:
        at -= 1
        move = moves[row, place]
        if move == 2:
            merged[at, 0] = before
        else:
            place -= 1
            merged[at] = slots[place]
        if move == 1:
            merged[at, 0] += 1
        else:
            row -= 1
            merged[at, answer[row]] += 1
    return merged[at:]


@compiled()
def _voted(codes: Codes, starts: Codes, bounds: Codes) -> tuple[Codes, Codes]:  # pragma: no cover
    """Winning tokens of all tasks, concatenated, and where each task starts, [N + 1]."""
    voted, ends, number = np.empty_like(codes), np.zeros_like(bounds), 0
    for task in range(len(bounds) - 1):
        begin, end = bounds[task], bounds[task + 1]
        known = np.unique(codes[starts[begin] : starts[end]])
        slots = np.zeros((0, 1 + len(known)), np.int64)
        for row in range(begin, end):
            own = np.searchsorted(known, codes[starts[row] : starts[row + 1]]) + 1
            slots = _aligned(slots, own, row - begin)
        for place in range(len(slots)):
            best = len(known) - np.argmax(slots[place][::-1])  # ties go to the last
            if best:
                voted[number] = known[best - 1]
                number += 1
        ends[task + 1] = number
    return voted[:number], ends
