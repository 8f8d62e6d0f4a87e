"""Steps of every training: building a model, and fitting it with checks."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.backend import KerasBatches
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import DataError
from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.losses import RatingSquaredError
from crowdzoo.training.checkpoint import Checkpoint
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.data import TrainingData
from crowdzoo.training.faults import (
    StopAtNaN,
    check_weights,
    is_judged,
    warn_if_one_class,
    warn_if_one_score,
    warn_if_one_value,
)
from crowdzoo.training.methods import AGGREGATED, create_crowd_layer
from crowdzoo.training.pair_rows import Examples, instances_of, pair_rows
from crowdzoo.training.settings import Settings


def pair_with_tasks(
    settings: Settings, x: Examples, annotations: Annotations | None, tasks: ArrayLike | None, line: str
) -> tuple[Any, Any, Any]:
    """Returns instances, annotations of their rows, and the rows' ids (None if the method does not use annotations).

    For pairs every method needs annotations, which define the pairs.

    Args:
        settings: with `method`.
        x: see `pair_rows`, as for the following arguments.
        annotations: labels, or None.
        tasks: ids of the rows of x.
        line: call that messages suggest.

    Raises:
        DataError: the method needs annotations that are missing; or see `pair_rows`.
    """
    if settings.method == AGGREGATED and not label_kind(settings.kind).has_pairs:
        return instances_of(x), annotations, None
    if annotations is None:
        raise DataError(f"method {settings.method} needs annotations")
    x, annotations = pair_rows(x, annotations, tasks, line=line)
    return x, annotations, annotations.tasks


def crowd_of(settings: Any, num_annotators: int, num_classes: int, **scale: Any) -> CrowdLayer | None:
    """The crowd layer of the settings' method; see `create_crowd_layer`."""
    sizes = num_annotators, num_classes
    return create_crowd_layer(settings.method, *sizes, settings.arguments, kind=settings.kind, **scale)


def compile_model(
    settings: Settings, base: keras.Model, crowd: CrowdLayer | None, unit: float = 1.0, features: str | None = None
) -> CrowdModel:
    """Builds and compiles a model from its parts.

    Args:
        settings: with `kind`, `learning_rate`, `gradient_accumulation_steps` and `jit_compile`.
        base: the base model.
        crowd: the crowd layer; None for method "aggregated".
        unit: standard deviation of ratings; see `rating_unit`.
        features: see `CrowdModel`.
    """
    model = CrowdModel(base, crowd, features=features, name="crowd_model")
    on_estimates = crowd is None and label_kind(settings.kind).has_numbers
    loss = RatingSquaredError(unit) if on_estimates else None
    steps = settings.gradient_accumulation_steps
    optimizer = keras.optimizers.Adam(settings.learning_rate, gradient_accumulation_steps=steps if steps > 1 else None)
    model.compile(optimizer, loss=loss, jit_compile="auto" if settings.jit_compile is None else settings.jit_compile)
    return model


def fit_and_check(
    model: CrowdModel,
    settings: Any,
    data: TrainingData | KerasBatches,
    *,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: str | int = 0,
) -> keras.callbacks.History:
    """Trains a compiled model.

    Args:
        model: result of `compile_model`.
        settings: with `epochs`, `batch_size` and `seed`.
        data: `TrainingData`, or batches.
        callbacks: Keras callbacks.
        checkpoint: folder in which the state is saved after each epoch.
        verbose: Keras' verbosity.

    Returns:
        Keras' `History`.

    Raises:
        DataError: the loss or a weight became NaN or infinite.
    """
    history = model.fit(
        data,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seed=settings.seed,
        callbacks=[*callbacks, StopAtNaN()],
        checkpoint=checkpoint,
        verbose=verbose,
    )
    check_weights(model)
    return history


def check_answers(
    model: CrowdModel, kind: str, x: Examples, labels: np.ndarray, classes: Sequence[object] | np.ndarray | None = None
) -> None:
    """Checks a trained model's predictions for a few instances.

    Args:
        model: the model.
        kind: kind of label.
        x: instances as the model's input; for pairs single instances, as the scorer's input.
        labels: its training labels: class codes or ratings, of any shape.
        classes: names of the classes, or None.

    Warns:
        NotLearnedWarning: the model predicts the same for all instances, while their labels differ.
    """
    if label_kind(kind).has_pairs:
        warn_if_one_score(CrowdModel(model.base.scorer).predict(x, verbose=0)[:, 0], labels)
        return
    predicted = model.predict(x, verbose=0)
    if label_kind(kind).has_classes:
        if not is_judged(model):
            warn_if_one_class(predicted.argmax(axis=1), labels, classes)
    else:
        warn_if_one_value(predicted[:, 0], labels)
