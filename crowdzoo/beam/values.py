"""What crosses from worker to worker on Beam, and its bytes.

Every value is a handful of arrays and numbers. It is written as such: four bytes of name and version, then the fields
in order, arrays as raw little-endian bytes at multiples of eight. Nothing is pickled, so nothing in the bytes is code.
Whoever decodes gets arrays of their own: neither the bytes nor another value share their memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from apache_beam import coders
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import glad, ibcc
from crowdzoo.aggregation.engine.block import FIELDS, Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.right_wrong import Cells
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.errors import DataError

__all__ = [
    "BlockPosteriors",
    "Item",
    "Parcel",
    "Request",
    "ShardRows",
    "ShardStep",
    "State",
    "Step",
    "StoredBlock",
    "Sums",
    "Tally",
    "ValueCoder",
    "decode",
    "decode_in_place",
    "encode",
]


@dataclass(frozen=True, eq=False)
class BlockPosteriors:
    """What was found for a block's tasks.

    Attributes:
        tasks: task codes, int64 [T].
        posteriors: class probabilities, [T, K].
        labels: class codes, int64 [T].
        state: what the method knows of each task (GLAD: b, the log of the inverse difficulty), [T], or None.
        log_likelihood: of the block's annotations, where the method asks for it at the end (iBCC), nats.
    """

    tasks: NDArray[np.int64]
    posteriors: NDArray[np.float64]
    labels: NDArray[np.int64]
    state: NDArray[np.float64] | None = None
    log_likelihood: float = 0.0


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block that stays in its file until a step needs it. So that what crosses from step to step is only this.

    Attributes:
        path: path of a file that holds an `Item` with the block.
        size: size of the file, bytes.
        key: key of the block, see `crowdzoo.beam.items.key_of`.
    """

    path: str
    size: int
    key: int


