"""The recipe of `LIA`: EM, then the marginal likelihood."""

from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.losses import ExpectedLogLikelihood
from crowdzoo.training.data import ArrayData, BatchOrder, TrainingData
from crowdzoo.training.expectation import ExpectationStep, annotation_columns, answer_inputs, answers_of
from crowdzoo.training.phases import compile_temporarily, join_histories
from crowdzoo.training.recipes.descent import descend_on_matrices


def fit(model: keras.Model, data: ArrayData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """EM, then the marginal likelihood; see `crowdzoo.layers.LIA`, and `descend` for the arguments.

    The model's loss and metrics are replaced for EM and restored, so they must be registered with Keras.
    """
    layer = model.crowd
    first, epochs = kwargs.pop("initial_epoch", 0), kwargs.pop("epochs", 1)
    validation_data, callbacks = kwargs.pop("validation_data", None), kwargs.pop("callbacks", None) or []
    if layer.ridge:
        layer.weigh_penalties(*annotation_columns(data)[:2])

    answers = answers_of(data, layer.num_classes, "LIA" if layer.confidence else None)
    posteriors = answers.mean(data.num_tasks).astype("float32")
    e_step = ExpectationStep(data, posteriors, every=layer.epochs_per_round)
    batches = data.batches(**order, inputs=("annotators", "labels"), targets=posteriors, **answer_inputs(model, data))
    # an empty list, because None would keep the present metrics
    no_metrics: dict[str, Any] = {"metrics": [], "weighted_metrics": []}
    with compile_temporarily(model, loss=ExpectedLogLikelihood(), **no_metrics):
        history = model.fit_batches(
            batches, initial_epoch=first, epochs=epochs, callbacks=[e_step, *callbacks], **kwargs
        )
        stopped = model.stop_training
    if layer.marginal_epochs and not stopped:
        phase = {"initial_epoch": epochs, "epochs": epochs + layer.marginal_epochs}
        second_history = descend_on_matrices(
            model, data, order, **phase, validation_data=validation_data, callbacks=callbacks, **kwargs
        )
        history = join_histories(model, history, second_history)
    _keep_typical_tasks(model, data, order["batch_size"], order.get("sample_weight"))
    return history


def _keep_typical_tasks(model: keras.Model, data: TrainingData, batch_size: int, weights: np.ndarray | None) -> None:
    """Draws tasks of each class in proportion to the posteriors, and stores their difficulties in the layer."""
    typical = model.crowd.typical_difficulties
    posteriors = model.e_step(data, batch_size=batch_size)[0].astype("float64")
    posteriors *= 1.0 if weights is None else weights[:, None]
    posteriors += 1e-9 * posteriors.sum(axis=1, keepdims=True)  # a class without tasks gets arbitrary ones
    steps = (np.arange(typical.shape[0]) + 0.5) / typical.shape[0]
    # systematic sampling: [typical, K] task numbers
    chosen = np.stack([np.searchsorted(total, steps * total[-1]) for total in posteriors.cumsum(axis=0).T], axis=1)
    typical_rows = np.zeros(typical.shape, "float32")
    for x, _ in data.batches(batch_size, 0, shuffle=False, inputs=("tasks",)):
        place = {task: row for row, task in enumerate(np.asarray(x["tasks"]).tolist())}
        is_chosen = np.array([[task in place for task in row] for row in chosen.tolist()])
        if is_chosen.any():
            difficulties = ops.convert_to_numpy(model.crowd.difficulties(model.features_of(x["instances"])))
            row, truth = np.nonzero(is_chosen)
            typical_rows[row, truth] = difficulties[[place[task] for task in chosen[is_chosen].tolist()], truth]
    typical.assign(typical_rows)
