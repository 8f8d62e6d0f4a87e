"""Data for training: arrays in memory here, files in the pipeline, with one interface for both."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import keras
import numpy as np

from crowdzoo.backend import KerasBatches
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.training.batches import CrowdBatches
from crowdzoo.training.pair_rows import pair_rows

# Arguments of `TrainingData.batches`: batch_size, seed, shuffle and sample_weight
BatchOrder: TypeAlias = dict[str, Any]


def split_row(rows: int, fraction: float) -> int:
    """First row of the held-out part, counted as Keras' `validation_split` does.

    Args:
        rows: number of rows.
        fraction: share that is held out.

    Raises:
        DataError: a part would have no rows.
    """
    place = math.floor(rows * (1 - fraction)) if 0 < fraction < 1 else 0
    if not 0 < place < rows:
        raise DataError(f"validation_split must be above 0 and below 1 and leave rows to both parts, got {fraction!r}")
    return place


@runtime_checkable
class TrainingData(Protocol):
    """Annotated tasks that training can iterate over any number of times.

    Attributes:
        num_tasks: N, number of rows of `targets`; tasks are numbered 0..N-1.
        num_tokens: T, labelled tokens of the longest task, the second axis of `targets`; for masks their rows and
            columns; None where a task has one label.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.models import ArrayData, TrainingData
        >>> annotations = Annotations.from_arrays([0, 1], ["ann", "bob"], ["cat", "dog"])
        >>> data = ArrayData(np.zeros((2, 20), "float32"), annotations, tasks=[0, 1])
        >>> isinstance(data, TrainingData), data.num_tasks
        (True, 2)
    """

    num_tasks: int
    num_tokens: int | tuple[int, ...] | None

    def batches(
        self,
        batch_size: int,
        seed: int,
        *,
        shuffle: bool = True,
        inputs: Sequence[str] = ("annotators",),
        targets: np.ndarray | None = None,
        answers: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> KerasBatches:
        """Returns one pass over the tasks as data for Keras; every pass has its own order.

        Args:
            batch_size: tasks in a batch.
            seed: seed of the order.
            shuffle: False keeps one order.
            inputs: inputs of the model in addition to the instances: any of "annotators" (codes, int `[B, M]`, -1 as
                padding), "labels" (int `[B, M]`, -1 where missing), "tasks" (numbers, int `[B]`). Without any, the
                model gets only the instances, and `targets` are needed.
            targets: targets of the model, `[N, ...]` (sequences `[N, T, ...]`), read when a batch is made, so that they
                may be changed between passes; None is the labels `[B, M]`.
            answers: distributions in place of the input "labels", float32 `[N, W, K]`, in the order of
                `Annotations.padded`; for annotations in memory.
            sample_weight: weights of the tasks, `[N]`, for data in memory; None: every task counts once.

        Returns:
            Batches `(x, y)`, or with weights `(x, y, weights)`: x is the instances, or a dictionary of "instances" and
            the named inputs.
        """


def answer_shape(data: TrainingData) -> tuple[int, ...]:
    """Shape of an array with one answer per labelled place: `[N]`, `[N, T]` or `[N, H, W]`.

    Args:
        data: `TrainingData`.
    """
    places = () if data.num_tokens is None else np.atleast_1d(data.num_tokens)
    return (data.num_tasks, *map(int, places))


class ArrayData:
    """Annotated tasks in memory.

    Args:
        x: instances, an array `[N, ...]`, a structure of them, or a table that carries the ids of its rows.
        annotations: labels.
        tasks: ids of the rows of x, `[N]`; see `CrowdModel.fit`.
        encode: function from instances to the model's input, in TensorFlow operations, such as an `InstanceEncoder`;
            batches are then a `tf.data.Dataset` on every backend. None leaves instances unchanged.

    Attributes:
        annotations: the same labels, renumbered so that task code i is row i of x.

    Raises:
        DataError: rows of x cannot be matched with tasks, or labelled tasks have no row.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.models import ArrayData
        >>> annotations = Annotations.from_arrays([7, 9, 9], ["ann", "ann", "bob"], ["cat", "dog", "dog"])
        >>> data = ArrayData(np.zeros((2, 20), "float32"), annotations, tasks=[9, 7])  # the task of each row
        >>> data.annotations.task_ids.tolist()  # rows
        [1, 0, 0]
    """

    def __init__(
        self, x: Any, annotations: Annotations, tasks: Any = None, *, encode: Callable[[Any], Any] | None = None
    ):
        self.encode = encode
        self.x, annotations = pair_rows(x, annotations, tasks, line="ArrayData(x, annotations, tasks={})")
        self.annotations = annotations
        self.num_tasks = annotations.num_tasks
        self.num_tokens: int | tuple[int, ...] | None = None
        if annotations.positions is not None:
            self.num_tokens = int(annotations.positions.max(initial=-1)) + 1

    @property
    def arrays(self) -> tuple:
        """The training data: x and the annotations."""
        return self.x, self.annotations

    def split(self, fraction: float) -> tuple["ArrayData", "ArrayData"]:
        """Splits the data into the first rows and a share of last rows.

        Args:
            fraction: share of the rows in the second part, above 0 and below 1.

        Raises:
            DataError: a part without rows, or without labels.
        """
        place = split_row(self.num_tasks, fraction)
        parts = []
        for rows in (np.arange(place), np.arange(place, self.num_tasks)):
            annotations = self.annotations.select_tasks(rows)
            if len(annotations) == 0:
                raise DataError(
                    f"validation_split={fraction}: rows {rows[0]:,} to {rows[-1]:,} of x have no labels. Shuffle the "
                    "rows, or give validation_data."
                )
            x = keras.tree.map_structure(lambda array, rows=rows: np.asarray(array)[rows[0] : rows[-1] + 1], self.x)
            parts.append(ArrayData(x, annotations, annotations.tasks, encode=self.encode))
        return parts[0], parts[1]

    def batches(self, batch_size: int, seed: int, **how: Any) -> KerasBatches:
        """See `TrainingData.batches`."""
        how |= {"batch_size": batch_size, "seed": seed, "encode": self.encode}
        return CrowdBatches(self.x, self.annotations, self.annotations.tasks, **how).for_keras()
