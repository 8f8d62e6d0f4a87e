"""What every training shares: putting a model together, and the fit with its checks."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from crowdzoo.label_kinds import label_kind
from crowdzoo.layers.rating_squared_error import RatingSquaredError
from crowdzoo.models.crowd_model import CrowdModel
from crowdzoo.tables.annotations import Annotations
from crowdzoo.training.faults import LOOKED_AT, StopAtNaN, check_weights, warn_if_one_class, warn_if_one_value
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.pair_rows import instances_of, pair_rows

__all__ = ["compiled_model", "fit_and_check", "labels_of", "paired"]


def paired(settings: Any, x: Any, annotations: Annotations | None, tasks: Any, line: str) -> tuple[Any, Any, Any]:
    """Instances, annotations of their rows, and the rows' ids; without ids where annotations are not learned from.

    Args:
        settings: with `method`.
        x: see `pair_rows`, as for the arguments that follow.
        annotations: labels, or None.
        tasks: ids of the rows of x.
        line: what to write instead, for messages.
    """
    if annotations is None or settings.method == AGGREGATED:
        return instances_of(x), annotations, None
    x, annotations = pair_rows(x, annotations, tasks, line=line)
    return x, annotations, annotations.tasks


def labels_of(targets: Annotations | np.ndarray) -> np.ndarray:
    """Labels that a model is trained towards, as a flat array: class codes, or ratings.

    Args:
        targets: annotations, one label distribution a task `[N, K]`, or one rating a task `[N, 1]`.
    """
    if isinstance(targets, Annotations):
        return targets.labels
    return targets[:, 0] if targets.shape[1] == 1 else targets.argmax(axis=1)


def compiled_model(settings: Any, base: Any, crowd: Any, unit: float = 1.0, features: str | None = None) -> CrowdModel:
    """A model out of its parts, ready to be trained.

    Args:
        settings: with `kind` and `learning_rate`.
        base: the base model.
        crowd: the crowd layer; None for method "aggregated".
        unit: standard deviation of ratings; see `rating_unit`.
        features: see `CrowdModel`.
    """
    model = CrowdModel(base, crowd, features=features, name="crowd_model")
    on_estimates = crowd is None and not label_kind(settings.kind).has_classes
    loss = RatingSquaredError(unit) if on_estimates else None
    model.compile(keras.optimizers.Adam(settings.learning_rate), loss=loss)
    return model


def fit_and_check(
    model: CrowdModel,
    settings: Any,
    x: Any,
    y: Any = None,
    *,
    tasks: Any = None,
    looked_at: Any = None,
    labels: np.ndarray | None = None,
    classes: Any = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: Any = 0,
) -> keras.callbacks.History:
    """Trains a compiled model, from arrays or from batches.

    Args:
        model: of `compiled_model`.
        settings: with `epochs`, `batch_size` and `seed`.
        x: as for `CrowdModel.fit`: instances, `TrainingData`, or batches.
        y: as for `CrowdModel.fit`.
        tasks: ids of the rows of x.
        looked_at: instances that the trained model is tried on, the first 1,024 or so; None tries nothing.
        labels: what it was trained towards: class codes, int `[n]` (negative ones do not count), or ratings, float
            `[n]` (NaN does not count).
        classes: names of the classes, for the warning.
        callbacks: Keras callbacks.
        verbose: Keras' verbosity.

    Returns:
        Keras' `History`.

    Raises:
        DataError: the loss or a weight became NaN or infinite.

    Warns:
        NotLearnedWarning: the trained model gives one answer to all instances, while their labels differ.
    """
    history = model.fit(
        x, y, tasks=tasks, epochs=settings.epochs, batch_size=settings.batch_size, seed=settings.seed,
        callbacks=[*callbacks, StopAtNaN()], verbose=verbose,
    )  # fmt: skip
    check_weights(model)
    if looked_at is None or labels is None:
        return history
    predicted = model.predict(looked_at[:LOOKED_AT], verbose=0)
    if label_kind(settings.kind).has_classes:
        warn_if_one_class(predicted.argmax(axis=1), labels, classes)
    else:
        warn_if_one_value(predicted[:, 0], labels)
    return history
