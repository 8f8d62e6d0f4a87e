"""TextMethod: the settings and the fit that methods for free texts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.aggregation.free_texts.tokens import NORMALIZATIONS, UNITS
from crowdzoo.checks.constraints import Choice, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


class Features:
    """A rule: what texts are compared by, "edits", "ngrams" or a function."""

    def checked(self, where: str, name: str, value: object) -> Any:
        """See `Rule`."""
        return value if callable(value) else Choice(("edits", "ngrams")).checked(where, name, value)


FEATURES = Features()


@dataclass(frozen=True)
class TextMethod(Aggregator):
    """Base of the methods that choose one of a task's texts: they give each text a score.

    Attributes:
        title: the method's name in messages.
        name: the method's name in `TEXT_METHODS`.
    """

    kind: ClassVar[str] = "free-text"
    title: ClassVar[str]
    name: ClassVar[str]

    unit: str = setting("words", Choice(UNITS))
    normalize: str = setting("blanks", Choice(NORMALIZATIONS))

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
        scores, found = self._scores(table)
        best = table.first_best(scores)
        chosen = np.zeros(annotations.num_tasks, np.int64)
        chosen[table.tasks[best]] = table.said[best]
        written = np.asarray(annotations.classes, str).astype(object)
        texts = np.where(table.sizes > 0, written[chosen], "")
        return TextAggregation.of(self, table, texts, table.tokens, chosen, **found)

    def _scores(self, table: TextTable) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Scores of the rows, [A], the highest wins; and arguments of `TextAggregation.of`.

        `ROVER`, which writes its texts itself, has none.
        """
        raise NotImplementedError
