"""ChosenText: the fit of the methods that choose one of a task's texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.aggregation.free_texts.tokens import NORMALIZATIONS, UNITS
from crowdzoo.checks.constraints import Choice, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True)
class TextMethod(Aggregator):
    """Base class of the methods for free texts.

    Attributes:
        title: name of the method in messages.
        name: name of the method in `TEXT_METHODS`.
    """

    kind: ClassVar[str] = "free-text"
    title: ClassVar[str]
    name: ClassVar[str]

    unit: str = setting("words", Choice(UNITS))
    normalize: str = setting("blanks", Choice(NORMALIZATIONS))


class Features:
    """A rule for the features by which texts are compared: "edits", "ngrams" or a function."""

    def checked(self, where: str, name: str, value: object) -> Any:
        """See `Rule`."""
        return value if callable(value) else Choice(("edits", "ngrams")).checked(where, name, value)


FEATURES = Features()


@dataclass(frozen=True)
class ChosenText(TextMethod, ABC):
    """Base class of the methods that score each text and choose a task's text with the highest score."""

    def fit(self, annotations: Annotations) -> TextAggregation:
        """Chooses a text for each task.

        Args:
            annotations: texts of N tasks by R annotators, kind "free-text"; not changed.

        Returns:
            The original texts, of equal ones the first, and how close the annotators' texts are to them.

        Raises:
            DataError: annotations of another kind, none at all, or several texts by one annotator for a task.
        """
        table = TextTable.of(annotations, self.title, self.unit, self.normalize)
        scores, details = self._scores(table)
        best = table.first_best(scores)
        chosen = np.zeros(annotations.num_tasks, np.int64)
        chosen[table.tasks[best]] = table.said[best]
        texts = np.where(table.sizes > 0, np.asarray(annotations.values)[chosen], "")
        return TextAggregation.of(self, table, texts, table.tokens, chosen, **details)

    @abstractmethod
    def _scores(self, table: TextTable) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Scores of the rows, [A], the highest wins; and further arguments of `TextAggregation.of`."""


@dataclass(frozen=True)
class TextMedoid(ChosenText):
    """The text with the lowest sum of distances to the others of its task: edits over the tokens of the longer text.

    Args:
        unit: what an edit changes: "words", or "characters" for scripts without spaces.
        normalize: what to ignore: "blanks" (only their number), "case", "punctuation", or both ("words").
        features: "edits" (default); or vectors of the texts, see `TextRASA`, with squared distances, which chooses the
            text closest to their mean.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import TextMedoid
        >>> words = ["a cat sat", "a cat sat down", "cats"]
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], words, kind="free-text")
        >>> TextMedoid().fit(texts).texts.tolist()
        ['a cat sat']

    Needs:
        At least three texts per task.

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


@dataclass(frozen=True)
class MostFrequentText(ChosenText):
    """The text that most annotators wrote; ties go to the one closest to the others.

    Args:
        unit: what an edit changes, if distances decide: "words", or "characters" for scripts without spaces.
        normalize: what to ignore: "blanks" (only their number), "case", "punctuation", or both ("words").

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MostFrequentText
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], ["42", "42", "24"], kind="free-text")
        >>> MostFrequentText().fit(texts).texts.tolist()
        ['42']

    Needs:
        Short texts that several annotators write identically: final answers of language models, names, numbers.

    Source:
        X. Wang and others: Self-Consistency Improves Chain of Thought Reasoning in Language Models, ICLR 2023.
    """

    title: ClassVar[str] = "The most frequent text"
    name: ClassVar[str] = "most-frequent"

    def _scores(self, table: TextTable) -> tuple[NDArray[np.float64], dict[str, Any]]:
        mean = table.sums(table.distances) / np.maximum(table.sizes[table.tasks], 1)
        return table.sums((table.distances == 0).astype(float)) - mean / 2, {}
