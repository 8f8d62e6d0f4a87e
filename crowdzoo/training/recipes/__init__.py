"""Training of a model with each crowd layer: one recipe per method, loaded when needed."""

import importlib
from collections.abc import Callable

import keras

from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.training.recipes.descent import descend

__all__ = ["Recipe", "recipe_of", "register_recipe"]

# recipe(model, data, order, **kwargs): model is a compiled `CrowdModel`, data `crowdzoo.models.TrainingData`, order
# holds batch_size, seed and shuffle, and sample_weight `[N]` if tasks have weights; kwargs are epochs, callbacks and
# more, as for `keras.Model.fit`
Recipe = Callable[..., keras.callbacks.History]

# class of the layer -> its recipe, function and module in this folder; subclasses inherit their parent's
_RECIPES = {
    "ConfusionMatrices": ("descend_on_matrices", "descent"),
    "CrossFittedEM": ("fit", "cross_fitted_em"),
    "CrowdsourcedLayer": ("descend_and_anchor", "descent"),
    "DeepEM": ("fit", "deep_em"),
    "DoctorNet": ("fit", "doctor_net"),
    "LIA": ("fit", "lia"),
    "MaxMIG": ("descend_from_votes", "descent"),
    "PooledConfusions": ("descend_with_counts", "descent"),
    "RatingEM": ("fit_ratings", "deep_em"),
    "WAUM": ("fit", "waum"),
}
_OWN: dict[type, Recipe] = {}


def recipe_of(layer: CrowdLayer) -> Recipe:
    """The recipe of a layer; by default gradient descent on the compiled loss."""
    for parent in type(layer).__mro__:
        if parent in _OWN:
            return _OWN[parent]
        name = parent.__name__
        if name in _RECIPES and keras.saving.get_registered_name(parent) == f"crowdzoo>{name}":
            function, module = _RECIPES[name]
            recipe: Recipe = getattr(importlib.import_module(f"{__name__}.{module}"), function)
            return recipe
    return descend


def register_recipe(layer: type[CrowdLayer], recipe: Recipe) -> None:
    """Makes `CrowdModel.fit` train models with a custom layer by a custom recipe.

    Args:
        layer: the class; its subclasses are trained by the same recipe.
        recipe: called with the compiled model, the data (`crowdzoo.models.TrainingData`), a dictionary of `batch_size`,
            `seed` and `shuffle`, and the other arguments of `keras.Model.fit` by name; returns Keras' `History`. If
            tasks have weights, the dictionary has `sample_weight` `[N]` as well, and batches of `data.batches(**order)`
            contain them. The recipe weights other counts itself, or the layer sets `accepts_sample_weight=False` in its
            `traits`.
    """
    _OWN[layer] = recipe
