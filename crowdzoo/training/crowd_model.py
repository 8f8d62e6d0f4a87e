"""A base model with a crowd layer: trained on annotators' labels, predicts the truth."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from crowdzoo.backend import Config, KerasBatches, Shapes, Tensor, as_strings
from crowdzoo.checks.constraints import SEED
from crowdzoo.data.label_kinds import CLASSIFICATION, REGRESSION, SEGMENTATION, SEQUENCE, LabelKind
from crowdzoo.errors import ConfigError
from crowdzoo.files.json import FORMAT_VERSION, check_format
from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.layers.ranges import BATCH, EPOCHS
from crowdzoo.losses import MaskedCrossentropy, MaskedCrowdMeanSquaredError
from crowdzoo.optimizers import LazyAdam
from crowdzoo.training.batches import TargetBatches
from crowdzoo.training.checkpoint import Checkpoint, keep_checkpoint
from crowdzoo.training.data import TrainingData
from crowdzoo.training.digest import digest_of
from crowdzoo.training.expectation import answers_of, e_step
from crowdzoo.training.faults import is_judged, look_for_lost_classes
from crowdzoo.training.fit_arguments import (
    check_shapes,
    crowd_arrays,
    evaluation_batches,
    hold_out,
    symbols,
    target_arrays,
    task_weights,
    token_ids,
)
from crowdzoo.training.gold_metric import CrowdAccuracy, GoldMetric
from crowdzoo.training.mask_data import MaskData
from crowdzoo.training.pair_rows import Examples, Labels, instances_of
from crowdzoo.training.phases import allow_training
from crowdzoo.training.recipes import recipe_of
from crowdzoo.training.sparse_batch import check_columns, has_annotators, sparse_batch
from crowdzoo.training.training_state import epoch_callbacks

if TYPE_CHECKING:
    import tensorflow as tf

# Calls that error messages suggest; see `pair_rows`
EVALUATE = "evaluate(x, annotations, tasks={})"
VALIDATION = "validation_data=({{'instances': x, 'tasks': {}}}, annotations)"
POSTERIORS = "posteriors(x, annotations, tasks={})"
CALIBRATED = "calibrated_confusions(x, annotations, tasks={})"


@keras.saving.register_keras_serializable(package="crowdzoo")
class CrowdModel(keras.Model):
    """A base model that estimates the truth, and a crowd layer that predicts what each annotator would answer.

    Training compares the crowd layer's answers with the annotations; `predict` returns the base's estimate, for which
    most crowd layers are not needed.

    Args:
        base: model from instances to the estimate: class probabilities `[B, K]` (sequences `[B, T, K]`, masks
            `[B, H, W, K]`, regression `[B, 1]`).
        crowd: crowd layer (any of `crowdzoo.layers`), or None to train the base on given targets, such as aggregated
            labels; then `fit(x, y)` takes distributions `[N, K]`.
        features: name of the base's layer whose output, flattened to `[B, D]`, is the features of an instance for crowd
            layers that use them (CoNAL, LIA; for masks `[B, H, W, D]`, SpatialConfusions); None passes the instances
            unchanged.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Attributes:
        annotators: names of the annotators that `fit` learnt from, by their codes; frames of labels are matched with
            them. Not saved in `.keras` files. None before `fit`.
        classes: names of the classes, as `annotators`; None for ratings.
        instances_shape: structure of shapes that the base was built with; None before it is built.
        bottleneck_shape: shape of the base's output; None before it is built.

    Call arguments:
        inputs: instances, for the estimate of the truth. Or `{"instances": ..., "annotators": ids}` with ids int
            `[B, M]`, -1 for padding, for the crowd layer's answers, `[B, M, K]` (`[B, T, M, K]`, `[B, M]`). With
            "labels" as well, int `[B, M]`, -1 where missing, for the output of `CrowdLayer.with_labels` (for most
            layers the log-joint `[B, K]`).

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.layers import CrowdsourcedLayer
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> truth = np.arange(40) % 2
        >>> x = np.eye(2, dtype="float32")[truth]
        >>> labels = np.stack([truth, truth, 1 - truth], axis=1)  # a row for each task, a column for each annotator
        >>> annotations = Annotations.from_dense(labels)
        >>> model = CrowdModel(FeatureClassifier(num_features=2, num_classes=2), CrowdsourcedLayer(num_annotators=3))
        >>> history = model.fit(x, annotations, tasks=np.arange(40), epochs=20, verbose=0)
        >>> model.predict(x, verbose=0).shape
        (40, 2)
    """

    bottleneck_shape: tuple[int | None, ...] | None = None
    _base_and_features: Callable[..., Any] | None = None
    _gold_metrics: Callable[[], list[GoldMetric]] = staticmethod(list)

    def __init__(self, base: keras.Model, crowd: CrowdLayer | None = None, features: str | None = None, **kwargs: Any):
        # base and crowd layer cast their inputs themselves; casting here would round the instances first
        super().__init__(autocast=False, **kwargs)
        self.base = base
        self.crowd = crowd
        self.features = features
        self.annotators: Any = None
        self.classes: Any = None
        self.instances_shape: Any = None
        self._checkpoint: Checkpoint | None = None
        self._evaluated = ""
        shape = getattr(base, "input_shape", None) if base.built else None
        if shape is not None:
            self.build(shape)

    # === Keras ===

    def build(self, input_shape: Shapes) -> None:
        """Creates all weights.

        Args:
            input_shape: shape of the instances, or the dictionary of the instances' and annotators' shapes.
        """
        shape = input_shape["instances"] if has_annotators(input_shape) else input_shape
        # a symbolic call builds any base and returns its output's shape, which `build` of a subclassed model does not
        tensors = symbols(shape)
        bottleneck = self.base(tensors)
        self.bottleneck_shape = bottleneck.shape
        if self.crowd is not None:
            self.crowd.check_probabilities(bottleneck)
            shapes = [bottleneck.shape]
            if self.crowd.traits.uses_features:
                self._base_and_features = self._with_features()
                shapes.append(self._base_and_features(tensors)[1].shape)
            if not self.crowd.built:
                self.crowd.build(*shapes)
        self.instances_shape = shape
        self.built = True

    def _with_features(self) -> Callable[..., Any]:
        """Function from instances to the bottleneck and the features `[B, D]`, in one pass through the base."""
        if self.features is None:

            def run_base(instances: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
                return self.base(instances, training=training), instances

        else:
            try:
                output = self.base.get_layer(self.features).output
                # only the function below refers to it: the model must not count the base's layers twice
                inputs = self.base.inputs
                run_base = keras.Model(inputs[0] if len(inputs) == 1 else inputs, [self.base.outputs[0], output])
            except (ValueError, AttributeError) as error:
                raise ValueError(
                    f"CrowdModel: features={self.features!r} must be the name of a layer of a functional or sequential "
                    f"base: {error}"
                ) from error

        def flattened(instances: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
            bottleneck, features = run_base(instances, training=training)
            features = ops.cast(features, keras.backend.result_type(self.variable_dtype, "float32"))
            if len(features.shape) == 2 or self.label_kind.has_pixels:
                return bottleneck, features
            return bottleneck, ops.reshape(features, (-1, int(np.prod(features.shape[1:]))))

        return flattened

    def call(self, inputs: Mapping[str, Tensor] | Tensor, training: bool = False) -> Tensor:
        """Returns the estimate of the truth or, given annotators, their answers; see the class."""
        if not has_annotators(inputs):
            bottleneck = self.base(inputs, training=training)
            return bottleneck if self.crowd is None else self.crowd.truth(bottleneck)
        if self.crowd is None:
            raise ValueError("CrowdModel: there is no crowd layer to predict annotators' answers")
        instances, annotators = inputs["instances"], inputs["annotators"]
        features = {}
        if self._base_and_features is None:
            bottleneck = self.base(instances, training=training)
        else:
            bottleneck, features["features"] = self._base_and_features(instances, training=training)
        if "labels" in inputs:
            return self.crowd.with_labels(bottleneck, annotators, inputs["labels"], **features)
        return self.crowd(bottleneck, annotators=annotators, training=training, **features)

    def get_config(self) -> Config:
        """Returns the serialised base and crowd layer."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "base": keras.saving.serialize_keras_object(self.base),
            "crowd": None if self.crowd is None else keras.saving.serialize_keras_object(self.crowd),
            "features": self.features,
            "format_version": FORMAT_VERSION,
        }

    @classmethod
    def from_config(cls, config: Config, custom_objects: Mapping[str, type] | None = None) -> "CrowdModel":
        """Creates a model with new weights from the result of `get_config`."""
        check_format(config.get("format_version"), "the configuration of CrowdModel")
        config = {name: value for name, value in config.items() if name != "format_version"}
        parts = {
            name: None if config[name] is None else keras.saving.deserialize_keras_object(config[name], custom_objects)
            for name in ("base", "crowd")
        }
        return cls(**{**config, **parts})

    def get_build_config(self) -> Config:
        """Returns the arguments of `build`, for loading."""
        return {"instances_shape": self.instances_shape}

    def build_from_config(self, config: Config) -> None:
        """Builds a model that is being loaded."""
        shape = config.get("instances_shape")
        if shape is not None and not self.built:
            self.build(shape)

    def compile_from_config(self, config: Config) -> None:
        """Compiles a loaded model as it was when saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    # === Loss and metrics ===

    def compile(
        self,
        optimizer: keras.optimizers.Optimizer | str | None = None,
        loss: keras.losses.Loss | Callable[..., Tensor] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures the model for training.

        Args:
            optimizer: a Keras optimizer or its name; None is Adam at 0.001.
            loss: None chooses the crowd layer's loss (`MaskedCrowdCrossentropy` for most, `MaskedCrowdMeanSquaredError`
                for regression); without a crowd layer the cross-entropy with the given distributions, or the squared
                error for one output.
            **kwargs: as for `keras.Model.compile`. Keras' own metrics, such as "accuracy", "AUC" or `F1Score`, compare
                the model's estimate with gold (`evaluate`, `validation_data`), with every method. They are not computed
                on annotators' labels. Custom metrics get the same inputs as the loss.

        Raises:
            ConfigError: a Keras loss, which would treat missing labels (-1) as a class; or "accuracy" for ratings.
        """
        if self.crowd is not None and (isinstance(loss, str) or _is_from_keras(loss)):
            name = loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", repr(loss)))
            raise ConfigError(
                f"compile: loss {name!r} compares with one truth per task, and this model learns from several "
                "annotators' labels. Write compile() without loss; the crowd layer has its own."
            )
        for name in ("metrics", "weighted_metrics"):
            if kwargs.get(name) is not None:
                kwargs[name] = keras.tree.map_structure(self._metric, kwargs[name])
        if kwargs.get("metrics") is not None or kwargs.get("weighted_metrics") is not None:  # else Keras keeps them
            gold_metrics = [metric for metric in keras.tree.flatten(kwargs) if isinstance(metric, GoldMetric)]
            self._gold_metrics = lambda: gold_metrics  # as a list, Keras would track them a second time
        optimizer = keras.optimizers.Adam(1e-3) if optimizer is None else optimizer
        super().compile(optimizer=optimizer, loss=self._default_loss() if loss is None else loss, **kwargs)
        # a weight that LazyAdam trained before would still give gradients of single rows; see take_rows
        lazy = isinstance(getattr(self.optimizer, "inner_optimizer", self.optimizer), LazyAdam)
        for variable in self.variables:
            variable.sparse_gradient = lazy

    def _metric(self, metric: keras.metrics.Metric | str) -> keras.metrics.Metric:
        """Wraps a metric so that it ignores missing truths."""
        if metric in ("accuracy", "acc"):
            if not self.label_kind.has_classes:
                raise ConfigError("compile: metric 'accuracy' is for classes. For ratings write metrics=['mae'].")
            metric = CrowdAccuracy(name=metric)
        if self.crowd is None or not (isinstance(metric, (str, CrowdAccuracy)) or _is_from_keras(metric)):
            return metric
        keras_metric = keras.metrics.get(metric)
        if not isinstance(keras_metric, keras.metrics.Metric):  # a function
            keras_metric = keras.metrics.MeanMetricWrapper(keras_metric, name=keras_metric.__name__)
        return GoldMetric(keras_metric, name=metric if isinstance(metric, str) else keras_metric.name)

    def compute_metrics(
        self, x: Tensor, y: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Computes the compiled metrics; on annotators' labels without those that compare with gold."""
        is_gold = self._is_gold(x, y, y_pred)
        for metric in self._gold_metrics():
            metric.counts = is_gold
        values = super().compute_metrics(x, y, y_pred, sample_weight)
        hidden = set() if is_gold else {metric.name for metric in self._gold_metrics()}
        return {name: value for name, value in values.items() if name not in hidden}

    @property
    def label_kind(self) -> LabelKind:
        """Kind of labels that the model estimates."""
        if self.crowd is not None:
            return self.crowd.label_kind
        shape = self.bottleneck_shape or ()
        kinds_by_rank = {3: SEQUENCE, 4: SEGMENTATION}
        return kinds_by_rank.get(len(shape), REGRESSION if shape[-1:] == (1,) else CLASSIFICATION)

    def _default_loss(self) -> keras.losses.Loss:
        if self.crowd is not None:
            return self.crowd.default_loss()
        if not self.label_kind.has_classes:
            return keras.losses.MeanSquaredError()
        return MaskedCrossentropy() if self.label_kind.has_positions else keras.losses.CategoricalCrossentropy()

    # Validation and evaluation may be on gold: then x is the instances alone, and y has no axis of classes

    def compute_loss(
        self,
        x: Tensor | None = None,
        y: Tensor | None = None,
        y_pred: Tensor | None = None,
        sample_weight: Tensor | None = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the compiled loss; on gold the cross-entropy of the model's estimate, or its squared error.

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
            # Keras builds the loss from an unchanged batch, before `train_step` gets one
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
            assert y_pred is not None  # gold is compared with predictions
            truth = ops.one_hot(ops.cast(y, "int32"), y_pred.shape[-1])
            loss = MaskedCrossentropy()(truth, y_pred, sample_weight)
        return sum((ops.sum(ops.cast(term, loss.dtype)) for term in self.losses), start=loss)

    def _is_gold(self, x: Tensor, y: Tensor, y_pred: Tensor) -> bool:
        if self.crowd is None or y is None or has_annotators(x) or not hasattr(y_pred, "shape"):
            return False
        return len(y.shape) == len(y_pred.shape) - 1

    # Keras' steps, which on JAX get a state as first argument

    def train_step(self, *args: Any) -> dict[str, Tensor]:
        """Trains on a batch, whose labels may have one column per annotator; see `keras.Model.train_step`."""
        batch = args[-1]
        if self.crowd is not None and not self.crowd.is_fitted_now:  # a recipe's batches already have this form
            batch = sparse_batch(self.crowd, batch)
            x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
            if not has_annotators(x) and hasattr(y, "shape"):
                check_columns(self.crowd, tuple(y.shape))
        return super().train_step(*args[:-1], batch)

    def test_step(self, *args: Any) -> dict[str, Tensor]:
        """Evaluates a batch, also on gold; see `keras.Model.test_step`."""
        return super().test_step(*args[:-1], sparse_batch(self.crowd, args[-1]))

    # === Training ===

    def fit(
        self,
        x: Examples | TrainingData | KerasBatches | None = None,
        y: Labels | None = None,
        *,
        tasks: ArrayLike | None = None,
        task: str | None = None,
        epochs: int = 1,
        batch_size: int = 32,
        seed: int = 0,
        shuffle: bool = True,
        validation_data: tuple | keras.utils.PyDataset | None = None,
        validation_split: float = 0.0,
        validation_batch_size: int | None = None,
        sample_weight: ArrayLike | None = None,
        class_weight: Mapping[int, float] | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: str | int = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on annotations.

        Args:
            x: instances `[N, ...]`; or instances with the ids of their rows: `{"instances": x, "tasks": ids}`,
                `crowdzoo.instances.Instances` or a pandas frame with a column `task`; or
                `{"instances": ..., "annotators": ids}` with ids int `[N, M]`, -1 for padding, and y their labels
                (`[N, M]`, sequences `[N, T, M]`, masks `[N, H, W, M]`); or, with y None, a `tf.data.Dataset`,
                `keras.utils.PyDataset` or generator of `({"instances": ..., "annotators": ids}, labels)` or of
                `(x, labels)` with one column per annotator; or `TrainingData`.
            y: `Annotations`; a pandas or polars frame with one row per annotation, which is read by
                `Annotations.from_frame`; or their dense form, int `[N, R]` with -1 where missing (regression float with
                NaN, sequences `[N, T, R]`, masks `[N, H, W, R]`), in the order of x. Tasks without labels are ignored.
                Without a crowd layer the targets, `[N, K]`.
            tasks: with `Annotations` or a frame, ids of the rows of x, `[N]`, in any order, including tasks without
                labels. Optional if x carries them, or if x has one row per task and the tasks are named 0..N-1.
            task: name of the column with the task ids, in the frame and in x if x is a frame; needed if it is not
                "task" or another usual name.
            epochs: passes over the data.
            batch_size: tasks in a batch.
            seed: seed of the order of the tasks. Weights and dropout depend on `keras.utils.set_random_seed`, called
                before the base is made; with both seeds, two runs on one CPU agree exactly.
            shuffle: whether to shuffle the tasks in each epoch.
            validation_data: `(x, y)` or `(x, y, sample_weight)` like the above, or a dataset; also `(x, gold)`, as in
                `evaluate`.
            validation_split: share of the last rows of x to hold out in place of `validation_data`.
            validation_batch_size: None is `batch_size`.
            sample_weight: weights of the rows of x, `[N]`, finite, 0 or more. They multiply a task's term in the loss,
                and its counts when EM estimates the annotators. As in Keras, the loss is still divided by the number of
                labels. Custom batches contain the weights, `(x, y, weights)`.
            class_weight: as in Keras, for a model without a crowd layer only.
            callbacks: Keras callbacks.
            checkpoint: folder in which the state is kept after each epoch. The same call in a new process, on a model
                made by the same code after `keras.utils.set_random_seed`, continues after the last saved epoch and ends
                with the same weights as one call. The folder is kept; remove it when the model is saved. With custom
                batches use `keras.callbacks.BackupAndRestore`. See `crowdzoo.training.checkpoint.Checkpoint`.
            verbose: as in Keras.
            **kwargs: further arguments of `keras.Model.fit`.

        Returns:
            Keras' `History`.

        Raises:
            DataError: rows of x cannot be matched with tasks, a labelled task has no row, labels are of another kind,
                or the number of annotators or classes differs from the model's.
            ConfigError: weights for a method that cannot weight tasks (`LayerTraits.accepts_sample_weight`), weights or
                `validation_split` for data that are not arrays, or a checkpoint of another training.

        Warns:
            NotLearnedWarning: after five epochs or more the model predicts one class for all tasks (tokens), or never
                predicts a class that has a fair share of the votes.
        """
        if not self.compiled:
            self.compile()
        epochs, batch_size = EPOCHS.checked("fit", "epochs", epochs), BATCH.checked("fit", "batch_size", batch_size)
        seed = SEED.checked("fit", "seed", seed)
        order: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "shuffle": shuffle}
        held_order: dict[str, Any] = {"batch_size": validation_batch_size or batch_size, "seed": seed, "shuffle": False}
        if self.crowd is not None and class_weight is not None:
            raise ConfigError(
                "fit: class_weight needs the tasks' classes, which are unknown here. Aggregate first and write "
                "CrowdModel(base).fit(x, result.posteriors, class_weight=...)."
            )
        data = x
        # the contents of validation batches are unknown
        validation = validation_data if isinstance(validation_data, (tuple, list)) else None
        identity: dict[str, Any] = {"callbacks": callbacks, "validation": validation, "epochs": epochs}
        if self.crowd is not None and (y is not None or isinstance(x, TrainingData)):
            data = x if isinstance(x, TrainingData) else crowd_arrays(self, x, y, tasks, task)
            if known := getattr(data, "annotations", None):
                self.annotators, self.classes = known.annotators, known.classes
        elif y is not None:
            data = target_arrays(self, x, y, sample_weight)
        weights: dict[str, Any] = {}  # with annotations; weights of targets are in `data`
        if sample_weight is not None and not isinstance(data, tuple):
            weights["sample_weight"] = task_weights(self.crowd, data, sample_weight)
            identity["sample_weight"] = digest_of(weights)
        if validation_split and validation_data is None:
            data, validation_data = hold_out(data, validation_split, held_order | weights)
            weights = {name: values[: data.num_tasks] for name, values in weights.items()}
        elif isinstance(validation_data, (tuple, list)) and len(validation_data) in (2, 3):
            column = task if hasattr(validation_data[1], "columns") else None
            validation_data = evaluation_batches(self, *validation_data, task=column, line=VALIDATION, **held_order)
        kwargs |= {"epochs": epochs, "validation_data": validation_data, "callbacks": callbacks, "verbose": verbose}
        if self.crowd is not None and isinstance(data, TrainingData):
            first = next(iter(data.batches(1, seed, shuffle=False, **weights)))[0]
            if not self.built:  # recipes need the sizes before the first step
                self(first)
            self.crowd.check_probabilities(self.base(first["instances"]))
            with allow_training(self.crowd), keep_checkpoint(self, checkpoint, data, **identity, **order):
                history = recipe_of(self.crowd)(self, data, order | weights, **kwargs)
            if is_judged(self):
                look_for_lost_classes(self, data, batch_size, **weights)
            return history
        if self.crowd is not None:  # batches made elsewhere
            self.crowd.check_training()
        batches = TargetBatches(*data, **order).for_keras() if isinstance(data, tuple) else data
        with keep_checkpoint(self, checkpoint, data, **identity, **order):
            return self.fit_batches(batches, class_weight=class_weight, **kwargs)

    def fit_batches(
        self, data: KerasBatches, callbacks: Sequence[keras.callbacks.Callback] | None = None, **kwargs: Any
    ) -> keras.callbacks.History:
        """Trains on the compiled loss by gradient descent over given batches, as `keras.Model.fit` does.

        Args:
            data: `tf.data.Dataset` or `keras.utils.PyDataset` of batches `(x, y)`, already shuffled if wanted.
            callbacks: Keras callbacks.
            **kwargs: as for `keras.Model.fit`.

        Returns:
            Keras' `History`.
        """
        pinned = epoch_callbacks(self, data)
        if pinned and not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = [*pinned, *keras.tree.flatten(callbacks or [])]
        try:
            if self._checkpoint is None:
                return super().fit(data, shuffle=False, callbacks=callbacks, **kwargs)
            return self._checkpoint.fit(super().fit, self, data, shuffle=False, callbacks=callbacks, **kwargs)
        except Exception as error:
            if "mismatch in the collective instance" not in str(error):
                raise
            raise ConfigError(
                "fit: TensorFlow mixes up the sums of two strategies in one process. Start again, make one "
                "tf.distribute.MirroredStrategy, and use its scope for every model."
            ) from error

    def evaluate(
        self,
        x: Examples | KerasBatches | None = None,
        y: Labels | None = None,
        *,
        tasks: ArrayLike | None = None,
        task: str | None = None,
        batch_size: int | None = None,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> float | list[float] | dict[str, float]:
        """Returns loss and metrics on annotators' labels or on gold.

        On gold, the model's estimate of the truth (see `predict`) is evaluated: the loss is its cross-entropy (for
        ratings the squared error, in their unit), and "accuracy" the share of correct estimates.

        Args:
            x: as in `fit`.
            y: labels as in `fit`; or gold: class codes `[N]` (sequences `[N, T]`, masks `[N, H, W]`), -1 where unknown,
                or one-hot `[N, K]` (`[N, T, K]`); true ratings `[N]`, NaN where unknown.
            tasks: ids of the rows of x, as in `fit`.
            task: a frame's column, as in `fit`.
            batch_size: tasks in a batch; None is 32.
            sample_weight: weights of the rows of x, `[N]`.
            **kwargs: as for `keras.Model.evaluate`.

        Returns:
            As `keras.Model.evaluate`.

        Raises:
            DataError: as in `fit`; gold that is not a class of the model, or is empty.
        """
        if y is None:
            spec = repr(getattr(x, "element_spec", None))
            if spec != self._evaluated:  # else TensorFlow would merge gold and labels into one tensor of unknown rank
                self.test_function, self._evaluated = None, spec
        else:
            order = {"batch_size": batch_size or 32, "seed": 0, "shuffle": False}
            x = evaluation_batches(self, x, y, sample_weight, tasks=tasks, task=task, line=EVALUATE, **order)
        results = super().evaluate(x, **kwargs)  # TensorFlow numbers if the layer has its own metrics
        return keras.tree.map_structure(lambda value: value if np.ndim(value) else float(value), results)

    # === Predictions ===

    def predict(self, x: Examples | KerasBatches, **kwargs: Any) -> np.ndarray:
        """Estimates the truth. Annotators in x are ignored.

        Args:
            x: instances `[N, ...]`, or a `tf.data.Dataset` of batches of instances or of batches as for `fit`.
            **kwargs: as for `keras.Model.predict`.

        Returns:
            The base's output: `[N, K]` probabilities, `[N, T, K]` for sequences, `[N, H, W, K]` for masks, `[N, 1]`
            for regression.
        """
        spec = getattr(x, "element_spec", None)  # of a tf.data.Dataset
        if has_annotators(spec[0] if isinstance(spec, tuple) else spec):
            x = cast("tf.data.Dataset", x).map(lambda inputs, *_: inputs["instances"])
        x = keras.tree.map_structure(as_strings, token_ids(self, instances_of(x)))
        if self.built:
            check_shapes(self, x)
        return super().predict(x, **kwargs)

    def posteriors(
        self,
        x: Examples | TrainingData,
        y: Labels | None = None,
        *,
        tasks: ArrayLike | None = None,
        task: str | None = None,
        batch_size: int = 256,
    ) -> np.ndarray:
        """Posterior of the truth given the instances and the annotators' labels.

        `q_i(k) ~ p_i(k) prod_r P(r says y_ir | truth k)` (Bayes' rule with the model's annotators).

        Args:
            x: instances, or `TrainingData`; as in `fit`.
            y: annotations, as in `fit`.
            tasks: ids of the rows of x, as in `fit`.
            task: a frame's column, as in `fit`.
            batch_size: tasks in a batch.

        Returns:
            float32 `[N, K]`, a row for each row of x, rows sum to one; for tasks without labels the estimate from the
            instance. For sequences `[N, T, K]`, T the length of the longest labelled one, with rows of zeros after a
            sentence's last labelled token. For masks `[N, H, W, K]`, for pixels without labels the estimate from the
            image.

        Raises:
            ValueError: there is no crowd layer, or one without a truth (`DoctorNet`).
            NotImplementedError: a custom crowd layer that does not model how labels depend on the truth.
        """
        self._crowd()
        if isinstance(x, TrainingData):
            return self.e_step(x, batch_size=batch_size)[0]
        data = crowd_arrays(self, x, y, tasks, task, POSTERIORS)
        posteriors = self.e_step(data, batch_size=batch_size)[0]
        if isinstance(data, MaskData):
            labelled = posteriors.any(axis=-1, keepdims=True)
            return posteriors if labelled.all() else np.where(labelled, posteriors, self.predict(data.x, verbose=0))
        unlabelled = np.flatnonzero(data.annotations.redundancy == 0)
        if len(unlabelled):
            rest = keras.tree.map_structure(lambda array: np.asarray(array)[unlabelled], data.x)
            estimates = self.predict(rest, verbose=0)
            posteriors[unlabelled] = estimates if data.num_tokens is None else estimates[:, : data.num_tokens]
        return posteriors

    def e_step(self, data: TrainingData, *, batch_size: int = 256) -> tuple[np.ndarray, float]:
        """Returns the posteriors of the annotated tasks, and the log-likelihood of their labels.

        Args:
            data: annotated tasks.
            batch_size: tasks in a batch.

        Returns:
            posteriors float32 `[N, K]` (sequences `[N, T, K]`, masks `[N, H, W, K]`, tokens and pixels independently),
            rows of zeros for tasks without labels; and the log-likelihood of all labels, in nats:
            `sum_i log sum_k p_i(k) prod_r P(r says y_ir | truth k)`.
        """
        self._crowd()
        return e_step(self, data, batch_size)

    # === Annotators ===

    def annotator_confusions(self) -> np.ndarray:
        """The label distribution of each annotator for each true class, float64 `[R, K, K]`; rows sum to one.

        For `CrowdsourcedLayer` this does not estimate how often an annotator is right: the layer applies a second
        softmax after that of the base, so the diagonal is too low by design. See `calibrated_confusions`.
        """
        return self._crowd().annotator_confusions()

    def calibrated_confusions(
        self,
        x: Examples | TrainingData,
        y: Labels | None = None,
        *,
        tasks: ArrayLike | None = None,
        task: str | None = None,
        batch_size: int = 256,
    ) -> np.ndarray:
        """Confusion matrix of each annotator, counted from their labels with the tasks' posteriors as weights.

        `sum_i q_i(k) 1[y_ir = l] / sum_i q_i(k) 1[r labelled i]`, with q from `posteriors`.

        Args:
            x: instances, or `TrainingData`; as in `fit`.
            y: annotations, as in `fit`.
            tasks: ids of the rows of x, as in `fit`.
            task: a frame's column, as in `fit`.
            batch_size: tasks in a batch.

        Returns:
            float64 `[R, K, K]`, `[annotator, true, said]`; rows sum to one, and are uniform if an annotator has no
            labels.

        Raises:
            ValueError: as `posteriors`.
        """
        crowd = self._crowd()
        data = x if isinstance(x, TrainingData) else crowd_arrays(self, x, y, tasks, task, CALIBRATED)
        posteriors = self.e_step(data, batch_size=batch_size)[0]
        rows = posteriors.reshape(-1, posteriors.shape[-1]).astype("float64")
        counts = answers_of(data, rows.shape[1]).expected_counts(rows, crowd.num_annotators)
        total = counts.sum(axis=2, keepdims=True)
        return np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / counts.shape[2])

    def log_confusions(self, x: Examples, annotators: np.ndarray) -> np.ndarray:
        """Log-probabilities of annotators' labels for given tasks and every possible truth.

        They differ between tasks for methods that use features of the instances (CoNAL, LIA).

        Args:
            x: instances `[B, ...]`.
            annotators: int `[B, M]`, annotator codes.

        Returns:
            float32 `[B, M, K, K]`, `[task, annotator, true, said]`.

        Raises:
            ValueError: there is no crowd layer, or one without a truth (`DoctorNet`).
            NotImplementedError: a custom crowd layer that does not model how labels depend on the truth.
        """
        crowd, codes = self._crowd(), ops.convert_to_tensor(np.asarray(annotators, dtype="int32"))
        if not crowd.traits.uses_features:
            return ops.convert_to_numpy(crowd.log_confusions(codes))
        return ops.convert_to_numpy(crowd.log_confusions(codes, self.features_of(x)))

    def features_of(self, x: Examples) -> Tensor:
        """Features of the instances that the crowd layer gets.

        Args:
            x: instances `[B, ...]`.

        Returns:
            A tensor `[B, D]`, float32 or wider.

        Raises:
            ValueError: the crowd layer does not use features of the instances.
        """
        if self._base_and_features is None:
            raise ValueError(f"{type(self._crowd()).__name__} does not use features of the instances")
        return self._base_and_features(x)[1]

    def annotator_scales(self) -> np.ndarray:
        """Factor of every annotator of a regression, float64 `[R]`."""
        return self._crowd().annotator_scales()

    def annotator_biases(self) -> np.ndarray:
        """Bias of every annotator of a regression, in the labels' unit, float64 `[R]`."""
        return self._crowd().annotator_biases()

    def _crowd(self) -> CrowdLayer:
        if self.crowd is None:
            raise ValueError("CrowdModel: there is no crowd layer that models the annotators")
        return self.crowd

    # === Export ===

    def export(self, path: str | Path, **kwargs: Any) -> Path:
        """Writes a TensorFlow SavedModel for serving; see `crowdzoo.export.export_model` for the arguments."""
        from crowdzoo.export.saved_model import export_model

        return export_model(self, path, **kwargs)


def _is_from_keras(function: Any) -> bool:
    """Whether a loss or a metric comes from Keras rather than from a user."""
    return getattr(function, "__module__", type(function).__module__).startswith("keras.")
