"""Metrics of a crowd model: accuracy on labels, and any Keras metric on gold."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Config, Tensor


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrowdAccuracy(keras.metrics.Mean):
    """Share of the labels that the model finds most probable; missing labels are ignored.

    `CrowdModel.compile(metrics=["accuracy"])` creates it. On annotators' labels it is the share that the crowd layer
    predicts; on gold the share of correct estimates.

    Args:
        name: the metric's name.
        dtype: dtype of its state.

    Call arguments:
        y_true: class codes of the shape of y_pred without its last axis, -1 where missing; or distributions, shaped as
            y_pred, zeros where unknown. Targets of other shapes are ignored.
        y_pred: probabilities, log-probabilities or logits, the last axis K at least 2.
        sample_weight: `[B]` or None.
    """

    _direction = "up"  # for callbacks that monitor it

    def __init__(self, name: str = "accuracy", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds a batch; see the class."""
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
            weights = ops.cast(ops.convert_to_tensor(sample_weight), self.dtype)
            weight = weight * ops.reshape(weights, (-1, *(1 for _ in weight.shape[1:])))
        super().update_state(ops.cast(right == truth, self.dtype), weight)


@keras.saving.register_keras_serializable(package="crowdzoo")
class GoldMetric(keras.metrics.Metric):
    """Computes a Keras metric on the tasks whose truth is known.

    `CrowdModel.compile(metrics=[...])` wraps each Keras metric in it.

    Args:
        metric: the metric. Metrics with "sparse" in their name, and `CrowdAccuracy`, get class codes; others get
            one-hot rows per task, or per token of a sequence (for ratings the number).
        **kwargs: arguments of `keras.metrics.Metric`.

    Attributes:
        counts: whether batches are gold; set by `CrowdModel`.

    Call arguments:
        y_true: class codes `[B]` (sequences `[B, T]`), -1 where unknown; ratings `[B]`, NaN where unknown.
        y_pred: the model's estimate, `[B, K]` (`[B, T, K]`, `[B, 1]`).
        sample_weight: `[B]` or None.
    """

    def __init__(self, metric: keras.metrics.Metric, **kwargs: Any):
        super().__init__(**{"name": metric.name, "dtype": metric.dtype, **kwargs})
        self.metric = metric
        self.counts, self._knows_shape = True, False
        if hasattr(metric, "_direction"):
            self._direction = metric._direction  # for callbacks that monitor it

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds a batch; see the class."""
        if not self.counts:
            return
        self._knows_shape = True
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        size = y_pred.shape[-1]
        known = y_true >= 0 if size > 1 else ~ops.isnan(y_true)
        weight = ops.cast(known, self.dtype)
        if sample_weight is not None:
            weights = ops.cast(ops.convert_to_tensor(sample_weight), self.dtype)
            weight = weight * ops.reshape(weights, (-1, *(1 for _ in weight.shape[1:])))
        truth = ops.reshape(ops.where(known, y_true, ops.zeros_like(y_true)), (-1,))
        names = f"{type(self.metric).__name__} {self.name}".lower()
        if size == 1:
            truth = truth[:, None]
        elif not (isinstance(self.metric, CrowdAccuracy) or "sparse" in names):
            truth = ops.one_hot(ops.cast(truth, "int32"), size)
        self.metric.update_state(truth, ops.reshape(y_pred, (-1, size)), ops.reshape(weight, (-1,)))

    def result(self) -> Tensor:
        """The metric's result; 0 before the first gold, when some metrics do not know its shape."""
        # not by `counts`, which is set when a graph is traced
        return self.metric.result() if self._knows_shape else 0.0

    def reset_state(self) -> None:
        """Resets the metric."""
        self.metric.reset_state()

    def get_config(self) -> Config:
        """Returns the serialised metric."""
        return {"metric": keras.saving.serialize_keras_object(self.metric), "name": self.name}

    @classmethod
    def from_config(cls, config: Config) -> "GoldMetric":
        """Creates a metric from the result of `get_config`."""
        return cls(keras.saving.deserialize_keras_object(config["metric"]), name=config["name"])
