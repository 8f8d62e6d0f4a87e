"""What a model learns from and is compared with: annotators' labels, given targets, or the truth."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from crowdzoo.data.label_kinds import CLASSIFICATION, REGRESSION, SEGMENTATION, SEQUENCE, LabelKind
from crowdzoo.errors import ConfigError
from crowdzoo.losses import MaskedCrossentropy, MaskedCrowdMeanSquaredError
from crowdzoo.optimizers.lazy_adam import LazyAdam
from crowdzoo.training.gold_metric import CrowdAccuracy, GoldMetric
from crowdzoo.training.sparse_batch import check_columns, has_annotators, sparse_batch


class ComparedModel(keras.Model):
    """Parent of `CrowdModel`: its loss, its metrics and its steps.

    Attributes:
        crowd: the crowd layer, or None.
        bottleneck_shape: shape of the base's output; None before it is built.
    """

    crowd: Any
    bottleneck_shape: tuple[int | None, ...] | None = None
    _gold_metrics: Callable[[], list[GoldMetric]] = staticmethod(list)

    def compile(self, optimizer: Any = None, loss: Any = None, **kwargs: Any) -> None:
        """Sets up training.

        Args:
            optimizer: a Keras optimizer or its name; None is Adam at 0.001.
            loss: None is the right one: the crowd layer's own (`MaskedCrowdCrossentropy` for most, for regression
                `MaskedCrowdMeanSquaredError`); without a crowd layer cross-entropy to the given distributions, or
                squared error for one output.
            **kwargs: as for `keras.Model.compile`. Keras' own metrics, such as "accuracy", "AUC" or `F1Score`, compare
                the model's estimate with gold (`evaluate`, `validation_data`), with every method. On annotators' labels
                a model with a crowd layer has none. A metric of your own gets what the loss gets.

        Raises:
            ConfigError: a loss of Keras', which would take missing labels (-1) for a class; or "accuracy" of ratings.
        """
        if self.crowd is not None and (isinstance(loss, str) or _is_of_keras(loss)):
            named = loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", repr(loss)))
            raise ConfigError(
                f"compile: loss {named!r} compares with one truth a task, and this model learns from several "
                "annotators' labels. Write compile() without loss; the crowd layer has its own."
            )
        for name in ("metrics", "weighted_metrics"):
            if kwargs.get(name) is not None:
                kwargs[name] = keras.tree.map_structure(self._metric, kwargs[name])
        if kwargs.get("metrics") is not None or kwargs.get("weighted_metrics") is not None:  # else Keras keeps them
            of_gold = [each for each in keras.tree.flatten(kwargs) if isinstance(each, GoldMetric)]
            self._gold_metrics = lambda: of_gold  # as a list they would be the model's metrics once more
        optimizer = keras.optimizers.Adam(1e-3) if optimizer is None else optimizer
        super().compile(optimizer=optimizer, loss=self._default_loss() if loss is None else loss, **kwargs)
        # a weight that LazyAdam trained before would go on giving gradients of single rows; see take_rows
        lazy = isinstance(getattr(self.optimizer, "inner_optimizer", self.optimizer), LazyAdam)
        for variable in self.variables:
            variable.sparse_gradient = lazy

    def _metric(self, metric: Any) -> Any:
        """A metric that knows which truths are missing."""
        if metric in ("accuracy", "acc"):
            if not self.label_kind.has_classes:
                raise ConfigError("compile: metric 'accuracy' is for classes. Of ratings write metrics=['mae'].")
            metric = CrowdAccuracy(name=metric)
        if self.crowd is None or not (isinstance(metric, (str, CrowdAccuracy)) or _is_of_keras(metric)):
            return metric
        found = keras.metrics.get(metric)
        if not isinstance(found, keras.metrics.Metric):  # a function
            found = keras.metrics.MeanMetricWrapper(found, name=found.__name__)
        return GoldMetric(found, name=metric if isinstance(metric, str) else found.name)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The compiled metrics; on annotators' labels without those that compare with gold."""
        is_gold = self._is_gold(x, y, y_pred)
        for metric in self._gold_metrics():
            metric.counts = is_gold
        found = super().compute_metrics(x, y, y_pred, sample_weight)
        hidden = set() if is_gold else {metric.name for metric in self._gold_metrics()}
        return {name: value for name, value in found.items() if name not in hidden}

    @property
    def label_kind(self) -> LabelKind:
        """Kind of labels that the model estimates."""
        if self.crowd is not None:
            return self.crowd.label_kind
        shape = self.bottleneck_shape or ()
        of_places = {3: SEQUENCE, 4: SEGMENTATION}
        return of_places.get(len(shape), REGRESSION if shape[-1:] == (1,) else CLASSIFICATION)

    def _default_loss(self) -> keras.losses.Loss:
        if self.crowd is not None:
            return self.crowd.default_loss()
        if not self.label_kind.has_classes:
            return keras.losses.MeanSquaredError()
        return MaskedCrossentropy() if self.label_kind.has_positions else keras.losses.CategoricalCrossentropy()

    # Validation and evaluation may be on gold: then x is the instances alone, and y has no axis of classes

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss; on gold cross-entropy of the model's estimate, or its squared error.

        Args:
            x: a batch of the model's inputs.
            y: labels, targets or gold of the batch.
            y_pred: output of the model.
            sample_weight: `[B]` or None.
            training: whether the model is being trained.

        Returns:
            A scalar.
        """
        if self.crowd is not None and not (self.crowd.is_fitted_now or has_annotators(x)):
            # Keras makes the loss from a batch as it came, before `train_step` sees one
            x, y, _ = keras.utils.unpack_x_y_sample_weight(sparse_batch(self.crowd, (x, y)))
            if has_annotators(x):
                y_pred = self(x, training=training)
            elif y is not None and len(y.shape) != self.label_kind.axes:
                check_columns(self.crowd, tuple(y.shape))
        if not self._is_gold(x, y, y_pred):
            return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        if not self.label_kind.has_classes:
            loss = MaskedCrowdMeanSquaredError()(ops.expand_dims(y, axis=-1), y_pred, sample_weight)
        else:
            truth = ops.one_hot(ops.cast(y, "int32"), y_pred.shape[-1])
            loss = MaskedCrossentropy()(truth, y_pred, sample_weight)
        return sum((ops.sum(ops.cast(more, loss.dtype)) for more in self.losses), start=loss)

    def _is_gold(self, x: Any, y: Any, y_pred: Any) -> bool:
        if self.crowd is None or y is None or has_annotators(x) or not hasattr(y_pred, "shape"):
            return False
        return len(y.shape) == len(y_pred.shape) - 1

    # Keras' steps, which on JAX get a state before the batch

    def train_step(self, *args: Any) -> Any:
        """A step on a batch, whose labels may have a column an annotator; see `keras.Model.train_step`."""
        batch = args[-1]
        if self.crowd is not None and not self.crowd.is_fitted_now:  # a recipe's batches are as they should be
            batch = sparse_batch(self.crowd, batch)
            x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
            if not has_annotators(x) and hasattr(y, "shape"):
                check_columns(self.crowd, tuple(y.shape))
        return super().train_step(*args[:-1], batch)

    def test_step(self, *args: Any) -> Any:
        """The same for evaluation, also on gold; see `keras.Model.test_step`."""
        return super().test_step(*args[:-1], sparse_batch(self.crowd, args[-1]))

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Sets up a loaded model's training as it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)


def _is_of_keras(given: Any) -> bool:
    """Whether a loss or a metric is Keras' own, and not one of a user."""
    return getattr(given, "__module__", type(given).__module__).startswith("keras.")
