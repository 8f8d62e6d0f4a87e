"""Gold in the form that a model is compared with."""

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.label_kinds import LAYER_KINDS, label_kind
from crowdzoo.errors import DataError


def gold_targets(y: ArrayLike, kind: str, num_classes: int, num_annotators: int) -> np.ndarray | None:
    """The truth of every row, or None if `y` is annotators' labels.

    Args:
        y: class codes `[N]` (sequences `[N, T]`, masks `[N, H, W]`), -1 where unknown; or one-hot, `[N, K]`
            (`[N, T, K]`); or true ratings `[N]` or `[N, 1]`, NaN where unknown. Or annotators' labels, with an
            additional axis R.
        kind: "classification", "sequence", "segmentation" or "regression".
        num_classes: K.
        num_annotators: R; 0 if `y` cannot be annotators' labels.

    Returns:
        Class codes int32, -1 where unknown; or ratings float32, NaN where unknown.

    Raises:
        DataError: not class codes, codes that the model does not have, no truth at all, or an array that may be either.
    """
    array = np.asarray(y)
    facts = label_kind(kind, LAYER_KINDS)
    axes = facts.axes
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"gold must be numbers, got type {array.dtype}. For names in sorted classes write "
            "np.searchsorted(classes, gold), for instances from a file instances.gold_codes(classes)."
        )
    if array.ndim == axes + 1 and array.shape[-1] == 1 != num_annotators:
        array = array[..., 0]
    if array.ndim == axes + 1:
        # rows have a single 1, or are zeros
        one_hot = np.isin(array, (0, 1)).all() and (array.sum(axis=-1) <= 1).all()
        one_hot = one_hot and facts.has_classes and array.shape[-1] == num_classes
        if one_hot and num_classes == num_annotators:
            raise DataError(
                f"the array has {num_classes} columns of 0 and 1: one-hot truth, or labels of {num_annotators} "
                "annotators? Write the truth as codes, y.argmax(axis=-1), or labels as Annotations.from_dense(y)."
            )
        if not one_hot:
            return None
        known = array.max(axis=-1) > 0
        array = np.where(known, array.argmax(axis=-1), -1)
    if array.ndim != axes:
        return None
    if not facts.has_classes:
        gold = array.astype("float32")
    else:
        gold = np.where(np.isfinite(array), array, -1).astype("int32")
        if (gold != np.where(np.isfinite(array), array, -1)).any() or gold.min(initial=0) < -1:
            raise DataError(f"gold must be class codes 0 to {num_classes - 1}, -1 if unknown, of shape {facts.shape}")
        if gold.max(initial=0) >= num_classes:
            raise DataError(f"gold has the class code {gold.max()}, the model has classes 0 to {num_classes - 1}")
    if not facts.observed(gold).any():
        raise DataError("gold is empty: the truth of no task is known")
    return gold
