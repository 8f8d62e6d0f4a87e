"""What the zoo's networks on feature vectors have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from crowdzoo.layers.standardization import Standardization

__all__ = ["FeatureNetwork"]


class FeatureNetwork(keras.Model):
    """Parent of `FeatureClassifier` and `FeatureRegressor`, which have layers of their own after the hidden ones.

    Args:
        num_features: D, length of a feature vector.
        hidden: units of each hidden layer.
        dropout: share of hidden units dropped in training.
        mean: see `FeatureClassifier`.
        variance: see there.
        batch_normalization: whether features and hidden outputs are normalised by their batch.
        head: makes the child's own layers, once the hidden ones are made.
        **kwargs: `keras.Model`'s `name`, `trainable`.
    """

    def __init__(
        self,
        num_features: int,
        hidden: Sequence[int],
        dropout: float,
        mean: Sequence[float] | None,
        variance: Sequence[float] | None,
        batch_normalization: bool,
        head: Callable[[], list[Any]],
        **kwargs: Any,
    ):
        layers: list[Any] = [Standardization(mean, variance, name="standardize")]
        if batch_normalization:
            layers.append(keras.layers.BatchNormalization(center=False, scale=False, name="normalize_features"))
        for number, units in enumerate(hidden):
            layers.append(keras.layers.Dense(units, activation="relu", name=f"hidden_{number}"))
            if dropout:
                layers.append(keras.layers.Dropout(dropout, name=f"dropout_{number}"))
            if batch_normalization:
                layers.append(keras.layers.BatchNormalization(center=False, scale=False, name=f"normalize_{number}"))
        outputs = inputs = keras.Input((num_features,), name="instances")
        for layer in [*layers, *head()]:
            outputs = layer(outputs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.autocast = False  # features are standardised before anything rounds them
        self.standardize = layers[0]
        self.num_features = num_features
        self.hidden = hidden
        self.dropout = float(dropout)
        self.batch_normalization = batch_normalization

    def adapt(self, x: np.ndarray) -> None:
        """Takes mean and variance of the features from the training data.

        Args:
            x: features `[N, D]`, all finite.

        Raises:
            DataError: wrong shape, no rows, or a value that is not finite.
        """
        self.standardize.adapt(x)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {
            "num_features": self.num_features,
            "hidden": list(self.hidden),
            "dropout": self.dropout,
            "batch_normalization": self.batch_normalization,
            "mean": self.standardize.initial_mean,
            "variance": self.standardize.initial_variance,
            "name": self.name,
            "trainable": self.trainable,
        }
