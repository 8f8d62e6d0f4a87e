"""Coders of what crosses from worker to worker on Beam; `crowdzoo.aggregation.engine.coding` has the bytes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from apache_beam import coders

from crowdzoo.aggregation.classes import glad, ibcc
from crowdzoo.aggregation.engine.coding import KINDS, decode, decode_in_place, encode
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.right_wrong import Cells
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock
from crowdzoo.errors import DataError
from crowdzoo.large.beam import values
from crowdzoo.large.forms.tally import Tally

# Whoever needs these on Beam imports them from here, so that its kinds of values are known in each process
__all__ = ["ValueCoder", "decode", "decode_in_place", "encode"]

DATACLASSES: tuple[type, ...] = (
    *(Counts, Params, Run, Cells, glad.Abilities, ibcc.Priors, ibcc.Beliefs, Tally),
    *(SentenceBlock, values.BlockPosteriors, values.Item, values.Request, values.ShardRows),
    *(values.State, values.StoredBlock, values.Sums),
)
KINDS.update({kind: tuple(field.name for field in fields(kind)) for kind in DATACLASSES})


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
        if not isinstance(value, self.kind):
            raise TypeError(f"This coder is for {self.kind.__name__}, got {type(value).__name__}.")
        return encode(value)

    def decode(self, encoded: bytes) -> Any:
        """The value.

        Raises:
            DataError: damaged bytes, or those of another kind.
        """
        value = decode(encoded)
        if not isinstance(value, self.kind):
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
    if type(value) in KINDS:
        return 8 + sum(_rough_size(getattr(value, name)) for name in KINDS[type(value)])
    return 16


for _kind in (*KINDS, values.Message):
    coders.registry.register_coder(_kind, ValueCoder)
