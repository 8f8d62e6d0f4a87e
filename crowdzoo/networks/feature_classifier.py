"""A small network on feature vectors: the zoo's base model for anything that comes with descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras

from crowdzoo.checks.constraints import FLAG, checked
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, HIDDEN
from crowdzoo.networks.feature_network import FeatureNetwork

__all__ = ["FeatureClassifier"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class FeatureClassifier(FeatureNetwork):
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
        def head() -> list[Any]:
            if num_classes is None:
                return []
            softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
            return [keras.layers.Dense(num_classes, name="logits"), softmax]

        super().__init__(num_features, hidden, dropout, mean, variance, batch_normalization, head, **kwargs)
        self.num_classes = num_classes

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "num_classes": self.num_classes}
