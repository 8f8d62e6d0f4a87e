"""How methods for free texts are compared."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.kinds.compared import Compared, Scores
from crowdzoo.kinds.free_texts.scoring import SCORING, TextScoring
from crowdzoo.kinds.scoring import Sums


class ComparedTexts(Compared):
    """By the error rate, negative. A row of answers has the edits of a task's text, and the tokens it should have.

    They are counted against gold, or against the texts that were hidden, of which a task may have several; normalized
    and cut as `scale` says, which is the same for all methods.
    """

    scoring = SCORING
    title = "error rate, negative"
    answers_hold_gold = True
    hidden_title = "error rate of hidden texts, negative"
    baseline = "most-frequent"
    quick: ClassVar[tuple[str, ...]] = ("most-frequent", "medoid", "rover", "text-rasa", "text-hrrasa")

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Edits and tokens."""
        places, true = self.references(tasks, rows)
        negative, tokens = TextScoring(**self.scale).sums(true, result.texts[tasks[places]])
        return np.stack([np.bincount(places, column, len(tasks)) for column in (-negative, tokens)], axis=1)

    def sums(self, answers: Scores, tasks: NDArray[Any]) -> Sums:
        """Negative edits, and tokens."""
        known = self.known[tasks]
        return np.where(known, -answers[:, 0], 0.0), np.where(known, answers[:, 1], 0.0)

    def hidden_sums(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """Negative edits, and tokens, of the hidden texts."""
        return lambda answers, tasks: (-answers[:, 0], answers[:, 1])

    def further(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Share of the texts without an error."""
        return {"without error": float(np.mean(answers[self.known[tasks], 0] == 0))}


COMPARED = ComparedTexts
