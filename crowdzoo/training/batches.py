"""Batches of instances and their annotations, for every Keras backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.backend import KerasBatches, Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.ranges import BATCH
from crowdzoo.reading.instances.upright_image import opened
from crowdzoo.training.pair_rows import num_rows, pair_rows
from crowdzoo.training.training_state import EpochCount

if TYPE_CHECKING:
    import tensorflow as tf

INPUTS = ("annotators", "labels", "tasks")

# Sentences of a batch are cut to a multiple of this, so that few shapes need compiling
TOKENS = 8
# Number of batches within which sentences are sorted by length
SORTED_TOGETHER = 16


class _Shuffled(keras.utils.PyDataset):
    """Batches in an order that depends on the seed and the epoch only.

    Args:
        rows: rows to order, int `[n]`.
        batch_size: rows in a batch.
        seed: seed of the shuffling.
        shuffle: False keeps the order of `rows`.
        encode: function from instances to the model's input, in TensorFlow operations; None leaves them unchanged.
    """

    def __init__(
        self, rows: np.ndarray, batch_size: int, seed: int, shuffle: bool, encode: Callable[[Any], Any] | None = None
    ):
        super().__init__()
        self.encode = encode
        self.rows = rows
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.epochs = EpochCount()
        self._lock = Lock()
        # Keras may look at the first batch before the epoch begins
        self._drawn_epoch, self._order = 0, self._draw_order(0)

    def __len__(self) -> int:
        """Number of batches in an epoch; the last one may be smaller."""
        return -(-len(self.rows) // self.batch_size)

    def on_epoch_begin(self) -> None:
        """Draws the order of the next epoch."""
        self.epochs.on_epoch_begin()
        self._go_to(self.epochs.number)

    def batch_of_epoch(self, epoch: int, index: int) -> tuple:
        """A batch of an epoch by its index."""
        with self._lock:  # TensorFlow may read ahead in an iteration that Keras has abandoned
            self._go_to(epoch)
            return self[index]

    def _go_to(self, epoch: int) -> None:
        if epoch != self._drawn_epoch:
            self._drawn_epoch, self._order = epoch, self._draw_order(epoch)

    def for_keras(self) -> KerasBatches:
        """Data for `keras.Model.fit`: on TensorFlow, or with `encode`, a `tf.data.Dataset`, else these batches."""
        return self.as_tf_dataset() if keras.backend.backend() == "tensorflow" or self.encode else self

    def as_tf_dataset(self) -> tf.data.Dataset:
        """The same batches as a `tf.data.Dataset`; an iteration is an epoch."""
        raise NotImplementedError

    def _draw_order(self, epoch: int) -> np.ndarray:
        """The order of an epoch."""
        return np.random.default_rng([self.seed, epoch]).permutation(self.rows) if self.shuffle else self.rows

    def _batch(self, index: int) -> np.ndarray:
        """Rows of a batch."""
        return self._order[index * self.batch_size : (index + 1) * self.batch_size]


class TargetBatches(_Shuffled):
    """Batches `(x, y)` of two arrays, or `(x, y, sample_weight)`.

    Args:
        x: `[n, ...]`, or a structure of such arrays.
        y: `[n, ...]`.
        sample_weight: `[n]`, or None.
        batch_size: rows in a batch.
        seed: seed of the shuffling.
        shuffle: False keeps the rows' order.
        encode: function from x to the model's input, in TensorFlow operations; applied by `as_tf_dataset`.

    Raises:
        DataError: different numbers of rows, or weights that `checked_weights` rejects.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        batch_size: int,
        seed: int,
        shuffle: bool = True,
        encode: Callable[[Any], Any] | None = None,
    ):
        self.x = keras.tree.map_structure(np.asarray, x)
        self.y = np.asarray(y)
        rows = num_rows(self.x)
        if rows != len(self.y):
            raise DataError(f"there are {rows:,} instances, but {len(self.y):,} targets")
        self.sample_weight = None if sample_weight is None else checked_weights(sample_weight, rows)
        super().__init__(np.arange(rows), batch_size, seed, shuffle, encode)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        rows = self._batch(index)
        return keras.tree.map_structure(lambda array: array[rows], self._arrays)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return (self.x, self.y) if self.sample_weight is None else (self.x, self.y, self.sample_weight)

    def as_tf_dataset(self) -> tf.data.Dataset:
        """The same batches as a `tf.data.Dataset`; an iteration is an epoch."""
        return tf_dataset(self, keras.tree.map_structure(tensor_spec, self._arrays), self.encode)


