"""Networks on feature vectors: `FeatureClassifier`, `FeatureRegressor` and their parent."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np

from crowdzoo.checks.constraints import CENTER, FLAG, UNIT, checked
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, HIDDEN
from crowdzoo.layers.standardization import Standardization
from crowdzoo.networks.network import Network, class_head, rating_head


class FeatureNetwork(Network):
    """Parent of `FeatureClassifier` and `FeatureRegressor`, which add their own layers after the hidden ones.

    Args:
        num_features: D, length of a feature vector.
        hidden: units of each hidden layer.
        dropout: share of hidden units dropped in training.
        mean: see `FeatureClassifier`.
        variance: see `FeatureClassifier`.
        batch_normalization: whether features and hidden outputs are normalised by their batch.
        head: function that makes the subclass' own layers after the hidden ones.
        **kwargs: `name` and `trainable` of `keras.Model`.
    """

    @checked(num_features=BATCH, hidden=HIDDEN, dropout=DROPOUT, batch_normalization=FLAG)
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

    def adapt(self, x: np.ndarray) -> None:
        """Computes mean and variance of the features from the training data.

        Args:
            x: features `[N, D]`, all finite.

        Raises:
            DataError: wrong shape, no rows, or a value that is not finite.
        """
        self.standardize.adapt(x)


@keras.saving.register_keras_serializable(package="crowdzoo")
class FeatureClassifier(FeatureNetwork):
    """Standardised features, hidden ReLU layers with dropout, and a softmax over the classes.

    Call `adapt(x)` on the training features once before training, or give mean and variance; without either, features
    are not standardised. The statistics are saved with the model. Weights and dropout depend on
    `keras.utils.set_random_seed`.

    Args:
        num_features: D, length of a feature vector.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that use a hidden layer.
        hidden: units of each hidden layer; may be empty (softmax regression).
        dropout: share of hidden units dropped in training, 0 <= dropout < 1, after every hidden layer.
        mean: one number per feature, or None.
        variance: one number per feature, or None.
        batch_normalization: normalises the features and each hidden layer's output by their batch (without learnt scale
            and shift), as in CoNAL's network for the music data.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: features `[B, D]`.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32, also under mixed precision; without classes the last
        hidden layer's output `[B, H]`.

    Raises:
        ValueError: invalid sizes.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import FeatureClassifier
        >>> x = np.random.default_rng(0).normal(size=(40, 20)).astype("float32")
        >>> base = FeatureClassifier(num_features=20, num_classes=4)
        >>> base.adapt(x)  # mean and variance of the features
        >>> tuple(base(x).shape)  # probabilities
        (40, 4)

    Source:
        The network of F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 5
        (LabelMe): one hidden layer of 128 ReLU, dropout 0.5. Batch normalisation: Z. Chu, J. Ma, H. Wang:
        Learning from Crowds by Modeling Common Confusions. AAAI 2021, section 5 and their code.
    """

    @checked(num_classes=replace(CLASSES, optional=True))
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
        last_layers = partial(class_head, num_classes)
        super().__init__(num_features, hidden, dropout, mean, variance, batch_normalization, last_layers, **kwargs)
        self.num_classes = num_classes


@keras.saving.register_keras_serializable(package="crowdzoo")
class FeatureRegressor(FeatureNetwork):
    """Standardised features, hidden ReLU layers with dropout, and one number in the labels' unit.

    Features are standardised as in `FeatureClassifier`: call `adapt(x)` once, or give mean and variance. The network
    itself outputs a standardised number; `center` and `unit` convert it to the labels' unit (`LabelUnit`). Weights and
    dropout depend on `keras.utils.set_random_seed`.

    Args:
        num_features: D, length of a feature vector.
        hidden: units of each hidden layer; may be empty (linear regression).
        dropout: share of hidden units dropped in training, 0 <= dropout < 1, after every hidden layer.
        mean: one number per feature, or None.
        variance: one number per feature, or None.
        batch_normalization: as for `FeatureClassifier`.
        center: mean of the ratings, for example from `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: features `[B, D]`.

    Returns:
        Estimates of the true rating `[B, 1]`, in the labels' unit, float32, also under mixed precision.

    Raises:
        ValueError: invalid sizes, center or unit.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import FeatureRegressor
        >>> x = np.random.default_rng(0).normal(size=(40, 20)).astype("float32")
        >>> base = FeatureRegressor(num_features=20, center=3.0, unit=1.2)  # mean and deviation of the ratings
        >>> base.adapt(x)  # mean and variance of the features
        >>> tuple(base(x).shape)
        (40, 1)
    """

    @checked(center=CENTER, unit=UNIT)
    def __init__(
        self,
        num_features: int,
        hidden: Sequence[int] = (64,),
        dropout: float = 0.5,
        mean: Sequence[float] | None = None,
        variance: Sequence[float] | None = None,
        batch_normalization: bool = False,
        center: float = 0.0,
        unit: float = 1.0,
        **kwargs: Any,
    ):
        last_layers = partial(rating_head, center, unit)
        super().__init__(num_features, hidden, dropout, mean, variance, batch_normalization, last_layers, **kwargs)
