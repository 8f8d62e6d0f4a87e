"""A small network on feature vectors: the zoo's base model for anything that comes with descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from crowdzoo.constraints import FLAG, checked
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, HIDDEN
from crowdzoo.layers.standardization import Standardization
from crowdzoo.models.feature_layers import feature_layers

__all__ = ["FeatureClassifier"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class FeatureClassifier(keras.Model):
    """Standardised features, hidden ReLU layers with dropout, and a softmax over the classes.

    Call `adapt(x)` on the training features once before training, or give mean and variance; without
    either, features are taken as they come. The statistics are saved with the model. Weights
    and dropout follow `keras.utils.set_random_seed`.

    Args:
        num_features: D, length of a feature vector.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that stand on a hidden layer.
        hidden: units of each hidden layer; may be empty (softmax regression).
        dropout: share of hidden units dropped in training, 0 <= dropout < 1, after every hidden layer.
        mean: one number per feature, or None.
        variance: one number per feature, or None.
        batch_normalization: normalises the features and each hidden layer's output by their batch (no scale, no
            shift of its own), as in CoNAL's network for the music data.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: features `[B, D]`.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32 under mixed precision too; without classes the last
        hidden layer's output `[B, H]`.

    Raises:
        ValueError: impossible sizes.

    Source:
        The network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 5
        (LabelMe): one hidden layer of 128 ReLU, dropout 0.5. Batch normalisation: Z. Chu, J. Ma, H. Wang:
        Learning from Crowds by Modeling Common Confusions. AAAI 2021, section 5 and their code.
    """

    @checked(
        num_features=BATCH,
        num_classes=replace(CLASSES, optional=True),
        hidden=HIDDEN,
        dropout=DROPOUT,
        batch_normalization=FLAG,
    )
    def __init__(
        self,
        num_features: int,
        num_classes: int | None,
        hidden: Sequence[int] = (128,),
        dropout: float = 0.5,
        mean: Sequence[float] | None = None,
        variance: Sequence[float] | None = None,
        batch_normalization: bool = False,
        **kwargs: Any,
    ):
        # === Layers ===
        standardize = Standardization(mean, variance, name="standardize")
        layers = feature_layers(standardize, hidden, dropout, batch_normalization)
        if num_classes is not None:
            layers.append(keras.layers.Dense(num_classes, name="logits"))
            layers.append(keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32")))

        # === Functional model ===
        inputs = keras.Input((num_features,), name="instances")
        outputs = inputs
        for layer in layers:
            outputs = layer(outputs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.autocast = False  # features are standardised before anything rounds them

        # === Config ===
        self.standardize = standardize
        self.num_features = int(num_features)
        self.num_classes = None if num_classes is None else int(num_classes)
        self.hidden = hidden
        self.dropout = float(dropout)
        self.batch_normalization = bool(batch_normalization)

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
            "num_classes": self.num_classes,
            "hidden": list(self.hidden),
            "dropout": self.dropout,
            "batch_normalization": self.batch_normalization,
            "mean": self.standardize.initial_mean,
            "variance": self.standardize.initial_variance,
            "name": self.name,
            "trainable": self.trainable,
        }
