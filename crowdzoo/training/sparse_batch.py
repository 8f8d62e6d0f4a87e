"""Converts batches with one column of labels per annotator to the form that names the annotators."""

from collections.abc import Mapping
from typing import Any, TypeGuard

import keras
from keras import ops

from crowdzoo.errors import DataError
from crowdzoo.layers.crowd_layer import CrowdLayer


def has_annotators(inputs: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a model's inputs have annotators as well as instances."""
    return isinstance(inputs, Mapping) and {"instances", "annotators"} <= {*inputs}


def sparse_batch(crowd: CrowdLayer | None, batch: tuple) -> tuple:
    """Converts a batch to the form on which a model with a crowd layer is trained.

    Args:
        crowd: the crowd layer, or None.
        batch: `(x, y)` or `(x, y, sample_weight)` of tensors, as `keras.Model.train_step` gets it.

    Returns:
        `({"instances": x, "annotators": ids}, y, ...)` where y is `[B, R]` (sequences `[B, T, R]`); gold `[B]` for
        `[B, 1]`; any other batch is unchanged.

    Raises:
        DataError: as many classes as annotators, so that numbers may be either one-hot truth or labels.
    """
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    if crowd is None or has_annotators(x) or not hasattr(y, "shape") or len(y.shape) != crowd.label_kind.axes + 1:
        return batch
    if y.shape[-1] == crowd.num_annotators:
        if crowd.num_classes == crowd.num_annotators and keras.backend.is_float_dtype(y.dtype):
            raise DataError(
                f"y has {crowd.num_classes} columns of numbers: one-hot truth, or labels of {crowd.num_annotators} "
                "annotators? Write the truth as codes, y.argmax(axis=-1), or labels as integers, y.astype('int32')."
            )
        codes = ops.arange(crowd.num_annotators, dtype="int32")
        x = {"instances": x, "annotators": ops.broadcast_to(codes, (ops.shape(y)[0], crowd.num_annotators))}
    elif y.shape[-1] == 1:
        y = y[..., 0]
    return (x, y) if weight is None else (x, y, weight)


def check_columns(crowd: CrowdLayer, shape: tuple[int | None, ...]) -> None:
    """Rejects labels that do not have one column per annotator.

    Args:
        crowd: the crowd layer.
        shape: shape of the labels; None for an unknown size.

    Raises:
        DataError: labels with one truth per task, or with another number of columns.
    """
    axes = crowd.label_kind.axes + 1
    written = ("N, R", "N, T, R", "N, H, W, R")[axes - 2]
    if len(shape) == axes - 1:
        raise DataError(
            f"labels of shape {shape} are one per task, and the crowd layer learns from several annotators' labels, "
            f"[{written}]. To learn from the truth, or from aggregated labels, write CrowdModel(base).fit(x, y); to "
            "compare with it, evaluate(x, y) or validation_data=(x, y)."
        )
    if len(shape) != axes or shape[-1] not in (None, crowd.num_annotators):
        raise DataError(
            f"labels of shape {shape} do not have a column for each of the crowd layer's {crowd.num_annotators:,} "
            f"annotators, [{written}]. To pass only existing labels, write x as "
            '{"instances": x, "annotators": ids}, ids [N, M] and labels [N, M]; pass gold as class codes, '
            f"[{written[:-3]}]."
        )
