"""What a signature takes, without TensorFlow, so that a reader process can know it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from crowdzoo.errors import did_you_mean, short_repr
from crowdzoo.serving.request_error import RequestError

__all__ = ["InputSpec", "SignatureInputs"]


class InputSpec(NamedTuple):
    """One input: its dtype by TensorFlow's name, and its shape, None for any size (or for any shape)."""

    dtype: str
    shape: tuple[int | None, ...] | None

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape fits."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            due in (None, size) for due, size in zip(self.shape, shape, strict=True)
        )

    @property
    def is_batched(self) -> bool:
        """Whether the first axis is open."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    @property
    def is_column(self) -> bool:
        """Whether it is one value an instance, as a column of a table is: NaN is then a missing number."""
        return self.shape is not None and len(self.shape) == 1


class SignatureInputs:
    """The inputs of a signature.

    Args:
        name: the signature's key, such as `serving_default`.
        inputs: name -> spec.
    """

    def __init__(self, name: str, inputs: Mapping[str, InputSpec]):
        self.name = name
        self.inputs = dict(sorted(inputs.items()))

    def check_names(self, given: Collection[str], place: str = "") -> None:
        """Refuses a missing and an unknown input.

        Args:
            given: names in the request.
            place: where they stand, as a prefix of the message.

        Raises:
            RequestError: names the input.
        """
        for name in given:
            if name not in self.inputs:
                hint = did_you_mean(name, self.inputs)
                raise RequestError(f"{place}unknown input {short_repr(name)}. {self._takes()}{hint}")
        for name in self.inputs:
            if name not in given:
                raise RequestError(f"{place}missing input {name!r}. {self._takes()}")

    def _takes(self) -> str:
        return f"Signature {self.name!r} takes {', '.join(map(repr, self.inputs))}."
