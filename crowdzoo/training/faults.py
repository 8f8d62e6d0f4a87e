"""Faults of training that Keras does not report: NaN losses, and models that learn nothing."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.errors import DataError, Setting
from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.metrics import lost_classes
from crowdzoo.training.data import TrainingData
from crowdzoo.training.phases import answers_of_batch

JUDGED = 5  # epochs after which a model that never predicts a class is reported
LOOKED_AT = 1024  # number of training examples whose predictions are checked
OTHERS = 0.01  # share of targets of other classes that makes one class for all a fault
MOVES = 0.01  # deviation of a regressor's predictions relative to the ratings', below which they are one value


class NotLearnedWarning(UserWarning):
    """A trained model predicts the same for all training examples, or never predicts a class."""


class StopAtNaN(keras.callbacks.Callback):
    """Raises an error when the loss is not a finite number.

    Raises:
        DataError: at the end of an epoch with such a loss.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Checks the mean loss of the epoch, which is NaN if that of any batch is."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(float(loss)):
            raise DataError(
                f"training: the loss of epoch {epoch + 1} is {float(loss)}. Lower {Setting('learning_rate')} (to a "
                "tenth), and look for extreme values in the features and ratings."
            )


def check_weights(model: keras.Model) -> None:
    """Rejects a model with weights that are not finite.

    Raises:
        DataError: names the first layer and weight that holds NaN or infinity.
    """
    for weight in model.weights:
        values = ops.convert_to_numpy(weight)
        if values.dtype.kind not in "biuOSU" and not np.isfinite(np.asarray(values, "float64")).all():
            count = int((~np.isfinite(np.asarray(values, "float64"))).sum())
            raise DataError(
                f"{count:,} of the {values.size:,} numbers of weight {weight.path!r} are NaN or infinite, so the model "
                f"cannot answer. Train it again with a lower {Setting('learning_rate')}."
            )


def warn_if_one_class(
    predicted: np.ndarray,
    targets: np.ndarray,
    classes: Sequence[object] | np.ndarray | None = None,
    what: str = "tasks",
) -> None:
    """Warns if a classifier or tagger predicts one class only and the data have more.

    Args:
        predicted: class codes of training examples, int `[n]`.
        targets: class codes of its training targets, int `[m]`; negative ones are ignored.
        classes: names, or None.
        what: name of the examples.

    Warns:
        NotLearnedWarning: all predictions are of one class, and at least a hundredth of the targets are of others.
    """
    if answers := _one_class(predicted, targets, classes, what):
        _warn(answers)


def _one_class(
    predicted: np.ndarray, targets: np.ndarray, classes: Sequence[object] | np.ndarray | None, what: str
) -> str:
    """Clause about a model that predicts one class only; empty if it predicts more, or if there are no others."""
    targets = targets[targets >= 0]
    if len(predicted) == 0 or len(targets) == 0 or (predicted != predicted[0]).any():
        return ""
    other_share = float((targets != predicted[0]).mean())
    if other_share < OTHERS:
        return ""
    name = predicted[0] if classes is None else classes[predicted[0]]
    return (
        f"class {str(name)!r} for all {len(predicted):,} training {what} checked, while {other_share:.1%} "
        "of the labels are of other classes"
    )


def is_judged(model: keras.Model) -> bool:
    """Whether `CrowdModel.fit` should look for lost classes, after enough epochs and for its kind of labels."""
    if model.crowd is None or len(getattr(getattr(model, "history", None), "epoch", ())) < JUDGED:
        return False
    # for pairs, "equal" is seldom the most probable
    of_classes = model.label_kind.one_class and not isinstance(model.base.input, dict)
    return of_classes or model.label_kind.has_tokens


def look_for_lost_classes(model: keras.Model, data: TrainingData, batch_size: int, **weights: Any) -> None:
    """Checks predictions of a trained `CrowdModel` for some training tasks; see `warn_if_classes_are_lost`."""
    predicted, votes, left = [], [], LOOKED_AT
    for x, _, *weight in data.batches(batch_size, 0, inputs=("labels",), **weights):
        labels = np.asarray(x["labels"])
        if weight:  # votes of weight 0 are not trained on
            counts = np.asarray(weight[0]).reshape(-1, *[1] * (labels.ndim - 1))
            labels = np.where(counts > 0, labels, -1)
        answers = answers_of_batch(model, x["instances"], len(labels)).argmax(axis=-1)
        predicted.append(answers[(labels >= 0).any(axis=-1)])
        votes.append(labels.ravel())
        left -= len(labels)
        if left <= 0:
            break
    classes = getattr(getattr(data, "annotations", None), "classes", None)
    warn_if_classes_are_lost(np.concatenate(predicted), np.concatenate(votes), model.crowd, classes)


