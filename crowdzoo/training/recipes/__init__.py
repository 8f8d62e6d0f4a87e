"""How a model with each crowd layer is trained: one recipe a method, loaded when it is needed."""

import importlib
from collections.abc import Callable

import keras

from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.training.recipes.descent import descend

__all__ = ["Recipe", "recipe_of", "register_recipe"]

# recipe(model, data, order, **kwargs): model is a compiled `CrowdModel`, data `crowdzoo.models.TrainingData`, order
# holds batch_size, seed and shuffle, and kwargs are epochs, callbacks and more, as for `keras.Model.fit`
Recipe = Callable[..., keras.callbacks.History]

# class of the layer -> module in this folder that defines `fit`; subclasses have their parent's recipe
_MODULES = {
    "ConfusionMatrices": "confusion_matrices",
    "CrossFittedEM": "cross_fitted_em",
    "CrowdsourcedLayer": "crowdsourced_layer",
    "DeepEM": "deep_em",
    "DoctorNet": "doctor_net",
    "LIA": "lia",
    "MaxMIG": "max_mig",
    "PooledConfusions": "pooled_confusions",
    "RatingDoctorNet": "doctor_net",
    "RatingEM": "rating_em",
    "WAUM": "waum",
}
_OWN: dict[type, Recipe] = {}


def recipe_of(layer: CrowdLayer) -> Recipe:
    """The recipe of a layer; gradient descent on the compiled loss for layers that have none of their own."""
    for parent in type(layer).__mro__:
        if parent in _OWN:
            return _OWN[parent]
        module = _MODULES.get(parent.__name__)
        if module is not None and keras.saving.get_registered_name(parent) == f"crowdzoo>{parent.__name__}":
            recipe: Recipe = importlib.import_module(f"{__name__}.{module}").fit
            return recipe
    return descend


def register_recipe(layer: type[CrowdLayer], recipe: Recipe) -> None:
    """Makes `CrowdModel.fit` train models with a layer of your own by a recipe of your own.

    Args:
        layer: the class; its subclasses are trained by the same recipe.
        recipe: called with the compiled model, the data (`crowdzoo.models.TrainingData`), a dictionary of
            `batch_size`, `seed` and `shuffle`, and the other arguments of `keras.Model.fit` by name; returns Keras'
            `History`.
    """
    _OWN[layer] = recipe
