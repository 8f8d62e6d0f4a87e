"""The recipe of `DoctorNet`: heads first, then, where they are wanted, the heads' weights."""

import copy
from typing import Any

import keras
import numpy as np

from crowdzoo.layers.doctor_net import VoteShareCrossentropy
from crowdzoo.training.data import BatchOrder, TrainingData, answer_shape
from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.phases import compile_temporarily, join_histories
from crowdzoo.training.recipes.descent import descend


def fit(
    model: keras.Model, data: TrainingData, order: BatchOrder, *, epochs: int = 1, initial_epoch: int = 0, **kwargs: Any
) -> keras.callbacks.History:
    """Trains the heads, then, where they are wanted, the weights; see `descend`.

    Epochs of the second phase continue the count of the first, also where a callback ended it early. It gets copies of
    the callbacks as they were before the first, for which no loss of the first is the best so far.
    """
    layer = model.crowd
    tasks, annotators, _ = annotation_columns(data)
    if "sample_weight" in order:  # a head of tasks of weight 0 alone is not trained
        places = np.prod(answer_shape(data)[1:], dtype=int)
        annotators = annotators[order["sample_weight"][tasks // places] > 0]
    layer.count_labels(np.bincount(annotators, minlength=layer.num_annotators))
    # copied before the first phase: a callback may change the learning rate in it, and remembers its best loss
    optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    callbacks = [copy.copy(callback) for callback in keras.tree.flatten(kwargs.get("callbacks") or [])]
    history = descend(model, data, order, epochs=epochs, initial_epoch=initial_epoch, **kwargs)
    if layer.log_weight is None:
        return history
    start = initial_epoch + len(history.epoch)
    weight_epochs = epochs - initial_epoch if layer.weight_epochs is None else layer.weight_epochs
    settings = {**kwargs, "callbacks": callbacks, "epochs": start + weight_epochs, "initial_epoch": start}
    weights_alone = {"frozen": (model.base, layer.kernel, layer.bias), "trained": (layer.log_weight,)}
    with compile_temporarily(model, **weights_alone, optimizer=optimizer, loss=VoteShareCrossentropy()):
        second = model.fit_batches(data.batches(**order), **settings)
    return join_histories(model, history, second)
