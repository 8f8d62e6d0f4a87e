"""Converts names to integer codes, chunk by chunk, without a Python object per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import ConfigError
from crowdzoo.files.text import is_utf8

# an integer as Python writes it that always fits int64
_CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_MERGE_AT = 1 << 18
# How Zooniverse names volunteers without an account; their hashed address follows
NOT_LOGGED_IN = "not-logged-in"


class Vocabulary:
    """Codes for names that arrive in chunks.

    Integers are kept, and sorted at the end. Each chunk of strings has a small dictionary; the dictionaries are merged
    when they contain as many names as the vocabulary itself. So the time is linear in the rows (times a logarithm), and
    the memory is 4 bytes per row plus at most twice the names.

    Args:
        names: names in code order; None accepts any names. Names are matched by their text: the label "0" of a CSV file
            is the class 0.
    """

    def __init__(self, names: np.ndarray | None = None):
        self.given = names
        self.num_given = 0 if names is None else len(names)
        self.takes_integers = names is None
        self.integers_are_strings = False
        self._names = None if names is None else pa.array(names) if names.dtype.kind == "i" else _text_array(names)
        self._integers: list[np.ndarray] = []
        self._codes: list[np.ndarray] = []
        self._pending: list[pa.Array] = []

    def add_integers(self, values: np.ndarray, are_strings: bool = False) -> None:
        """Adds a chunk of integers, int64 [n]; only while `takes_integers`.

        With `are_strings` they represent strings, and `name` and `finish` return strings.
        """
        self.integers_are_strings |= are_strings
        small = len(values) == 0 or (values.min() >= -(2**31) and values.max() < 2**31)
        self._integers.append(values.astype(np.int32) if small else values)

    def add(self, dictionary: pa.Array, codes: np.ndarray) -> None:
        """Adds a chunk.

        Args:
            dictionary: int64 or large_string, names of the chunk without nulls; repeats are allowed.
            codes: int32 [n], codes into `dictionary`.
        """
        self._leave_integers()
        self._append(dictionary, codes)

    def _leave_integers(self) -> None:
        """Converts earlier integers to codes, once not all names are integers."""
        self.takes_integers = False
        integers, self._integers = self._integers, []
        for values in integers:
            encoded = pa.array(values.astype(np.int64)).dictionary_encode()
            self._append(encoded.dictionary, encoded.indices.to_numpy())

    def _append(self, dictionary: pa.Array, codes: np.ndarray) -> None:
        self._pending.append(dictionary)
        self._codes.append(codes)
        waiting = sum(len(names) for names in self._pending)
        if waiting > max(_MERGE_AT, 0 if self._names is None else len(self._names)):
            self._merge()

    def _merge(self) -> None:
        parts = self._pending if self._names is None else [self._names, *self._pending]
        if not parts:
            return
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.large_string()) for part in parts]
        merged = pa.chunked_array(parts).dictionary_encode()
        # Arrow drops chunks without rows
        indices = iter([chunk.indices.to_numpy() for chunk in merged.chunks if len(chunk)])
        mappings = [next(indices) if len(part) else np.empty(0, dtype=np.int32) for part in parts]
        num_merged = len(self._codes) - len(self._pending)
        for number, mapping in enumerate(mappings[-len(self._pending) :] if self._pending else []):
            self._codes[num_merged + number] = mapping[self._codes[num_merged + number]]
        if merged.num_chunks:
            self._names = merged.chunk(0).dictionary
        self._pending = []

    def codes(self) -> np.ndarray:
        """Returns the codes of all rows, int32 or int64 [A], and releases them: call it once, after the last chunk.

        Names passed to the class come first, so a code of `num_given` or more is an unknown name.
        """
        if self._integers:
            values = np.concatenate(self._integers)
            self._integers = []
            names, codes = ranked(values)
            self._names = pa.array(names.astype(np.int64))
            if self.integers_are_strings:
                self._names = self._names.cast(pa.large_string())
            return codes
        self._merge()
        codes = np.concatenate(self._codes) if self._codes else np.empty(0, dtype=np.int32)
        self._codes = []
        return codes

    def join(self, other: Vocabulary, codes: np.ndarray, other_codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Adds the names of another vocabulary, for two columns with the same kind of names.

        Args:
            other: vocabulary with the same given names.
            codes: result of `codes`.
            other_codes: result of `other.codes`.

        Returns:
            Both as codes of this vocabulary, int64.
        """
        sizes = len(self), len(other)
        parts = [vocabulary._names for vocabulary in (self, other) if vocabulary._names is not None]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.large_string()) for part in parts]
        if parts:
            joint = pa.concat_arrays(parts).dictionary_encode()
            self._names, places = joint.dictionary, joint.indices.to_numpy().astype(np.int64)
            codes, other_codes = places[: sizes[0]][codes], places[sizes[0] :][other_codes]
        return codes.astype(np.int64), other_codes.astype(np.int64)

    def __len__(self) -> int:
        return 0 if self._names is None else len(self._names)

    def name(self, code: int) -> Any:
        """Returns the name of a code that `codes` returned."""
        assert self._names is not None
        return self._names[int(code)].as_py()

    def finish(self, codes: np.ndarray, text: bool, numbers: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Returns the final codes and names.

        Args:
            codes: codes of the rows to keep, [A]; without given names, only names of these rows are kept.
            text: the names come from a text file, so names that are all integers become integers.
            numbers: with `text`, convert names also if some are written as floats; `1.0` is then the name 1, as in a
                file with types.

        Returns:
            Codes int64 [A] and names [n]: given names in their order, otherwise sorted.
        """
        if self.given is not None:
            return codes.astype(np.int64), self.given
        if self._names is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        used = np.flatnonzero(np.bincount(codes, minlength=len(self)))
        names = self._names.take(pa.array(used))
        merged = np.arange(len(used))
        if text and numbers and pa.types.is_large_string(names.type):
            plain = without_zeros(names)
            if text_as_integers(plain) is not None:
                encoded = plain.dictionary_encode()
                merged, names = encoded.indices.to_numpy(), encoded.dictionary
        order, sorted_names = sort_names(names, text)
        rank = np.empty(len(names), dtype=np.int64)
        rank[order] = np.arange(len(names))
        place = np.full(len(self._names), -1, dtype=np.int64)
        place[used] = rank[merged]
        if not isinstance(sorted_names, np.ndarray):
            sorted_names = sorted_names.to_numpy(zero_copy_only=False)
        return place[codes], sorted_names


def text_as_integers(values: pa.Array) -> np.ndarray | None:
    """Parses integers that are written as Python writes them (7, not 07 or +7); None if any value is not.

    Args:
        values: large_string [n].

    Returns:
        int64 [n] or None.
    """
    if values.null_count:
        return None
    try:
        numbers = values.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    # every other way to write an integer is longer, so the total length detects it
    shortest = len(numbers) + int(np.count_nonzero(numbers < 0))
    size, power = np.abs(numbers), 10
    largest = int(size.max(initial=0))
    if largest >= 10**18 or int(size.min(initial=0)) < 0:
        return None
    while power <= largest:
        shortest += int(np.count_nonzero(size >= power))
        power *= 10
    return numbers if pc.sum(pc.binary_length(values)).as_py() in (shortest, None) else None


def ranked(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sorted values, and the rank of each value among them; avoids sorting if the range is small."""
    if not len(values):
        return values, np.empty(0, dtype=np.int32)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > 4 * len(values) + 1024:
        return np.unique(values, return_inverse=True)
    # differences from a negative start may exceed int32
    shifted: np.ndarray = np.subtract(values, low, dtype=np.int64 if low < 0 else values.dtype)
    present = np.zeros(span, dtype=bool)
    present[shifted] = True
    place: np.ndarray = np.cumsum(present, dtype=np.int32 if span < 2**31 else np.int64)
    return np.flatnonzero(present) + low, place[shifted] - 1


def sort_names(names: pa.Array, text: bool = False) -> tuple[np.ndarray, np.ndarray | pa.Array]:
    """Sorts names: integers, and strings that are all integers, by value; other strings by code point.

    Args:
        names: int64 or large_string, distinct.
        text: whether to convert strings that are all integers to integers.

    Returns:
        The sorting order, int64 [n], and the sorted names: int64 [n], or large_string.
    """
    if pa.types.is_integer(names.type):
        numbers = names.to_numpy()
        order = np.argsort(numbers, kind="stable")
        return order, numbers[order]
    canonical = pc.match_substring_regex(names, _CANONICAL_INTEGER)
    if len(names) and pc.all(canonical).as_py():
        numbers = names.cast(pa.int64()).to_numpy()
        order = np.argsort(numbers, kind="stable")
        if text:
            return order, numbers[order]
    else:
        order = pc.sort_indices(names).to_numpy().astype(np.int64)
    return order, names.take(pa.array(order))


def name_texts(names: np.ndarray) -> np.ndarray:
    """Converts names to strings, objects [n]; NumPy's strings would all have the longest size and end at a NUL."""
    return np.fromiter(map(str, names.tolist()), dtype=object, count=len(names))


def is_among(names: np.ndarray | pa.Array, wanted: np.ndarray | list[str]) -> np.ndarray:
    """Whether each name is in `wanted`, by text, bool [n]; NumPy would compare all pairs of objects."""
    texts = names.cast(pa.large_string()) if isinstance(names, pa.Array) else _text_array(names)
    return pc.is_in(texts, value_set=_text_array(np.asarray(wanted, object))).to_numpy(zero_copy_only=False)


def without_zeros(texts: pa.Array) -> pa.Array:
    """Rewrites integers that are written as floats: `1.0` becomes `1`."""
    return pc.replace_substring_regex(texts, r"^(-?[0-9]+)\.0+$", r"\1")


def as_named(texts: pa.Array, names: np.ndarray | list[str]) -> pa.Array:
    """Rewrites integers written as floats (`1.0` becomes `1`) unless they are in `names`, large_string [n]."""
    return pc.if_else(pa.array(is_among(texts, names)), texts, without_zeros(texts))


def names_array(values: Any, what: str) -> np.ndarray:
    """Converts a vocabulary from the user to int64 [n] if all names are integers, else to objects [n].

    Args:
        values: names in code order.
        what: name of the argument, for errors.

    Raises:
        ConfigError: two names with the same text, an empty name, or more than one axis.
    """
    if isinstance(values, str):
        raise ConfigError(f"{what} must be a list of names, got {values!r}")
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    names = np.fromiter(values, dtype=object, count=len(values))
    seen: set[str] = set()
    for name in values:
        label = str(name)
        if name is None or not label.strip():
            raise ConfigError(f"{what} holds an empty name.")
        if not is_utf8(label):
            raise ConfigError(f"{what} holds {name!r}, which is half a character.")
        if label in seen:
            raise ConfigError(f"{what} holds {name!r} twice; names are matched by their text.")
        seen.add(label)
    if values and all(isinstance(name, int) and not isinstance(name, bool) for name in values):
        return names.astype(np.int64)
    return names


def _text_array(names: np.ndarray) -> pa.Array:
    return pa.array(name_texts(names), pa.large_string())
