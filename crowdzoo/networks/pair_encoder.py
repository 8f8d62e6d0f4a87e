"""Two instances that are compared, as a served model takes them: one encoder for both."""

from typing import Any

from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.networks.reward_model import SIDES, input_name


class PairEncoder:
    """Encodes both sides of pairs for a `RewardModel`, inside the graph of a served model.

    Args:
        encoder: of single instances.

    Attributes:
        resources: see `InstanceEncoder`.
        inputs: see `InstanceEncoder`; an input of single instances `x` is `left_x` and `right_x`, and `instances` is
            `left` and `right`.
        example: by the same names.
    """

    def __init__(self, encoder: InstanceEncoder):
        import tensorflow as tf

        self.encoder = encoder
        self.resources = encoder.resources
        self.names = {side: {name: input_name(side, name) for name in encoder.inputs} for side in SIDES}
        self.inputs = {
            own: tf.TensorSpec(encoder.inputs[name].shape, encoder.inputs[name].dtype, name=own)
            for names in self.names.values()
            for name, own in names.items()
        }
        self.example = {own: encoder.example[name] for names in self.names.values() for name, own in names.items()}

    def __call__(self, values: dict[str, Any]) -> dict[str, Any]:
        """Encodes a batch.

        Args:
            values: tensors `[B]` by the names of `inputs`.

        Returns:
            What the scorer takes, for "left" and "right".
        """
        found = {}
        for side, names in self.names.items():
            part = {name: values[own] for name, own in names.items()}
            found[side] = self.encoder(part["instances"] if {*part} == {"instances"} else part)
        return found
