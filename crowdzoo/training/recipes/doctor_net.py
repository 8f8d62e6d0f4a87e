"""The recipe of `DoctorNet`: trains the heads, then, if wanted, their weights."""

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
    """Trains the heads, then, if wanted, their weights; see `descend`.

    Epochs of the second phase continue the count of the first, even if a callback ended it early. The second phase gets
    copies of the callbacks from before the first, so that losses of the first do not count as best so far.
    """
    layer = model.crowd
    tasks, annotators, _ = annotation_columns(data)
    if "sample_weight" in order:  # a head whose tasks all have weight 0 is not trained
        places = np.prod(answer_shape(data)[1:], dtype=int)
        annotators = annotators[order["sample_weight"][tasks // places] > 0]
    layer.count_labels(np.bincount(annotators, minlength=layer.num_annotators))
    # copied before the first phase, in which callbacks may change the learning rate and store the best loss
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
