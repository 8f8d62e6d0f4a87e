"""How methods for free texts are compared."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.edits import edits
from crowdzoo.aggregation.free_texts.tokens import Tokens
from crowdzoo.errors import ConfigError
from crowdzoo.kinds.compared import Compared, Scores, Summed
from crowdzoo.training.methods import default_method


class ComparedTexts(Compared):
    """By the word error, negative. A row of answers has the edits of a task's text and the words of its gold."""

    title = "word error, negative"
    baseline = "most-frequent"
    quick = ("most-frequent", "medoid", "rover", "text-rasa", "text-hrrasa")

    def checked(self, gold: Any) -> NDArray[Any]:
        """Texts, empty where unknown."""
        return self.array_of(gold).astype(str)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those that are not empty."""
        return np.asarray(self.gold != "")

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Edits and words of gold."""
        tokens = Tokens.of([*result.texts[tasks], *self.gold[tasks]], normalize=result.normalize)
        places = np.arange(len(tasks))
        wrong = edits(tokens, places, len(tasks) + places).sum(axis=1)
        return np.stack([wrong, tokens.lengths[len(tasks) :]], axis=1).astype(float)

    def right(self, answers: Scores, tasks: NDArray[Any]) -> Summed:
        """Negative edits, over words."""
        known = self.known[tasks]
        return np.where(known, -answers[:, 0], 0.0), np.where(known, answers[:, 1], 0.0)

    def figures(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Share of the texts without an error."""
        return {"texts without error": float(np.mean(answers[self.known[tasks], 0] == 0))}

    @classmethod
    def paired(cls, settings: Any, x: Any, crowd: Any, tasks: Any) -> tuple[Any, Any]:
        """Refuses deep methods."""
        raise ConfigError(f"compare: {default_method('free-text')}")


COMPARED = ComparedTexts
