"""TensorProtos from the wire to arrays, with every way they can lie refused by name."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.serving.request_error import RequestError

__all__ = ["arrays_from_protos"]


def arrays_from_protos(
    protos: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec] | None = None, *, max_bytes: int = 1 << 30
) -> dict[str, np.ndarray]:
    """Arrays of a gRPC request's inputs.

    Args:
        protos: name -> TensorProto.
        specs: what the signature takes; a tensor of another dtype is refused, as TensorFlow would.
        max_bytes: most memory a tensor may take. A proto of a few bytes can claim any shape: its one value stands
            for all.

    Raises:
        RequestError: names the input.
    """
    return {name: _array(name, proto, (specs or {}).get(name), max_bytes) for name, proto in protos.items()}


def _array(name: str, proto: Any, spec: tf.TensorSpec | None, max_bytes: int) -> np.ndarray:
    try:
        dtype = tf.as_dtype(proto.dtype)
    except TypeError as error:
        raise RequestError(f"input {name!r}: dtype {proto.dtype} is unknown") from error
    if spec is not None and dtype != spec.dtype:
        raise RequestError(f"input {name!r}: is {dtype.name}, not {spec.dtype.name}")
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise RequestError(f"input {name!r}: shape {sizes} of a value must be known")
    if math.prod(sizes) * max(dtype.size or 0, 8 if dtype == tf.string else 1) > max_bytes:
        raise RequestError(f"input {name!r}: shape {sizes} takes more than {max_bytes:,} bytes")
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise RequestError(f"input {name!r}: its values do not fill shape {sizes} of {dtype.name}") from error
