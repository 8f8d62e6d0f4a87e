"""How methods for regions are compared."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.kinds.compared import Compared, Scores, Summed
from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import texts_of
from crowdzoo.training.encode_rows import encode_rows


class ComparedRegions(Compared):
    """By the Dice coefficient with gold, or with the answers that were hidden, of which an image may have several.

    A row of answers has the sum of an image's coefficients, their number, and the sum of intersections over unions.
    """

    title = "Dice coefficient"
    answers_hold_gold = True
    hidden_title = "Dice coefficient with hidden answers"
    baseline = "majority-vote"
    quick: ClassVar[tuple[str, ...]] = ("majority-vote", "staple", "objects")
    takes_base = False

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those that are not empty, of images with answers."""
        return np.asarray((self.gold != "") & (self.annotations.redundancy > 0), bool)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Sums of Dice coefficients, how many there are, and sums of intersections over unions."""
        return self._near(result.regions[tasks], tasks, rows)

    def told(self, tasks: NDArray[Any]) -> Any:
        """Texts of true regions, without classes that nobody marked."""
        names, images = KIND.class_names(self.annotations), map(MarkedImage.parse, self.gold[tasks])
        known = ((image, tuple(each for each in image.regions if each.label in names)) for image in images)
        return np.array([replace(image, regions=regions).text for image, regions in known], object)

    def predicted(self, model: Any, encoder: Any, x: Any, tasks: NDArray[Any]) -> Scores:
        """As `answers`, of masks in the size of their image; without gold with all answers to it."""
        said, asked = self.annotations, np.isin(np.arange(self.num_tasks), tasks)
        masks = model.predict(encode_rows(x, asked, encoder), verbose=0).argmax(axis=-1)
        answer = np.zeros(self.num_tasks, np.int64)
        answer[said.task_ids] = said.labels
        like = np.asarray(said.classes)[answer[tasks]]
        rows = asked[said.task_ids] if self.gold is None else None
        return self._near(texts_of(masks, KIND.class_names(said), like), tasks, rows)

    def _near(self, regions: NDArray[Any], tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """See `answers`."""
        if rows is None:
            places = np.flatnonzero(self.known[tasks])
            true = self.gold[tasks[places]]
        else:
            places = np.searchsorted(tasks, self.annotations.task_ids[rows])
            true = np.asarray(self.annotations.classes)[self.annotations.labels[rows]]
        near = np.array([dice(*map(MarkedImage.parse, pair)) for pair in zip(true, regions[places], strict=True)])
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
