"""One signature of a loaded model: checks inputs by name, runs the graph."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.serving.request_error import RequestError

__all__ = ["Signature"]

_GRAPH_TRACE = re.compile(r"\n\t \[\[.*", re.DOTALL)
_ASSERTION = re.compile(r"assertion failed: (.*)", re.DOTALL)


class Signature:
    """A callable signature of a SavedModel.

    Args:
        name: its key, such as `serving_default`.
        function: the loaded concrete function.

    Attributes:
        inputs: name -> `tf.TensorSpec`, sorted by name.
    """

    def __init__(self, name: str, function: Any):
        self.name = name
        self._function = function
        self.inputs: dict[str, tf.TensorSpec] = dict(sorted(function.structured_input_signature[1].items()))

    def check_names(self, given: Iterable[str], place: str = "") -> None:
        """Refuses a missing and an unknown input.

        Args:
            given: names in the request.
            place: where they stand, as a prefix of the message.
        """
        given = list(given)
        unknown = [name for name in given if name not in self.inputs]
        if unknown:
            raise RequestError(f"{place}unknown input {unknown[0]!r}. {self._takes(unknown[0])}")
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise RequestError(f"{place}missing input {missing[0]!r}. {self._takes()}")

    def _takes(self, wrong: str | None = None) -> str:
        close = difflib.get_close_matches(wrong, self.inputs, n=1) if wrong is not None else []
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"Signature {self.name!r} takes {', '.join(map(repr, self.inputs))}.{hint}"

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs the signature.

        Args:
            inputs: an array for each input, of its dtype (bytes objects for strings).

        Returns:
            An array for each output, sorted by name.

        Raises:
            RequestError: names, shapes or numbers that do not fit, or the graph refuses the inputs.
        """
        self.check_names(inputs)
        for name, spec in self.inputs.items():
            _check_array(name, inputs[name], spec)
        self._check_batch({name: len(inputs[name]) for name, spec in self.inputs.items() if _is_batched(spec)})
        try:
            outputs = self._function(**{name: tf.constant(value) for name, value in inputs.items()})
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(_graph_reason(error)) from error
        except tf.errors.ResourceExhaustedError as error:
            raise RequestError("not enough memory for this request; send fewer instances", "UNAVAILABLE") from error
        return {name: outputs[name].numpy() for name in sorted(outputs)}

    def _check_batch(self, sizes: Mapping[str, int]) -> None:
        if not sizes:
            return
        first, size = next(iter(sizes.items()))
        for name, other in sizes.items():
            if other == 0:
                raise RequestError(f"input {name!r}: is empty; at least one instance is needed")
            if other != size:
                raise RequestError(f"input {name!r}: has {other} rows, but input {first!r} has {size}")


def _is_batched(spec: tf.TensorSpec) -> bool:
    return bool(spec.shape.rank) and spec.shape[0] is None


def _check_array(name: str, array: np.ndarray, spec: tf.TensorSpec) -> None:
    if not spec.shape.is_compatible_with(array.shape):
        expected = [-1 if size is None else size for size in spec.shape.as_list()]
        rank = "" if array.ndim == len(expected) else f" (rank {array.ndim} where {len(expected)} is due)"
        raise RequestError(f"input {name!r}: shape {list(array.shape)} does not fit {expected}{rank}; -1 is any size")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        value = "NaN" if np.isnan(array[place]) else "Infinity" if array[place] > 0 else "-Infinity"
        raise RequestError(f"input {name!r}: {value} at {list(place)} is not a finite number")


def _graph_reason(error: tf.errors.InvalidArgumentError) -> str:
    """The sentence in a graph's error, without the trace of nodes around it."""
    message = _GRAPH_TRACE.sub("", error.message)
    assertion = _ASSERTION.search(message)
    if assertion:  # "[what is wrong:] [value] [value]"
        return assertion.group(1).strip().removeprefix("[").removesuffix("]").replace("] [", " ")
    return message.strip().splitlines()[-1]
