"""The text that is nearest to all others of its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.chosen_text import FEATURES, ChosenText
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.checks.constraints import setting


@dataclass(frozen=True)
class TextMedoid(ChosenText):
    """The text with the fewest edits to the others of its task, each over the tokens of the longer of the two.

    Args:
        unit: what an edit changes: "words", or "characters" for scripts without blanks.
        normalize: what does not count: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: "edits" (default); or vectors of the texts, whose squared distances count: see `TextRASA`. The text is
            then the one that is nearest to their mean.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import TextMedoid
        >>> words = ["a cat sat", "a cat sat down", "cats"]
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], words, kind="free-text")
        >>> TextMedoid().fit(texts).texts.tolist()
        ['a cat sat']

    Needs:
        Three texts a task or more.

    Source:
        L. Kaufman and P. J. Rousseeuw: Clustering by Means of Medoids, 1987, with the distance of V. I. Levenshtein,
        1966.
    """

    title: ClassVar[str] = "The text nearest to the others"
    name: ClassVar[str] = "medoid"

    features: Any = setting("edits", FEATURES)

    def _scores(self, table: TextTable) -> tuple[NDArray[np.float64], dict[str, Any]]:
        own, products = table.products(self.features)
        left, right = table.pairs
        return -table.sums(own[left] + own[right] - 2 * products), {}