def warn_if_classes_are_lost(
    predicted: np.ndarray, votes: np.ndarray, layer: CrowdLayer, classes: Sequence[object] | np.ndarray | None = None
) -> None:
    """Warns if a model never predicts a class with a fair share of the votes, or predicts one class only.

    Args:
        predicted: class codes of training tasks or tokens, int `[n]`.
        votes: annotators' labels of them, int, of any shape; negative ones are ignored.
        layer: the model's crowd layer.
        classes: names, or None.

    Warns:
        NotLearnedWarning: there are such classes (`crowdzoo.metrics.lost_classes`), or `warn_if_one_class` warns.
    """
    of_tokens = layer.label_kind.has_tokens
    unit = "tokens" if of_tokens else "tasks"
    votes_first, advice = "" if layer.num_majority_epochs else _votes_first(layer), _advice()
    if (predicted == predicted[:1]).all():
        answers = _one_class(predicted, votes, classes, unit)
        fault = f"{answers}: it has learned nothing else" if answers else ""
        if of_tokens:  # most are O, and often nothing else is learned without the votes
            votes_first = _votes_first(layer)
        fix = f"{votes_first} Or t{advice[1:]}" if votes_first else advice
    else:
        lost = lost_classes(predicted, votes, layer.num_classes or 0)
        names = ", ".join(repr(str(code if classes is None else classes[code])) for code in lost)
        share = float(np.isin(votes[votes >= 0], lost).mean())
        seen = f"none of the {len(predicted):,} training {unit} checked"
        votes_for = f"{share:.1%} of their votes are for {'it' if len(lost) == 1 else 'them'}"
        fault = f"{names} for {seen}, while {votes_for}" if len(lost) else ""
        fix = votes_first or advice
    if fault:
        warnings.warn(f"The trained model predicts {fault}. {fix}", NotLearnedWarning, stacklevel=4)


def _votes_first(layer: CrowdLayer) -> str:
    """How to train the base on the votes first, or for longer; empty if the layer's recipe does not do so."""
    if not layer.traits.starts_from_votes:
        return ""
    epochs = max(JUDGED, 4 * layer.num_majority_epochs)
    return (
        f"Train it on the votes {'for longer' if layer.num_majority_epochs else 'first'}: {type(layer).__name__}(..., "
        f"majority_epochs={epochs}); with crowdzoo train --set majority_epochs={epochs}; in a run method: "
        f"{{majority_epochs: {epochs}}}, next to its name."
    )


def warn_if_one_value(predicted: np.ndarray, targets: np.ndarray) -> None:
    """Warns if a regressor predicts nearly one value while the ratings differ.

    Args:
        predicted: predictions for training examples, float `[n]`.
        targets: training ratings, float `[m]`; NaN is ignored.

    Warns:
        NotLearnedWarning: the deviation of the predictions is less than a hundredth of the ratings'.
    """
    targets = targets[np.isfinite(targets)]
    if len(predicted) < 2 or len(targets) < 2:
        return
    deviation, spread = float(np.std(targets.astype("float64"))), float(np.std(predicted.astype("float64")))
    if deviation > 0 and spread < MOVES * deviation:
        _warn(
            f"nearly one value, {float(np.mean(predicted)):.4g}, for all {len(predicted):,} training tasks checked "
            f"(deviation {spread:.2g}), while the ratings have a deviation of {deviation:.2g}"
        )


def warn_if_one_score(scores: np.ndarray, labels: np.ndarray) -> None:
    """Warns if a network of scores predicts nearly one score while the comparisons differ.

    Args:
        scores: scores of training examples, in log-odds, float `[n]`.
        labels: training labels, codes of left, right and equal, int `[m]`.

    Warns:
        NotLearnedWarning: scores have a deviation below a hundredth, and both sides were preferred.
    """
    deviation = float(np.std(scores.astype("float64"))) if len(scores) else 0.0
    if len(scores) > 1 and deviation < MOVES and {0, 1} <= {*np.unique(labels).tolist()}:
        _warn(
            f"nearly one score, {float(np.mean(scores)):.4g}, for all {len(scores):,} training tasks checked "
            f"(deviation {deviation:.2g})"
        )


def _advice() -> str:
    size, epochs, rate = map(Setting, ("batch_size", "epochs", "learning_rate"))
    return f"Train with a smaller {size}, more {epochs}, or another {rate}."


def _warn(answers: str) -> None:
    """Warns the caller of the public function that trained the model."""
    text = f"The trained model predicts {answers}: it has learned nothing else. {_advice()}"
    warnings.warn(text, NotLearnedWarning, stacklevel=4)
