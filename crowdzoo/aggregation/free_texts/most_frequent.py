"""The text that most annotators wrote."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.chosen_text import ChosenText
from crowdzoo.aggregation.free_texts.text_table import TextTable


@dataclass(frozen=True)
class MostFrequentText(ChosenText):
    """The text that most annotators wrote alike; of texts that are equally frequent the one nearest to the others.

    Args:
        unit: what an edit changes, where the distance decides: "words", or "characters" for scripts without blanks.
        normalize: what does not count: "blanks" (only their number), "case", "punctuation", or both ("words").

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MostFrequentText
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], ["42", "42", "24"], kind="free-text")
        >>> MostFrequentText().fit(texts).texts.tolist()
        ['42']

    Needs:
        Short texts, which several annotators write alike: final answers of language models, names, numbers.

    Source:
        X. Wang and others: Self-Consistency Improves Chain of Thought Reasoning in Language Models, ICLR 2023.
    """

    title: ClassVar[str] = "The most frequent text"
    name: ClassVar[str] = "most-frequent"

    def _scores(self, table: TextTable) -> tuple[NDArray[np.float64], dict[str, Any]]:
        mean = table.sums(table.distances) / np.maximum(table.sizes[table.tasks], 1)
        return table.sums((table.distances == 0).astype(float)) - mean / 2, {}