@dataclass(frozen=True, eq=False)
class Item:
    """A block and what travels with it.

    Attributes:
        block: the annotations, or where they are. With `codes`, its annotators are numbered as they stand in `codes`
            (those of a stored block once it is read).
        codes: codes of the block's annotators, ascending, int64 [U]; None: the block has the codes themselves.
        state: what the method knows of each task (GLAD: b) before and after the last step, [2, T], or None.
        given: posteriors to begin from, [T, K], or None.
    """

    block: Block | StoredBlock
    codes: NDArray[np.int64] | None = None
    state: NDArray[np.float64] | None = None
    given: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of a method in one form, so that Beam can add them up; `a + b` is what both add.

    Attributes:
        rows: what belongs to one annotator, [R, ...].
        common: what belongs to none, a vector.
    """

    rows: NDArray[np.float64]
    common: NDArray[np.float64]

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.rows + other.rows, self.common + other.common)

    def __iadd__(self, other: Tally) -> Tally:
        np.add(self.rows, other.rows, out=self.rows)
        np.add(self.common, other.common, out=self.common)
        return self


@dataclass(frozen=True, eq=False)
class Sums:
    """What is added up for all starts.

    Attributes:
        parts: one tally a start; None: a start that needs none.
        before: the state that was counted under, without rows, where an M-step will ask for it.
    """

    parts: tuple[Tally | None, ...]
    before: State | None = None

    def __add__(self, other: Sums) -> Sums:
        pairs = zip(self.parts, other.parts, strict=True)
        parts = tuple(b if a is None else a if b is None else a + b for a, b in pairs)
        return Sums(parts, self.before if self.before is not None else other.before)


@dataclass(frozen=True, eq=False)
class State:
    """All starts between two steps.

    Attributes:
        runs: history of each start; `params` are those parameters that belong to no annotator, a vector.
        rows: parameters of each start's annotators, [R, ...]; nothing where annotators are in shards, or left out.
        penalties: the annotators' part of each start's objective; nothing where annotators are in shards.
    """

    runs: tuple[Run[NDArray[np.float64]], ...]
    rows: tuple[NDArray[np.float64], ...] = ()
    penalties: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class ShardRows:
    """Rows of some annotators of one shard.

    Attributes:
        shard: number of the shard.
        rows: rows of each start, [U, ...]; None where there is nothing to tell.
        codes: whose rows, counted from the shard's first annotator, [U]; None: all, or those who were asked for.
    """

    shard: int
    rows: tuple[NDArray[np.float64] | None, ...]
    codes: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """Which annotators of a shard a block needs.

    Attributes:
        key: key of the block.
        codes: counted from the shard's first annotator, [U].
    """

    key: int
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Parcel:
    """What waits for others under the same key: one type, so that groups have one coder."""

    content: Item | ShardRows | Request


@dataclass(frozen=True, eq=False)
class Step:
    """What one step gives for a block; it is taken apart where it was made."""

    key: int = -1
    item: Item | None = None
    sums: Sums | None = None
    parts: tuple[ShardRows, ...] = ()


@dataclass(frozen=True, eq=False)
class ShardStep:
    """What one step gives for a shard: its parameters and penalties, or one answer; taken apart where it was made.

    All answers together may be many times the shard, so each is an element of its own.

    Attributes:
        state: the shard's parameters, or None.
        penalties: the annotators' part of each start's objective, or None.
        answer: to a block's request, or None.
        key: key of that block.
    """

    state: ShardRows | None = None
    penalties: Sums | None = None
    answer: ShardRows | None = None
    key: int = -1


# === Bytes ===

HEAD = b"CZ\x01\x00"  # the third is the version
DTYPES = ("<f8", "<i8", "<i4", "|u1", "|b1", "<f4", "<u8", "<u4", "<u2", "<i2", "|i1")
KINDS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (Block, FIELDS),  # the place in this list is the kind's number in the bytes: append only
    *(
        (kind, tuple(field.name for field in fields(kind)))
        for kind in (
            Counts,
            Params,
            Run,
            BlockPosteriors,
            Item,
            Tally,
            Sums,
            State,
            ShardRows,
            Request,
            Parcel,
            Step,
            ShardStep,
            Cells,
            glad.Abilities,
            ibcc.Priors,
            ibcc.Beliefs,
            StoredBlock,
        )
    ),
)
NUMBERS = {kind: number for number, (kind, _) in enumerate(KINDS)}
SMALL = struct.Struct("<cBBx")  # what it is, dtype or kind, dimensions
INTEGER, FLOAT = struct.Struct("<q"), struct.Struct("<d")
RANGE = struct.Struct("<qqq")  # first, last and how many: the one too many shows damage


def encode(value: Any) -> bytes:
    """Bytes of a value: one of `KINDS`, made of these, arrays, numbers, text, None and tuples.

    Raises:
        TypeError: the value, or a part of it, is something else.
    """
    chunks: list[Any] = [HEAD]
    size = [len(HEAD)]

    def put(chunk: Any) -> None:
        chunks.append(chunk)
        size[0] += len(chunk)

    _write(value, put, size)
    return b"".join(chunks)


def _write(value: Any, put: Callable[[Any], None], size: list[int]) -> None:
    if value is None:
        put(SMALL.pack(b"N", 0, 0))
    elif isinstance(value, bool | np.bool_):
        put(SMALL.pack(b"T" if value else b"F", 0, 0))
    elif isinstance(value, int | np.integer):
        put(SMALL.pack(b"i", 0, 0) + INTEGER.pack(value))
    elif isinstance(value, float | np.floating):
        put(SMALL.pack(b"f", 0, 0) + FLOAT.pack(value))
    elif isinstance(value, str):
        text = value.encode()
        put(SMALL.pack(b"s", 0, 0) + INTEGER.pack(len(text)) + text)
    elif isinstance(value, np.ndarray):
        _write_array(value, put, size)
    elif type(value) is tuple:  # a named one would come back without its names
        put(SMALL.pack(b"t", 0, 0) + INTEGER.pack(len(value)))
        for part in value:
            _write(part, put, size)
    elif type(value) in NUMBERS:
        number = NUMBERS[type(value)]
        put(SMALL.pack(b"o", number, 0))
        for name in KINDS[number][1]:
            _write(getattr(value, name), put, size)
    else:
        raise TypeError(f"{type(value).__name__} does not cross workers.")


def _write_array(array: NDArray[Any], put: Callable[[Any], None], size: list[int]) -> None:
    array = np.ascontiguousarray(array).reshape(array.shape)  # the former makes one dimension of none
    code = array.dtype.newbyteorder("<").str
    if code not in DTYPES:
        raise TypeError(f"Arrays of {array.dtype} do not cross workers.")
    array = array.astype(code, copy=False)
    if array.ndim == 1 and code == "<i8" and _is_range(array):
        put(SMALL.pack(b"r", 0, 0) + RANGE.pack(array[0], array[-1], len(array)))
        return
    head = SMALL.pack(b"a", DTYPES.index(code), array.ndim) + b"".join(map(INTEGER.pack, array.shape))
    put(head + bytes(-(size[0] + len(head)) % 8))
    put(array.reshape(-1).view(np.uint8).data)


def _is_range(array: NDArray[np.int64]) -> bool:
    """Whether it counts up by one, as the tasks of most blocks do."""
    count = len(array)
    return count > 1 and int(array[-1]) - int(array[0]) == count - 1 and bool((array[1:] - array[:-1] == 1).all())


def decode(data: bytes) -> Any:
    """The value of `encode`'s bytes, in memory of its own.

    Raises:
        DataError: bytes of something else, of a later version, or too few or too many of them.
    """
    # aligned, and writeable: kernels are compiled for that
    return decode_in_place(np.frombuffer(data, np.uint8).copy())


def decode_in_place(memory: NDArray[np.uint8]) -> Any:
    """The value of `encode`'s bytes, whose arrays are parts of this memory.

    Raises:
        DataError: see `decode`.
    """
    head = memory[: len(HEAD)].tobytes()
    if len(head) < len(HEAD) or head[:2] != HEAD[:2]:
        raise DataError("These are not the bytes of a value of crowdzoo.beam.")
    if head[2:] != HEAD[2:]:
        raise DataError(f"These bytes have version {head[2]}; this release of crowdzoo reads version {HEAD[2]}.")
    try:
        value, end = _read(memory, memory.data, len(HEAD))
    except (struct.error, ValueError, IndexError, OverflowError, MemoryError, RecursionError) as error:
        raise DataError(f"A value's bytes are damaged ({error}).") from None
    if end != len(memory):
        raise DataError(f"A value's bytes go on where it ends: {len(memory) - end} more.")
    return value


def _read(memory: NDArray[np.uint8], view: memoryview, at: int) -> tuple[Any, int]:
    what, number, num_dims = SMALL.unpack_from(view, at)
    at += SMALL.size
    if what in b"NTF":
        return {b"N": None, b"T": True, b"F": False}[what], at
    if what == b"i":
        return INTEGER.unpack_from(view, at)[0], at + INTEGER.size
    if what == b"f":
        return FLOAT.unpack_from(view, at)[0], at + FLOAT.size
    if what == b"s":
        (length,) = INTEGER.unpack_from(view, at)
        begin = at + INTEGER.size
        end = _end(begin, length, memory)
        return memory[begin:end].tobytes().decode(), end
    if what == b"r":
        first, last, length = RANGE.unpack_from(view, at)
        if length < 1 or last - first != length - 1:  # nothing else bounds how much memory this takes
            raise ValueError("a range does not count up by one")
        return np.arange(length, dtype=np.int64) + first, at + RANGE.size
    if what == b"a":
        shape = tuple(INTEGER.unpack_from(view, at + INTEGER.size * axis)[0] for axis in range(num_dims))
        at += INTEGER.size * num_dims
        at += -at % 8
        dtype = np.dtype(DTYPES[number])
        if min(shape, default=0) < 0:
            raise ValueError("an array's shape is negative")
        end = _end(at, dtype.itemsize * math.prod(shape), memory)
        if dtype == np.bool_ and (memory[at:end] > 1).any():
            raise ValueError("a truth value is neither 0 nor 1")
        return memory[at:end].view(dtype).reshape(shape), end
    if what == b"t":
        (length,) = INTEGER.unpack_from(view, at)
        at += INTEGER.size
        if length < 0:
            raise ValueError("a tuple's length is negative")
        parts = []
        for _ in range(length):  # each takes some bytes, so that a wrong length finds their end
            part, at = _read(memory, view, at)
            parts.append(part)
        return tuple(parts), at
    if what == b"o":
        kind, names = KINDS[number]
        value = kind.__new__(kind)
        for name in names:
            part, at = _read(memory, view, at)
            object.__setattr__(value, name, part)
        return value, at
    raise ValueError(f"{what!r} is nothing known")


def _end(begin: int, size: int, memory: NDArray[np.uint8]) -> int:
    """Where something of `size` bytes ends."""
    if not 0 <= size <= len(memory) - begin:
        raise ValueError("they end too early")
    return begin + size


class ValueCoder(coders.Coder):
    """Beam's way to `encode` and `decode`; registered for all kinds of values.

    Args:
        kind: the class of the values.
    """

    def __init__(self, kind: type):
        self.kind = kind

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Any) -> Any:
        """Called by Beam's registry."""
        return cls(typehint)

    def to_type_hint(self) -> type:
        """The class of the values."""
        return self.kind

    def encode(self, value: Any) -> bytes:
        """Bytes of a value."""
        if type(value) is not self.kind:
            raise TypeError(f"This coder is for {self.kind.__name__}, got {type(value).__name__}.")
        return encode(value)

    def decode(self, encoded: bytes) -> Any:
        """The value.

        Raises:
            DataError: damaged bytes, or those of another kind.
        """
        value = decode(encoded)
        if type(value) is not self.kind:
            raise DataError(f"These are the bytes of a {type(value).__name__}, not of a {self.kind.__name__}.")
        return value

    def estimate_size(self, value: Any) -> int:
        """Roughly how many bytes; Beam asks often, so nothing is encoded."""
        return _rough_size(value)

    def is_deterministic(self) -> bool:
        """Equal arrays have equal bytes."""
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is ValueCoder and other.kind is self.kind

    def __hash__(self) -> int:
        return hash((ValueCoder, self.kind))


def _rough_size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes + 32
    if isinstance(value, str):
        return 16 + len(value)
    if isinstance(value, tuple):
        return 16 + sum(map(_rough_size, value))
    if type(value) in NUMBERS:
        return 8 + sum(_rough_size(getattr(value, name)) for name in KINDS[NUMBERS[type(value)]][1])
    return 16


for _kind, _ in KINDS:
    coders.registry.register_coder(_kind, ValueCoder)
