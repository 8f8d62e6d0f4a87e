"""Initializes a model with the weights of an earlier one, after annotations were added."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from crowdzoo.layers.crowd_layer import CrowdLayer


def warm_start(
    model: keras.Model, before: keras.Model, annotators_before: Sequence[str], annotators: Sequence[str]
) -> int | None:
    """Copies the weights of a trained model to a new one before its training.

    Annotators are matched by name. A new annotator starts with the mean of the known annotators' weights, or with the
    layer's initial weights if these are the common part alone (`LayerTraits.unseen_are_average`). Methods that estimate
    the annotators in each round (EM) use only the base's weights.

    Args:
        model: a built `CrowdModel`; changed in place.
        before: the trained `CrowdModel`.
        annotators_before: names of its annotators, in the order of their codes.
        annotators: names of the model's annotators.

    Returns:
        The number of annotators that are new to the earlier model. None if the models differ in other ways, such as in
        their classes or layers; then nothing was changed.
    """
    if _shapes(model.base) != _shapes(before.base) or type(model.crowd) is not type(before.crowd):
        return None
    values = list(zip(model.base.weights, map(ops.convert_to_numpy, before.base.weights), strict=True))
    place = {name: row for row, name in enumerate(annotators_before)}
    rows = np.array([place.get(name, -1) for name in annotators])
    if model.crowd is not None:
        if len(model.crowd.weights) != len(before.crowd.weights):
            return None
        of_annotators = _of_annotators(model.crowd)
        for weight, old, is_per_annotator in zip(model.crowd.weights, before.crowd.weights, of_annotators, strict=True):
            value = before_value = np.array(ops.convert_to_numpy(old))
            if is_per_annotator and before_value.shape[1:] == tuple(weight.shape[1:]):
                value = np.array(ops.convert_to_numpy(weight))
                if not model.crowd.traits.unseen_are_average:
                    value[:] = before_value.mean(axis=0)
                value[rows >= 0] = before_value[rows[rows >= 0]]
            if value.shape != tuple(weight.shape):
                return None
            values.append((weight, value))
    for weight, value in values:
        weight.assign(value)
    return int((rows < 0).sum())


def _of_annotators(crowd: CrowdLayer) -> list[bool]:
    """Which weights of a crowd layer have a row per annotator: those that are larger with one annotator more."""
    config = crowd.get_config()
    probe = type(crowd).from_config({**config, "num_annotators": config["num_annotators"] + 1})
    probe.build_from_config(crowd.get_build_config())
    return [shape != larger for shape, larger in zip(_shapes(crowd), _shapes(probe), strict=True)]


def _shapes(layer: keras.Layer) -> list[tuple[int, ...]]:
    return [tuple(weight.shape) for weight in layer.weights]