class CrowdBatches(_Shuffled):
    """Batches `({"instances": x, "annotators": ids}, labels)` from arrays and annotations, optionally with weights.

    Only labelled tasks appear. The annotations of a batch are padded to its own most annotated task (rounded up to a
    power of two, so that few shapes need compiling), so that one task with a thousand labels does not widen all others.

    Sentences are likewise cut to the longest one of their batch, with labels and targets. With shuffling, sentences of
    similar length are batched together, which saves padding. Tokens after the last labelled one of a batch are not
    used.

    The order of an epoch depends only on the seed and the number of the epoch.

    Args:
        x: instances, an array `[N, ...]`, a structure of them, or a table that carries the ids of its rows.
        annotations: labels.
        tasks: ids of the rows of x, `[N]`; see `CrowdModel.fit`.
        batch_size: tasks in a batch, at least 1.
        seed: seed of the shuffling.
        shuffle: whether every epoch has its own order; False keeps that of the tasks.
        inputs: inputs in addition to the instances: any of "annotators", "labels", "tasks" (the rows' numbers); without
            any, `x` is the instances alone.
        targets: `y` in place of the labels, one row per row of x; read when a batch is made, so they may be changed
            between epochs. For sequences `[N, T, ...]`, T the longest labelled one.
        answers: input in place of the labels, float32 `[N, W, K]` in the order of `Annotations.padded`, W the most
            annotations of a task; for classification.
        sample_weight: weights of the rows of x, `[N]`, which are then added to the batches; None adds none.
        encode: function from instances to the model's input, in TensorFlow operations, applied by `as_tf_dataset`; None
            leaves them unchanged.

    Items:
        instances `[B, ...]`; ids int32 `[B, M]`, -1 as padding; labels int32 `[B, M]`, -1 where missing
        (float32 and NaN for regression; int32 `[B, T, M]` for sequences, T the batch's longest sentence rounded up).

    Raises:
        DataError: rows of x cannot be matched with tasks, labelled tasks have no row, there are no annotations, more
            tokens are labelled than an instance has, or `checked_weights` rejects the weights.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.models import CrowdBatches
        >>> task, annotator = [0, 0, 1, 2], ["ann", "bob", "ann", "bob"]
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog"])
        >>> batches = CrowdBatches(np.zeros((3, 20)), annotations, tasks=[0, 1, 2], batch_size=3, shuffle=False)
        >>> inputs, labels = batches[0]
        >>> inputs["annotators"].tolist(), labels.tolist()  # -1 where a task has fewer labels
        ([[0, 1], [0, -1], [1, -1]], [[0, 0], [1, -1], [1, -1]])
    """

    @checked(batch_size=BATCH)
    def __init__(
        self,
        x: Any,
        annotations: Annotations,
        tasks: Any = None,
        *,
        batch_size: int = 32,
        seed: int = 0,
        shuffle: bool = True,
        inputs: Sequence[str] = ("annotators",),
        targets: np.ndarray | None = None,
        answers: np.ndarray | None = None,
        sample_weight: Any = None,
        encode: Callable[[Any], Any] | None = None,
    ):
        if unknown := [name for name in inputs if name not in INPUTS]:
            raise ValueError(f"inputs knows {', '.join(INPUTS)}, got {unknown[0]!r}")
        x, annotations = pair_rows(x, annotations, tasks, line="CrowdBatches(x, annotations, tasks={})")
        if targets is not None and len(targets) < annotations.num_tasks:
            raise ValueError(f"targets need a row for each of the {annotations.num_tasks} tasks, got {len(targets)}")
        self.x = keras.tree.map_structure(np.asarray, x)
        arrays = keras.tree.flatten(self.x)
        labelled = np.flatnonzero(annotations.redundancy > 0)
        if len(labelled) == 0:
            raise DataError("there are no annotations to learn from")
        self._kind = annotations.label_kind
        if (positions := annotations.positions) is not None:
            tokens = arrays[0].shape[1] if arrays[0].ndim > 1 else 0
            self._length = int(positions.max()) + 1
            if self._length > tokens:
                raw = arrays[0].dtype.kind in "OSU"
                fix = " Raw texts need crowdzoo.models.Preprocessed(tagger, preprocessor) as base." if raw else ""
                raise DataError(
                    f"a label is at position {self._length - 1}, but the instances have {tokens} tokens (their "
                    f"second axis; positions count from 0).{fix}"
                )
            self._lengths = np.zeros(annotations.num_tasks, dtype=np.int64)
            np.maximum.at(self._lengths, annotations.task_ids, positions + 1)
        self.annotations = annotations
        self.inputs = tuple(inputs)
        self.targets, self.answers = targets, answers
        self.sample_weight = None if sample_weight is None else checked_weights(sample_weight, num_rows(x), labelled)
        self._most = int(annotations.redundancy.max())
        super().__init__(labelled, batch_size, seed, shuffle, encode)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        tasks = self._batch(index)
        x: dict[str, Any] = {"instances": keras.tree.map_structure(lambda array: self._rows(array, tasks), self.x)}
        y = None if self.targets is None else self._rows(self.targets, tasks)
        if y is None or {"annotators", "labels"} & {*self.inputs}:
            x["annotators"], x["labels"] = self._pad(tasks)
            y = x["labels"] if y is None else y
            if self.answers is not None:
                x["labels"] = self.answers[tasks, : x["annotators"].shape[1]]
        x["tasks"] = tasks.astype("int32")
        inputs = {name: x[name] for name in ("instances", *self.inputs)} if self.inputs else x["instances"]
        return (inputs, y) if self.sample_weight is None else (inputs, y, self.sample_weight[tasks])

    def _rows(self, array: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Rows of some tasks; for sequences, as many tokens as the batch needs."""
        return array[tasks] if self.annotations.positions is None else array[tasks, : self._tokens(tasks)]

    def _tokens(self, tasks: np.ndarray) -> int:
        """Number of tokens of a batch of sequences."""
        return min(-(-int(self._lengths[tasks].max()) // TOKENS) * TOKENS, self._length)

    def _draw_order(self, epoch: int) -> np.ndarray:
        """The order of an epoch; sequences are partly sorted by length, and their batches shuffled again."""
        order = super()._draw_order(epoch)
        if self.annotations.positions is None or not self.shuffle:
            return order
        size = self.batch_size * SORTED_TOGETHER
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        order = np.concatenate([part[np.argsort(self._lengths[part], kind="stable")] for part in parts])
        # the last batch may be smaller, so it stays last
        whole = len(order) // self.batch_size * self.batch_size
        batches = order[:whole].reshape(-1, self.batch_size)
        shuffled = np.random.default_rng([self.seed, epoch, 1]).permutation(len(batches))
        return np.concatenate([batches[shuffled].ravel(), order[whole:]])

    def _pad(self, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids and labels of some tasks."""
        ids, labels = self.annotations.padded(tasks)
        width = min(1 << (ids.shape[1] - 1).bit_length(), self._most)
        ids = _pad_axis(ids, ids.ndim - 1, width, -1)
        labels = _pad_axis(labels, labels.ndim - 1, width, self._kind.missing)
        if labels.ndim == 3:
            labels = _pad_axis(labels, 1, self._tokens(tasks), -1)
        return ids.astype("int32"), labels.astype(self._kind.tensor_dtype)

    def as_tf_dataset(self) -> tf.data.Dataset:
        """The same batches as a `tf.data.Dataset`; an iteration is an epoch.

        Keras would make one itself, but fix the padded width at that of the first two batches.
        """
        import tensorflow as tf

        spec = partial(tensor_spec, open_axes=self._kind.axes)  # each batch of sequences has its own length
        instances = keras.tree.map_structure(spec, self.x)
        labels = tf.TensorSpec((None,) * (1 + self._kind.axes), self._kind.tensor_dtype)
        specs = {
            "instances": instances,
            "annotators": tf.TensorSpec((None, None), tf.int32),
            "labels": labels if self.answers is None else tensor_spec(self.answers, open_axes=2),
            "tasks": tf.TensorSpec((None,), tf.int32),
        }
        return tf_dataset(
            self,
            (
                {name: specs[name] for name in ("instances", *self.inputs)} if self.inputs else instances,
                labels if self.targets is None else spec(self.targets),
                *([] if self.sample_weight is None else [tensor_spec(self.sample_weight)]),
            ),
            self._encode if self.encode else None,
        )

    def _encode(self, x: Any) -> Any:
        assert self.encode is not None
        return {**x, "instances": self.encode(x["instances"])} if self.inputs else self.encode(x)


def checked_weights(sample_weight: ArrayLike, rows: int, labelled: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Checks weights of rows and returns them as float32 `[rows]`.

    Args:
        sample_weight: weights, `[rows]`.
        rows: number of rows.
        labelled: rows that are learned from.

    Raises:
        DataError: the wrong shape; a weight that is negative, NaN or infinite; or no labelled row has a weight above 0.
    """
    weights = np.asarray(sample_weight)
    if weights.shape != (rows,) or weights.dtype.kind not in "fiub":
        shape = f"{weights.dtype} of shape {weights.shape}"
        raise DataError(f"sample_weight must have one number per row of x, shape ({rows},), got {shape}.")
    weights = weights.astype("float32")
    for row in np.flatnonzero(~(np.isfinite(weights) & (weights >= 0))):
        raise DataError(f"sample_weight[{row}] is {weights[row]:g}: weights must be finite, and 0 or more.")
    if not weights[labelled].any():
        raise DataError("sample_weight is 0 for every labelled row, so there is nothing to learn from.")
    return weights


def tensor_spec(array: np.ndarray, open_axes: int = 1) -> tf.TensorSpec:
    """TensorFlow's specification of batches of an array's rows; the first axes may have any length."""
    import tensorflow as tf

    dtype = tf.string if array.dtype.kind in "OSU" else array.dtype
    return tf.TensorSpec((*[None] * open_axes, *array.shape[open_axes:]), dtype)


def tf_dataset(
    batches: keras.utils.PyDataset, signature: tuple, encode: Callable[[Tensor], Tensor] | None = None
) -> tf.data.Dataset:
    """Batches made in Python as a `tf.data.Dataset`; an iteration is an epoch.

    Takes a third of the time of `Dataset.from_generator`, which crosses into Python several times per batch.

    Args:
        batches: `CrowdBatches` or `TargetBatches`.
        signature: `tf.TensorSpec`s in the structure of a batch.
        encode: function from a batch's x to the model's input, in TensorFlow operations; None leaves it unchanged.
    """
    import tensorflow as tf

    signature = keras.tree.lists_to_tuples(signature)  # tf.data converts lists to tensors
    specs = tf.nest.flatten(signature)

    def make(epoch: np.int64, index: np.int64) -> list[np.ndarray]:
        return [opened(np.asarray(part)) for part in tf.nest.flatten(batches.batch_of_epoch(int(epoch), int(index)))]

    def load(epoch: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        parts = tf.numpy_function(make, [epoch, index], [spec.dtype for spec in specs])
        shaped = [tf.ensure_shape(part, spec.shape) for part, spec in zip(parts, specs, strict=True)]
        return tf.nest.pack_sequence_as(signature, shaped)

    def indices(_: tf.Tensor) -> tf.Tensor:
        epoch = tf.numpy_function(lambda: np.int64(batches.epochs.next()), [], tf.int64)
        return tf.data.Dataset.range(len(batches)).map(lambda index: (epoch, index))

    dataset = tf.data.Dataset.range(1).flat_map(indices).map(load)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(batches)))
    if encode is not None:
        dataset = dataset.map(lambda x, *rest: (encode(x), *rest), tf.data.AUTOTUNE)
    dataset = dataset.prefetch(2)
    dataset.epochs = batches.epochs  # for `replay` and `epoch_callbacks`
    return dataset


def _pad_axis(array: np.ndarray, axis: int, size: int, value: float) -> np.ndarray:
    """The array with `value` added at the end of an axis until it has `size`."""
    pads = [(0, 0)] * array.ndim
    pads[axis] = (0, size - array.shape[axis])
    return np.pad(array, pads, constant_values=value)
