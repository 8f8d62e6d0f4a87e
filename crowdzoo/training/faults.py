"""What can go wrong in training without an error in Keras: losses that are not numbers, models that learn nothing."""

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
LOOKED_AT = 1024  # training examples whose predictions are looked at
OTHERS = 0.01  # share of targets of other classes from which on one class for all is a fault
MOVES = 0.01  # deviation of a regressor's answers, as a share of the ratings', below which they are one value


class NotLearnedWarning(UserWarning):
    """A trained model gives the same answer for every example it was trained on, or gives a class to none."""


class StopAtNaN(keras.callbacks.Callback):
    """Ends training with an error when the loss is no longer a finite number.

    Raises:
        DataError: at the end of such an epoch.
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
    """Refuses a model with weights that are not finite.

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
    """Warns where a classifier or tagger knows one class and the data have more.

    Args:
        predicted: class codes of training examples, int `[n]`.
        targets: class codes that it was trained towards, int `[m]`; negative ones do not count.
        classes: names, or None.
        what: name of the examples.

    Warns:
        NotLearnedWarning: all predictions are of one class, and a hundredth of the targets or more are of others.
    """
    if answers := _one_class(predicted, targets, classes, what):
        _warn(answers)


def _one_class(
    predicted: np.ndarray, targets: np.ndarray, classes: Sequence[object] | np.ndarray | None, what: str
) -> str:
    """What a model gives that knows one class; empty where it knows more, or there are no others to know."""
    targets = targets[targets >= 0]
    if len(predicted) == 0 or len(targets) == 0 or (predicted != predicted[0]).any():
        return ""
    other_share = float((targets != predicted[0]).mean())
    if other_share < OTHERS:
        return ""
    name = predicted[0] if classes is None else classes[predicted[0]]
    return (
        f"the one class {str(name)!r} to all {len(predicted):,} training {what} looked at, while {other_share:.1%} "
        "of the labels are of other classes"
    )


def is_judged(model: keras.Model) -> bool:
    """Whether a `CrowdModel` was just trained long enough for its `fit` to look for lost classes, by its kind too."""
    if model.crowd is None or len(getattr(getattr(model, "history", None), "epoch", ())) < JUDGED:
        return False
    # of a pair "equal" is seldom the most probable
    of_classes = model.label_kind.one_class and not isinstance(model.base.input, dict)
    return of_classes or model.label_kind.has_tokens


def look_for_lost_classes(model: keras.Model, data: TrainingData, batch_size: int, **weights: Any) -> None:
    """Looks at some training tasks of a trained `CrowdModel`; see `warn_if_classes_are_lost`."""
    predicted, votes, left = [], [], LOOKED_AT
    for x, _, *weight in data.batches(batch_size, 0, inputs=("labels",), **weights):
        labels = np.asarray(x["labels"])
        if weight:  # votes of weight 0 are not learned from
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
    """Warns where a model never gives a class that a fair share of the votes is for, or gives one to everything.

    Args:
        predicted: class codes of training tasks or tokens, int `[n]`.
        votes: annotators' labels of them, int, of any shape, negative ones do not count.
        layer: the model's crowd layer.
        classes: names, or None.

    Warns:
        NotLearnedWarning: there are such classes (`crowdzoo.metrics.lost_classes`), or `warn_if_one_class` warns.
    """
    of_tokens = layer.label_kind.has_tokens
    what = "tokens" if of_tokens else "tasks"
    votes_first, advice = "" if layer.num_majority_epochs else _votes_first(layer), _advice()
    if (predicted == predicted[:1]).all():
        answers = _one_class(predicted, votes, classes, what)
        fault = f"{answers}: it has learned nothing beyond that" if answers else ""
        if of_tokens:  # most are O, which is easily all that is learned without the votes
            votes_first = _votes_first(layer)
        way_out = f"{votes_first} Or t{advice[1:]}" if votes_first else advice
    else:
        lost = lost_classes(predicted, votes, layer.num_classes or 0)
        names = ", ".join(repr(str(code if classes is None else classes[code])) for code in lost)
        share = float(np.isin(votes[votes >= 0], lost).mean())
        seen = f"none of the {len(predicted):,} training {what} looked at"
        votes_for = f"{share:.1%} of their votes are for {'it' if len(lost) == 1 else 'them'}"
        fault = f"{names} to {seen}, while {votes_for}" if len(lost) else ""
        way_out = votes_first or advice
    if fault:
        warnings.warn(f"The trained model gives {fault}. {way_out}", NotLearnedWarning, stacklevel=4)


def _votes_first(layer: CrowdLayer) -> str:
    """How to train the base on the votes first, or for longer; empty where the layer's recipe does not."""
    if not layer.traits.starts_from_votes:
        return ""
    epochs = max(JUDGED, 4 * layer.num_majority_epochs)
    return (
        f"Train it on the votes {'for longer' if layer.num_majority_epochs else 'first'}: {type(layer).__name__}(..., "
        f"majority_epochs={epochs}); with crowdzoo train --set majority_epochs={epochs}; in a run method: "
        f"{{majority_epochs: {epochs}}}, next to its name."
    )


def warn_if_one_value(predicted: np.ndarray, targets: np.ndarray) -> None:
    """Warns where a regressor says nearly the same of everything and the ratings differ.

    Args:
        predicted: of training examples, float `[n]`.
        targets: ratings that it was trained towards, float `[m]`, NaN does not count.

    Warns:
        NotLearnedWarning: predictions have less than a hundredth of the ratings' deviation.
    """
    targets = targets[np.isfinite(targets)]
    if len(predicted) < 2 or len(targets) < 2:
        return
    deviation, spread = float(np.std(targets.astype("float64"))), float(np.std(predicted.astype("float64")))
    if deviation > 0 and spread < MOVES * deviation:
        _warn(
            f"nearly one value, {float(np.mean(predicted)):.4g}, to all {len(predicted):,} training tasks looked at "
            f"(deviation {spread:.2g}), while the ratings have a deviation of {deviation:.2g}"
        )


def warn_if_one_score(scores: np.ndarray, labels: np.ndarray) -> None:
    """Warns where a network of scores says nearly the same of everything and the comparisons differ.

    Args:
        scores: of training examples, in log odds, float `[n]`.
        labels: what it was trained towards, codes of left, right and equal, int `[m]`.

    Warns:
        NotLearnedWarning: scores have a deviation below a hundredth, and both sides were preferred.
    """
    deviation = float(np.std(scores.astype("float64"))) if len(scores) else 0.0
    if len(scores) > 1 and deviation < MOVES and {0, 1} <= {*np.unique(labels).tolist()}:
        _warn(
            f"nearly one score, {float(np.mean(scores)):.4g}, to all {len(scores):,} training tasks looked at "
            f"(deviation {deviation:.2g})"
        )


def _advice() -> str:
    size, epochs, rate = map(Setting, ("batch_size", "epochs", "learning_rate"))
    return f"Train with a smaller {size}, more {epochs}, or another {rate}."


def _warn(answers: str) -> None:
    """Warns the caller of the public function, who trained the model."""
    text = f"The trained model gives {answers}: it has learned nothing beyond that. {_advice()}"
    warnings.warn(text, NotLearnedWarning, stacklevel=4)
