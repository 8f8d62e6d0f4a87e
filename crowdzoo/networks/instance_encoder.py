"""InstanceEncoder: converts instances from files and requests to the input of a base model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crowdzoo.data.instance_kinds import InstanceKind

if TYPE_CHECKING:
    import tensorflow as tf


class InstanceEncoder(ABC):
    """Encodes instances in TensorFlow operations only, so that training and serving run the same graph.

    TensorFlow is imported inside the methods. The constructor accepts the result of `get_config`.

    Attributes:
        key: key of its configuration in the file of names next to a model.
        instances: kind of instances that it encodes.
        example: an instance, by the names of `inputs`, used to warm up a served model if no other is given, and to fill
            an empty batch.
        per_batch: whether to encode instances each time a batch is made. False encodes all before training, for
            encodings that fit into memory.

    Example:
        >>> from crowdzoo.models import InstanceEncoder, TextIds
        >>> encoder = TextIds(["good", "bad"])
        >>> isinstance(encoder, InstanceEncoder)
        True
        >>> encoder.to_numpy(["a good film"]).tolist()
        [[1, 2, 1]]
    """

    key: ClassVar[str]
    instances: ClassVar[InstanceKind]
    example: ClassVar[Mapping[str, Any]]
    per_batch: bool = True

    @property
    def encode_one(self) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Function that encodes one checked instance, a scalar tensor; None if encoding a batch is faster."""
        return None

    @property
    def inputs(self) -> dict[str, tf.TensorSpec]:
        """Inputs of a served model: names and `tf.TensorSpec`, of any batch size; mostly strings `[B]`."""
        import tensorflow as tf

        return {"instances": tf.TensorSpec([None], tf.string, name="instances")}

    @property
    def card(self) -> dict[str, object]:
        """Facts for a model's card in addition to names and types of the inputs, for JSON."""
        return {}

    @property
    def resources(self) -> dict[str, object]:
        """Lookup tables and variables that the graph uses, if any; an exported model must contain them."""
        return {}

    @abstractmethod
    def __call__(self, values: Any) -> Any:
        """Encodes a batch.

        Args:
            values: a tensor `[B]`; a dictionary of tensors for several inputs, or if the input is not "instances".

        Returns:
            The base's input, a tensor or a dictionary of tensors `[B, ...]`.
        """

    @abstractmethod
    def to_numpy(self, values: Any) -> Any:
        """Encodes instances in memory.

        Args:
            values: N instances as in `crowdzoo.instances.Instances.values`.

        Returns:
            The base's input, an array or a dictionary of arrays `[N, ...]`.
        """

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor, for JSON."""
