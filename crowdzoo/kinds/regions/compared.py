"""How methods for regions are compared."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.kinds.compared import Compared, Scores, Summed


class ComparedRegions(Compared):
    """By the Dice coefficient with gold, or with the answers that were hidden, of which an image may have several.

    A row of answers has the sum of an image's coefficients, their number, and the sum of intersections over unions.
    """

    title = "Dice coefficient"
    answers_hold_gold = True
    hidden_title = "Dice coefficient with hidden answers"
    baseline = "majority-vote"
    quick: ClassVar[tuple[str, ...]] = ("majority-vote", "staple", "objects")

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those that are not empty, of images with answers."""
        return np.asarray((self.gold != "") & (self.annotations.redundancy > 0), bool)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Sums of Dice coefficients, how many there are, and sums of intersections over unions."""
        if rows is None:
            places = np.flatnonzero(self.known[tasks])
            true = self.gold[tasks[places]]
        else:
            places = np.searchsorted(tasks, self.annotations.task_ids[rows])
            true = np.asarray(self.annotations.classes)[self.annotations.labels[rows]]
        found = result.regions[tasks[places]]
        near = np.array([dice(*map(MarkedImage.parse, pair)) for pair in zip(true, found, strict=True)])
        columns = near, np.ones(len(near)), near / (2 - near)
        return np.stack([np.bincount(places, each, len(tasks)) for each in columns], axis=1)

    def right(self, answers: Scores, tasks: NDArray[Any]) -> Summed:
        """Dice coefficients."""
        return answers[:, 0], answers[:, 1]

    def hidden(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """Dice coefficients with hidden answers."""
        return self.right

    def figures(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Intersection over union."""
        return {"IoU": float(answers[:, 2].sum() / answers[:, 1].sum())}


COMPARED = ComparedRegions
