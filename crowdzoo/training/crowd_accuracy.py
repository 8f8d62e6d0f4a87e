"""The metric "accuracy" where a target may be annotators' labels, a distribution or the truth."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrowdAccuracy(keras.metrics.Mean):
    """Share of the labels that are the most probable ones; what is not labelled does not count.

    `CrowdModel.compile(metrics=["accuracy"])` makes it. Of annotators' labels it says how many of them the crowd layer
    predicts; of gold, how often the model's estimate is right.

    Args:
        name: the metric's name.
        dtype: dtype of its state.

    Call arguments:
        y_true: class codes of the shape of y_pred without its last axis, -1 where there is none; or distributions,
            shaped as y_pred, zeros where nothing is known. Targets of another shape do not count.
        y_pred: probabilities, log-probabilities or logits, the last axis K at least 2.
        sample_weight: `[B]` or None.
    """

    _direction = "up"  # for callbacks that monitor it

    def __init__(self, name: str = "accuracy", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Counts a batch; see the class."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if y_pred.shape[-1] == 1:
            raise ValueError("metrics: accuracy is for classes, and this model has one output")
        right = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        if len(y_true.shape) == len(y_pred.shape) - 1:
            truth, known = ops.cast(y_true, "int32"), y_true >= 0
        elif len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == y_pred.shape[-1]:
            truth, known = ops.cast(ops.argmax(y_true, axis=-1), "int32"), ops.max(y_true, axis=-1) > 0
        else:
            return
        weight = ops.cast(known, self.dtype)
        if sample_weight is not None:
            own = ops.cast(ops.convert_to_tensor(sample_weight), self.dtype)
            weight = weight * ops.reshape(own, (-1, *(1 for _ in weight.shape[1:])))
        super().update_state(ops.cast(right == truth, self.dtype), weight)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {"name": self.name, "dtype": self.dtype}
