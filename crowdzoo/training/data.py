"""Where training gets its batches from: arrays in memory here, files in the pipeline, one set of words for both."""

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
    """The first row that is held out where a share of the last rows is, as Keras' `validation_split` counts.

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
    """Annotated tasks that training can go through as often as it likes.

    Attributes:
        num_tasks: N, rows that `targets` need; tasks are numbered 0..N-1.
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
        """One pass over the tasks as Keras takes it; every pass has an order of its own.

        Args:
            batch_size: tasks in a batch.
            seed: seed of the order.
            shuffle: False keeps one order.
            inputs: what goes into the model in addition to the instances: any of "annotators" (codes, int `[B, M]`,
                -1 as padding), "labels" (int `[B, M]`, -1 where missing), "tasks" (numbers, int `[B]`).
                With none of them the model gets the instances alone, and `targets` are needed.
            targets: what the model is compared with, `[N, ...]` (sequences `[N, T, ...]`), looked up when a batch is
                made, so that they may be changed between passes; None is the labels `[B, M]`.
            answers: distributions in place of the "labels" that go in, float32 `[N, W, K]`, in the order of
                `Annotations.padded`; for annotations in memory.
            sample_weight: weights of the tasks, `[N]`, for data in memory; None: every task counts once.

        Returns:
            Batches `(x, y)`, or with weights `(x, y, weights)`: x the instances, or a dictionary of "instances" and the
            inputs named.
        """


def answer_shape(data: TrainingData) -> tuple[int, ...]:
    """Shape of an array with one answer for each place that is labelled: `[N]`, `[N, T]` or `[N, H, W]`.

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
        encode: from instances to what the model takes, in TensorFlow operations, such as an `InstanceEncoder`; batches
            are then a `tf.data.Dataset` on every backend. None gives instances as they are.

    Attributes:
        annotations: the same labels, renumbered so that task code i is row i of x.

    Raises:
        DataError: nothing says which row is which task, or labelled tasks have no row.

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
        """What is learned from: x and the annotations."""
        return self.x, self.annotations

    def split(self, fraction: float) -> tuple["ArrayData", "ArrayData"]:
        """The first rows, and the share of the last ones.

        Args:
            fraction: share of the rows in the second part, above 0 and below 1.

        Raises:
            DataError: a part without rows, or in which nobody labelled anything.
        """
        place = split_row(self.num_tasks, fraction)
        parts = []
        for rows in (np.arange(place), np.arange(place, self.num_tasks)):
            annotations = self.annotations.select_tasks(rows)
            if len(annotations) == 0:
                raise DataError(
                    f"validation_split={fraction}: nobody labelled rows {rows[0]:,} to {rows[-1]:,} of x. Shuffle the "
                    "rows, or give validation_data."
                )
            x = keras.tree.map_structure(lambda array, rows=rows: np.asarray(array)[rows[0] : rows[-1] + 1], self.x)
            parts.append(ArrayData(x, annotations, annotations.tasks, encode=self.encode))
        return parts[0], parts[1]

    def batches(self, batch_size: int, seed: int, **how: Any) -> KerasBatches:
        """See `TrainingData.batches`."""
        how |= {"batch_size": batch_size, "seed": seed, "encode": self.encode}
        return CrowdBatches(self.x, self.annotations, self.annotations.tasks, **how).for_keras()
