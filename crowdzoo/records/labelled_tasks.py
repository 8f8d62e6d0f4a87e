"""What AnnotationExampleGen makes Examples of, whatever the kind of label."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations

GenOptions = dict[str, Any]  # settings of AnnotationExampleGen, by name


@dataclass(frozen=True)
class LabelledTasks:
    """Tasks with what is known of them, in the order of their file; or pairs of tasks.

    Attributes:
        annotations: labels of all tasks.
        names: of the tasks, N; for pairs see `pair_names`.
        split: "train" or "eval", [N].
        labelled: whether anybody labelled the task, bool [N].
        gold: names of classes, ratings, or JSON of tags, N; None where nothing is known.
        info: entries of `dataset.json` that belong to the kind.
        change_split: what a user can do about a split that is empty.
        example: makes the tf.Example of a task, by its row.
        unit: what a row is, in messages.
    """

    annotations: Annotations
    names: list[str]
    split: np.ndarray
    labelled: np.ndarray
    gold: list[Any]
    info: dict[str, Any]
    change_split: str
    example: Callable[[int], tf.train.Example]
    unit: str = "task"

    @property
    def known(self) -> np.ndarray:
        """Whose gold is known, bool [N]."""
        return np.array([gold is not None for gold in self.gold], bool)

    @property
    def used(self) -> np.ndarray:
        """Which tasks become Examples, bool [N]: those that nobody labelled teach nothing, and stay in eval only."""
        return self.labelled | (self.split == "eval")
