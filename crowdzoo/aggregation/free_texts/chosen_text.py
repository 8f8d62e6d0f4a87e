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
    """Base of the methods for free texts.

    Attributes:
        title: the method's name in messages.
        name: the method's name in `TEXT_METHODS`.
    """

    kind: ClassVar[str] = "free-text"
    title: ClassVar[str]
    name: ClassVar[str]

    unit: str = setting("words", Choice(UNITS))
    normalize: str = setting("blanks", Choice(NORMALIZATIONS))


class Features:
    """A rule: what texts are compared by, "edits", "ngrams" or a function."""

    def checked(self, where: str, name: str, value: object) -> Any:
        """See `Rule`."""
        return value if callable(value) else Choice(("edits", "ngrams")).checked(where, name, value)


FEATURES = Features()


@dataclass(frozen=True)
class ChosenText(TextMethod, ABC):
    """Base of the methods that give each text a score: of a task's texts the one with the highest is chosen."""

    def fit(self, annotations: Annotations) -> TextAggregation:
        """Finds a text for each task.

        Args:
            annotations: texts of N tasks by R annotators, kind "free-text"; not changed.

        Returns:
            The texts as they were written, of equal ones the first, and how near those of the annotators are.

        Raises:
            DataError: annotations of another kind, none at all, or several texts of one annotator for one task.
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
        """Scores of the rows, [A], the highest wins; and arguments of `TextAggregation.of`."""


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
        Three texts per task or more.

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
    """The text that most annotators wrote alike; for texts that are equally frequent the one nearest to the others.

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
