"""The recipes of `DeepEM` and `RatingEM`: an E-step between epochs, and the annotators' part in closed form."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from crowdzoo.layers.deep_em import DeepEM
from crowdzoo.layers.rating_em import Ratings
from crowdzoo.training.data import BatchOrder, TrainingData, answer_shape
from crowdzoo.training.expectation import Answers, ExpectationStep, annotation_columns, answers_of
from crowdzoo.training.phases import answers_of_batch


def fit(model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """EM; see `descend`. The history contains `log_likelihood` of all labels before the round, in nats."""
    layer = model.crowd

    def rounds(answers: Answers, posteriors: np.ndarray) -> ExpectationStep:
        step = maximisation(layer, answers, order.get("sample_weight"))
        return ExpectationStep(data, posteriors, every=layer.epochs_per_round, after=step)

    return fit_rounds(model, data, order, rounds, **kwargs)


def maximisation(
    layer: DeepEM, answers: Answers, weights: np.ndarray | None = None
) -> Callable[[np.ndarray, bool], None]:
    """The M-step of the matrices, with weights of the tasks `[N]` or None; see `after` of `ExpectationStep`."""

    def maximise(posteriors: np.ndarray, first: bool) -> None:
        rows = posteriors.reshape(-1, posteriors.shape[-1])
        if weights is not None:  # a task has one row per place
            rows = rows * np.repeat(weights, len(rows) // len(weights))[:, None]
        # labels do not need the present matrices, and mean answers have none yet
        confusions = None if first or not layer.confidence else layer.annotator_confusions()
        layer.update(answers.expected_counts(rows, layer.num_annotators, confusions))

    return maximise


def fit_rounds(
    model: keras.Model, data: TrainingData, order: BatchOrder, rounds: Callable[..., ExpectationStep], **kwargs: Any
) -> keras.callbacks.History:
    """Epochs on posteriors that start as the shares of the votes.

    Args:
        model: a compiled `CrowdModel`.
        data: `crowdzoo.models.TrainingData`.
        order: `batch_size`, `seed` and `shuffle`, and `sample_weight` where tasks have weights.
        rounds: function of all answers and the posteriors that returns the callback between epochs.
        **kwargs: as for `keras.Model.fit`.
    """
    layer = model.crowd
    answers = answers_of(data, layer.num_classes or 1, type(layer).__name__ if layer.confidence else None)
    shape = answer_shape(data)
    posteriors = answers.mean(int(np.prod(shape))).astype("float32").reshape(*shape, -1)
    callbacks = [rounds(answers, posteriors), *keras.tree.flatten(kwargs.pop("callbacks", None) or [])]
    batches = data.batches(**order, inputs=("annotators", "labels"), targets=posteriors)
    return model.fit_batches(batches, callbacks=callbacks, **kwargs)


def fit_ratings(model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """EM of ratings, whose network learns posterior means; see `descend`.

    The history contains `log_likelihood` of all ratings before the round given the network, in nats of standardised
    ratings.
    """
    layer = model.crowd
    columns = Ratings(*annotation_columns(data))
    if "sample_weight" in order:
        columns = columns._replace(weights=order["sample_weight"][columns.tasks])
    targets = layer.start_from(data.num_tasks, columns)

    def e_step() -> tuple[np.ndarray, float]:
        means = np.zeros(data.num_tasks)
        for x, _ in data.batches(256, 0, shuffle=False, inputs=("tasks",)):
            rows = np.asarray(x["tasks"])
            means[rows] = answers_of_batch(model, x["instances"], len(rows))[:, 0]
        return layer.update(means, columns)

    step = ExpectationStep(data, targets, every=layer.epochs_per_round, e_step=e_step)
    callbacks = [step, *keras.tree.flatten(kwargs.pop("callbacks", None) or [])]
    return model.fit_batches(data.batches(**order, inputs=(), targets=targets), callbacks=callbacks, **kwargs)
