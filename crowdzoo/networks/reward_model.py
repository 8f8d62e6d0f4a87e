"""A model of comparisons of two instances, with one network that scores both."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras

from crowdzoo.backend import Config, Tensor
from crowdzoo.errors import ConfigError
from crowdzoo.layers.pair_probabilities import PairProbabilities

SIDES = ("left", "right")


def input_name(side: str, name: str) -> str:
    """Name of an input of a pair; only the side if an instance has the single input "instances".

    Args:
        side: "left" or "right".
        name: name of the input of a single instance.
    """
    return side if name == "instances" else f"{side}_{name}"


@keras.saving.register_keras_serializable(package="crowdzoo")
class RewardModel(keras.Model):
    """Probabilities that the left or right instance is better, or neither, from one network of scores.

    Both sides share the network, and `PairProbabilities` compares its scores. It is the base of a `CrowdModel` with
    `PairAnnotators`; `scorer` scores single instances, including new ones.

    Args:
        scorer: functional or sequential model from instances to one number, `[B, 1]`; higher is better.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Attributes:
        scorer: the scorer.

    Call arguments:
        inputs: `{"left": ..., "right": ...}`, each with the scorer's input.

    Returns:
        Probabilities of left, right and equal, `[B, 3]`, float32, also under mixed precision.

    Raises:
        ConfigError: the scorer is not a functional or sequential model, or has another output shape.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import PairAnnotators
        >>> from crowdzoo.models import CrowdModel, FeatureRegressor, RewardModel
        >>> base = RewardModel(FeatureRegressor(num_features=20))
        >>> model = CrowdModel(base, PairAnnotators(num_annotators=5, num_annotations=40))
        >>> x = np.zeros((4, 20), "float32")
        >>> tuple(model({"left": x, "right": x}).shape)  # probabilities of left, right and equal
        (4, 3)
        >>> tuple(base.scorer(x).shape)  # a score for each instance
        (4, 1)
    """

    def __init__(self, scorer: keras.Model, **kwargs: Any):
        try:
            # a sequential model has no `input` before its first call
            scorer_input = scorer.inputs[0] if isinstance(scorer, keras.Sequential) else scorer.input
            (output,) = scorer.outputs
        except (AttributeError, ValueError, TypeError) as error:
            raise ConfigError(
                f"RewardModel: the scorer {type(scorer).__name__} does not define its input: make it a functional or "
                "a sequential model with a keras.Input"
            ) from error
        if tuple(output.shape) != (None, 1):
            raise ConfigError(f"RewardModel: scores must have the shape [batch, 1], got {tuple(output.shape)}")

        def make_input(side: str, tensor: Tensor) -> Tensor:
            name = tensor.name if isinstance(scorer_input, dict) else "instances"
            return keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=input_name(side, name))

        inputs = {side: keras.tree.map_structure(partial(make_input, side), scorer_input) for side in SIDES}
        precision = keras.backend.result_type(keras.config.floatx(), "float32")
        scores = keras.layers.Concatenate(dtype=precision, name="scores")([scorer(part) for part in inputs.values()])
        super().__init__(inputs=inputs, outputs=PairProbabilities(name="pair_probabilities")(scores), **kwargs)
        self.autocast = False  # the scorer casts its inputs itself
        self.scorer = scorer

    def get_config(self) -> Config:
        """Returns the serialised scorer."""
        return {
            "scorer": keras.saving.serialize_keras_object(self.scorer),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config: Config, custom_objects: Mapping[str, type] | None = None) -> "RewardModel":
        """Creates a model with new weights from the result of `get_config`."""
        return cls(**{**config, "scorer": keras.saving.deserialize_keras_object(config["scorer"], custom_objects)})
