"""A small network from feature vectors to one number."""

from collections.abc import Sequence
from typing import Any

import keras

from crowdzoo.checks.constraints import FLAG, checked
from crowdzoo.layers.label_unit import LabelUnit
from crowdzoo.layers.ranges import BATCH, CENTER, DROPOUT, HIDDEN, UNIT
from crowdzoo.networks.feature_network import FeatureNetwork

__all__ = ["FeatureRegressor"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class FeatureRegressor(FeatureNetwork):
    """Standardised features, hidden ReLU layers with dropout, and one number in the labels' unit.

    The features as for `FeatureClassifier`: call `adapt(x)` once, or give mean and variance. The network itself gives a
    number about zero; `center` and `unit` turn it into the labels' unit (`LabelUnit`). Weights and dropout
    follow `keras.utils.set_random_seed`.

    Args:
        num_features: D, length of a feature vector.
        hidden: units of each hidden layer; may be empty (linear regression).
        dropout: share of hidden units dropped in training, 0 <= dropout < 1, after every hidden layer.
        mean: one number per feature, or None.
        variance: one number per feature, or None.
        batch_normalization: as for `FeatureClassifier`.
        center: mean of the ratings, such as of `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: features `[B, D]`.

    Returns:
        Estimates of the true rating `[B, 1]`, in the labels' unit, float32 under mixed precision too.

    Raises:
        ValueError: impossible sizes, center or unit.
    """

    @checked(num_features=BATCH, hidden=HIDDEN, dropout=DROPOUT, batch_normalization=FLAG, center=CENTER, unit=UNIT)
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
        def head() -> list[Any]:
            return [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")]

        super().__init__(num_features, hidden, dropout, mean, variance, batch_normalization, head, **kwargs)
        self.center, self.unit = float(center), float(unit)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "center": self.center, "unit": self.unit}
