"""Arrays as bytes, for the pipes between the server and its readers; nothing in them is code."""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

__all__ = ["pack_arrays", "read_frame", "unpack_arrays", "write_frame"]

_SIZES = struct.Struct("<QQ")


def write_frame(stream: BinaryIO, header: Mapping[str, Any], *payload: Any) -> None:
    """Writes a header of plain values and the bytes that belong to it."""
    text = json.dumps(header).encode()
    stream.write(_SIZES.pack(len(text), sum(map(len, payload))) + text)
    for part in payload:
        stream.write(part)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Reads what `write_frame` wrote.

    Raises:
        EOFError: the other side is gone.
    """
    start = _exactly(stream, _SIZES.size)
    header, payload = _SIZES.unpack(start)
    return json.loads(_exactly(stream, header)), _exactly(stream, payload)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    content = stream.read(count) if count else b""
    if len(content) != count:
        raise EOFError
    return content


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Descriptions of the arrays for a header, and their bytes; strings as lengths and content."""
    described, parts = [], []
    for name, array in arrays.items():
        one: dict[str, Any] = {"name": name, "shape": list(array.shape)}
        if array.dtype == object:
            cells = array.ravel().tolist()
            content = b"".join(cells)
            one |= {"dtype": "string", "bytes": len(content)}
            parts += [np.fromiter(map(len, cells), np.int64, len(cells)).tobytes(), content]
        else:
            one |= {"dtype": array.dtype.name}
            parts.append(array.tobytes())
        described.append(one)
    return described, parts


def unpack_arrays(described: list[dict[str, Any]], payload: bytes) -> dict[str, np.ndarray]:
    """Arrays from what `pack_arrays` gave; they share the memory of `payload`."""
    arrays: dict[str, np.ndarray] = {}
    start = 0
    for one in described:
        count = math.prod(one["shape"])
        dtype = np.dtype(np.int64 if one["dtype"] == "string" else one["dtype"])
        array = np.frombuffer(payload, dtype, count, start)
        start += array.nbytes
        if one["dtype"] == "string":
            ends = start + np.cumsum(array)
            cells = np.empty(count, dtype=object)
            cells[:] = [payload[i:j] for i, j in zip((ends - array).tolist(), ends.tolist(), strict=True)]
            array = cells
            start += one["bytes"]
        arrays[one["name"]] = array.reshape(one["shape"])
    return arrays
