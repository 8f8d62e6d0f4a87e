"""TensorProtos from the wire to arrays, with every way they can lie refused by name."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from crowdzoo.errors import short_repr
from crowdzoo.serving.request_error import RequestError

# `DataType` of strings, and of all numbers that a TensorProto holds as such
_STRING, _NUMBERS = 7, (1, 2, 3, 4, 5, 6, 9, 10, 14, 17, 19, 22, 23)
# Of one text beside its bytes: a Python object, a reference to it, and TensorFlow's own object
STRING_BYTES = 33 + 8 + 24


def parsed(kind: Any, message: bytes) -> Any:
    """A message of this class out of its bytes.

    Raises:
        RequestError: it is none.
    """
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise RequestError(f"the message is not a {kind.DESCRIPTOR.name}") from error


def arrays_from_protos(protos: Mapping[str, Any], *, max_bytes: int = 1 << 30) -> dict[str, np.ndarray]:
    """Arrays of a gRPC request's inputs.

    Args:
        protos: name -> TensorProto.
        max_bytes: most memory that the arrays may take together. A proto of a few bytes can claim any shape: its last
            value stands for all that are missing.

    Raises:
        RequestError: names the input.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, proto in protos.items():
        arrays[name], count = _array(f"input {short_repr(name)}", proto, max_bytes)
        max_bytes -= count
    return arrays


def _array(what: str, proto: Any, max_bytes: int) -> tuple[np.ndarray, int]:
    if proto.dtype != _STRING and proto.dtype not in _NUMBERS:
        raise RequestError(f"{what}: dtype {proto.dtype} is unknown")
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if len(sizes) > 254:  # TensorFlow's own limit
        raise RequestError(f"{what}: has {len(sizes)} axes, more than 254")
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise RequestError(f"{what}: shape {short_repr(sizes)} of a value must be known")
    count, dtype = math.prod(sizes), tf.dtypes.as_dtype(proto.dtype)
    if proto.dtype == _STRING:
        texts = proto.string_val
        becomes = count * STRING_BYTES + sum(map(len, texts)) + (count - len(texts)) * len(texts[-1] if texts else b"")
    else:
        becomes = count * dtype.size
    # also of an array without values, as [0, 2**62]
    if max(becomes, math.prod(max(size, 1) for size in sizes)) > max_bytes:
        reason = f"{what}: shape {short_repr(sizes)} takes more than the {max_bytes:,} bytes that are left for it"
        raise RequestError(reason, "TOO_LARGE")
    try:
        array = tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(f"{what}: its values do not fill shape {short_repr(sizes)} of {dtype.name}") from error
    return array, becomes
