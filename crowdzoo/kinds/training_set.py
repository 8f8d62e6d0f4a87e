"""TrainingSet: what a model is trained on, from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.reading.instances.instances import take_rows


@dataclass(frozen=True)
class TrainingSet:
    """What a model is trained on, from files.

    Attributes:
        crowd: what `Kind.read` gave.
        x: instances of all tasks, as `Kind.train` takes them.
        annotations: labels of all tasks; task code i is row i of x.
        training: which tasks are trained on, bool [N]: those that somebody labelled and whose split is not "eval".
        gold: what is known of the tasks, in the kind's own form; None where nothing is.
        gold_pairs: true preferences between the tasks, by one annotator; None for other kinds, and where nothing is.
        names: of the columns of feature vectors; None for a list column, and for other instances.
        held_out: which tasks are of the split "eval", bool [N]; None where none are.
    """

    crowd: Any
    x: Any
    annotations: Annotations
    training: np.ndarray
    gold: Any
    names: tuple[str, ...] | None = None
    held_out: np.ndarray | None = None
    gold_pairs: Annotations | None = None

    @property
    def instances(self) -> Any:
        """Those that are trained on."""
        return self.x if self.training.all() else take_rows(self.x, self.training)

    @property
    def trained_on(self) -> Any:
        """What `Kind.read` gave, of the tasks that are trained on."""
        return self.crowd if self.training.all() else self.used

    @property
    def used(self) -> Annotations:
        """Labels of the tasks that are trained on."""
        if self.training.all():
            return self.annotations
        return self.annotations.select_tasks(np.flatnonzero(self.training))
