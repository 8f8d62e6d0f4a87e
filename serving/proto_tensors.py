"""Converts TensorProtos of requests to arrays, and rejects inconsistent ones."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from crowdzoo.errors import short_repr
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

# `DataType` of strings, and of all numbers in a TensorProto
_STRING, _NUMBERS = 7, (1, 2, 3, 4, 5, 6, 9, 10, 14, 17, 19, 22, 23)
# Overhead of one text in memory, in bytes: a Python object, a reference to it, and TensorFlow's object
_STRING_BYTES = 33 + 8 + 24
# Least overhead of one text in a message, in bytes
_WRITTEN = 2


def parsed(kind: Any, message: bytes) -> Any:
    """Parses a message of this class.

    Raises:
        RequestError: the bytes are not such a message.
    """
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise RequestError(f"the message is not a {kind.DESCRIPTOR.name}") from error


def _check_size(what: str, values: int, texts: int, limits: Limits) -> None:
    """Rejects values that would be too large when expanded, without expanding them.

    Args:
        what: their owner, as the beginning of a message.
        values: bytes of all values.
        texts: number of texts among them.
        limits: `request_bytes` applies to the values as if all had been sent, `request_memory` to the texts.
    """
    for size, most in (
        (values + texts * _WRITTEN, limits.request_bytes),
        (values + texts * _STRING_BYTES, limits.request_memory),
    ):
        if size > most:
            reason = f"{what} takes more than the {most:,} bytes that the values of one request may take here"
            raise RequestError(f"{reason}; send fewer or shorter instances", "TOO_LARGE")


def arrays_from_protos(
    protos: Mapping[str, Any], limits: Limits | None = None, wait: Callable[[int], None] = lambda size: None
) -> dict[str, np.ndarray]:
    """Arrays of a gRPC request's inputs.

    Args:
        protos: name -> TensorProto.
        limits: limits for all arrays together; None for the defaults. A proto of a few bytes can have any shape: its
            last value is repeated for missing ones.
        wait: function called with the bytes of the arrays before any is created.

    Raises:
        RequestError: names the input.
    """
    values = texts = 0
    for name, proto in protos.items():
        subject = f"input {short_repr(name)}"
        sizes = _shape(subject, proto)
        count = math.prod(max(size, 1) for size in sizes)  # also for an array without values, such as [0, 2**62]
        if proto.dtype == _STRING:
            missing = max(0, count - len(proto.string_val))
            values += sum(map(len, proto.string_val)) + missing * len((*proto.string_val[-1:], b"")[0])
            texts += count
        else:
            values += count * tf.dtypes.as_dtype(proto.dtype).size
        place = "" if len(protos) == 1 else " with the inputs before it"
        _check_size(f"{subject}: shape {short_repr(sizes)}{place}", values, texts, limits or Limits())
    wait(values + texts * _WRITTEN)
    return {name: _array(f"input {short_repr(name)}", proto) for name, proto in protos.items()}


def _shape(what: str, proto: Any) -> list[int]:
    if proto.dtype != _STRING and proto.dtype not in _NUMBERS:
        raise RequestError(f"{what}: dtype {proto.dtype} is unknown")
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if len(sizes) > 254:  # TensorFlow's limit
        raise RequestError(f"{what}: has {len(sizes)} axes, more than 254")
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise RequestError(f"{what}: shape {short_repr(sizes)} of a value must be known")
    return sizes


def _array(what: str, proto: Any) -> np.ndarray:
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError) as error:
        sizes, dtype = _shape(what, proto), tf.dtypes.as_dtype(proto.dtype)
        raise RequestError(f"{what}: its values do not fill shape {short_repr(sizes)} of {dtype.name}") from error
