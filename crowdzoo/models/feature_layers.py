"""Layers that the zoo's networks on feature vectors have in common."""

from collections.abc import Sequence
from typing import Any

import keras

__all__ = ["feature_layers"]


def feature_layers(standardize: Any, hidden: Sequence[int], dropout: float, batch_normalization: bool) -> list[Any]:
    """Standardised features and hidden ReLU layers with dropout; see `FeatureClassifier`.

    Args:
        standardize: the first layer.
        hidden: units of each hidden layer.
        dropout: share of hidden units dropped in training; 0 makes no dropout layer.
        batch_normalization: whether features and hidden outputs are normalised by their batch.

    Returns:
        Layers in their order, not built yet.
    """
    layers: list[Any] = [standardize]
    if batch_normalization:
        layers.append(keras.layers.BatchNormalization(center=False, scale=False, name="normalize_features"))
    for number, units in enumerate(hidden):
        layers.append(keras.layers.Dense(units, activation="relu", name=f"hidden_{number}"))
        if dropout:
            layers.append(keras.layers.Dropout(dropout, name=f"dropout_{number}"))
        if batch_normalization:
            layers.append(keras.layers.BatchNormalization(center=False, scale=False, name=f"normalize_{number}"))
    return layers
