"""TensorProtos from the wire to arrays, with every way they can lie refused by name; without TensorFlow."""

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by name
import numpy as np
from google.protobuf.message import DecodeError

from crowdzoo.errors import short_repr
from crowdzoo.serving.request_error import RequestError

__all__ = ["STRING_BYTES", "arrays_from_protos", "parsed"]

# `DataType` -> TensorFlow's name and the field of a TensorProto that holds its values
_DTYPES = {
    1: ("float32", "float_val"),
    2: ("float64", "double_val"),
    3: ("int32", "int_val"),
    4: ("uint8", "int_val"),
    5: ("int16", "int_val"),
    6: ("int8", "int_val"),
    7: ("string", "string_val"),
    9: ("int64", "int64_val"),
    10: ("bool", "bool_val"),
    14: ("bfloat16", "half_val"),
    17: ("uint16", "int_val"),
    19: ("float16", "half_val"),
    22: ("uint32", "uint32_val"),
    23: ("uint64", "uint64_val"),
}
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
    if proto.dtype not in _DTYPES:
        raise RequestError(f"{what}: dtype {proto.dtype} is unknown")
    name, field = _DTYPES[proto.dtype]
    if len(proto.tensor_shape.dim) > 254:  # TensorFlow's own limit
        raise RequestError(f"{what}: has {len(proto.tensor_shape.dim)} axes, more than 254")
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise RequestError(f"{what}: shape {short_repr(sizes)} of a value must be known")
    count = math.prod(sizes)
    problem = RequestError(f"{what}: its values do not fill shape {short_repr(sizes)} of {name}")
    too_large = RequestError(
        f"{what}: shape {short_repr(sizes)} takes more than the {max_bytes:,} bytes that are left for it", "TOO_LARGE"
    )
    if math.prod(max(size, 1) for size in sizes) > max_bytes:  # also of an array without values, as [0, 2**62]
        raise too_large
    if name == "string":
        texts = list(proto.string_val)
        if len(texts) > count:
            raise problem
        last = texts[-1] if texts else b""
        becomes = count * STRING_BYTES + sum(map(len, texts)) + len(last) * (count - len(texts))
        if becomes > max_bytes:
            raise too_large
        array = np.empty(count, dtype=object)
        array[: len(texts)] = texts
        array[len(texts) :] = last
        return array.reshape(sizes), becomes
    dtype = np.dtype(name)
    if count * dtype.itemsize > max_bytes:
        raise too_large
    try:
        if proto.tensor_content:
            values = np.frombuffer(proto.tensor_content, dtype=dtype)
        elif field == "half_val":
            values = np.array(proto.half_val, dtype=np.uint16).view(dtype)
        else:
            values = np.array(getattr(proto, field), dtype=dtype)
        if len(values) != count:
            if proto.tensor_content or len(values) > count:
                raise problem
            values = np.pad(values, (0, count - len(values)), "edge") if len(values) else np.zeros(count, dtype)
        return values.reshape(sizes), values.nbytes
    except (TypeError, ValueError, OverflowError) as error:
        raise problem from error
