"""Serialisation of values made of arrays: blocks, and what workers exchange on Beam.

Every value is a handful of arrays and numbers. It is written as four bytes of name and version, a JSON tree with the
numbers and the places of the arrays, and then the arrays in that order, as raw little-endian bytes at multiples of
eight. Nothing is pickled, so the bytes contain no code. Decoded arrays share no memory with the bytes or with other
values.

Arrow IPC would take more than a tenth of a run: with one record batch per value (one column per array, the rest
as JSON in the schema), Dawid-Skene on 200,000 annotations with sharded annotators took 1.15 times the CPU time
(15.4 s instead of 13.3 s; medians of five alternating runs, two cores, pyarrow 10). Values of 1 kB to 1.5 MB
took 2.4 to 6 times as long to write and read.
"""

import json
import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import FIELDS, Block
from crowdzoo.errors import DataError

HEAD = b"CZ\x04\x00"  # the third byte is the version
LENGTH = struct.Struct("<I")  # length of the tree
DTYPES = ("<f8", "<i8", "<i4", "|u1", "|b1", "<f4", "<u8", "<u4", "<u2", "<i2", "|i1")
# types of values -> the names of their fields; `crowdzoo.large.beam.coding` adds its own
KINDS: dict[type, tuple[str, ...]] = {Block: FIELDS}


def encode(value: Any) -> bytes:
    """Serialises a value: one of `KINDS`, consisting of these, arrays, numbers, text, None and tuples.

    Raises:
        TypeError: the value, or a part of it, has another type.
    """
    arrays: list[NDArray[Any]] = []
    tree = json.dumps(_tree(value, arrays), separators=(",", ":")).encode()
    chunks: list[Any] = [HEAD, LENGTH.pack(len(tree)), tree]
    size = sum(map(len, chunks))
    for array in arrays:
        gap = bytes(-size % 8)
        chunks += [gap, array.data]
        size += len(gap) + array.nbytes
    return b"".join(chunks)


def _tree(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Converts a value to JSON, except for its arrays, which are appended to `arrays`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) is tuple:  # a named tuple would lose its names
        return [_tree(part, arrays) for part in value]
    if type(value) in KINDS:
        return {type(value).__name__: [_tree(getattr(value, name), arrays) for name in KINDS[type(value)]]}
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} does not cross workers.")
    code = value.dtype.newbyteorder("<").str
    if code not in DTYPES:
        raise TypeError(f"Arrays of {value.dtype} do not cross workers.")
    array = np.asarray(value, code, order="C")
    if array.ndim == 1 and code == "<i8" and _is_range(array):
        return {"range": [int(array[0]), int(array[-1]), len(array)]}  # the redundant number reveals damage
    arrays.append(array)
    return {code: array.shape}


def _is_range(array: NDArray[np.int64]) -> bool:
    """Whether the array counts up by one, as the tasks of most blocks do."""
    count = len(array)
    return count > 1 and int(array[-1]) - int(array[0]) == count - 1 and bool((array[1:] - array[:-1] == 1).all())


def decode(data: bytes) -> Any:
    """Restores a value from `encode`, in memory of its own.

    Raises:
        DataError: other bytes, a later version, or bytes that are missing or left over.
    """
    # aligned and writeable, as compiled kernels need
    return decode_in_place(np.frombuffer(data, np.uint8).copy())


def decode_in_place(memory: NDArray[np.uint8]) -> Any:
    """Restores a value from `encode`, with arrays that are views of this memory.

    Raises:
        DataError: see `decode`.
    """
    head = memory[: len(HEAD)].tobytes()
    if len(head) < len(HEAD) or head[:2] != HEAD[:2]:
        raise DataError("These are not the bytes of a value of crowdzoo.")
    if head[2:] != HEAD[2:]:
        raise DataError(f"These bytes have version {head[2]}; this release of crowdzoo reads version {HEAD[2]}.")
    reader = _Reader(memory)
    try:
        (length,) = LENGTH.unpack(reader.take(LENGTH.size).tobytes())
        value = reader.value(json.loads(reader.take(length).tobytes()))
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, RecursionError) as error:
        raise DataError(f"A value's bytes are damaged ({error}).") from None
    if reader.at != len(memory):
        raise DataError(f"A value's bytes go on where it ends: {len(memory) - reader.at} more.")
    return value


class _Reader:
    """Creates a value from its tree and the bytes that follow."""

    def __init__(self, memory: NDArray[np.uint8]):
        self.memory, self.at = memory, len(HEAD)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Returns the next bytes."""
        if not 0 <= size <= len(self.memory) - self.at:
            raise ValueError("they end too early")
        self.at += size
        return self.memory[self.at - size : self.at]

    def value(self, tree: Any) -> Any:
        """Inverse of `_tree`."""
        if isinstance(tree, list):
            return tuple(map(self.value, tree))
        if not isinstance(tree, dict):
            return tree
        ((name, parts),) = tree.items()
        if name == "range":
            first, last, length = parts
            if length < 1 or last - first != length - 1:  # nothing else bounds the memory
                raise ValueError("a range does not count up by one")
            return np.arange(length, dtype=np.int64) + np.int64(first)
        if name in DTYPES:
            return self.array(np.dtype(name), parts)
        kind: Any = {kind.__name__: kind for kind in KINDS}[name]
        value = kind.__new__(kind)
        for field, part in zip(KINDS[kind], parts, strict=True):
            object.__setattr__(value, field, self.value(part))
        return value

    def array(self, dtype: np.dtype[Any], shape: list[int]) -> NDArray[Any]:
        """Returns the next array."""
        if min(shape, default=0) < 0:
            raise ValueError("an array's shape is negative")
        self.take(-self.at % 8)
        data = self.take(dtype.itemsize * math.prod(shape))
        if dtype == np.bool_ and (data > 1).any():
            raise ValueError("a truth value is neither 0 nor 1")
        return data.view(dtype).reshape(shape)
