"""ChosenText: the fit of the methods that choose one of a task's texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.aggregation.free_texts.text_method import TextMethod
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.checks.constraints import Choice

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


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
