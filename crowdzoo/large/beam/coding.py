"""What crosses from worker to worker on Beam, and its coder; `crowdzoo.aggregation.engine.coding` has the bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from apache_beam import coders

from crowdzoo.aggregation.classes.robust import Agreement
from crowdzoo.aggregation.engine.coding import KINDS, decode, encode
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.engine.right_wrong import Answers, Cells
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.large.forms import BlockPosteriors, RatingSums, Tally

# Whoever needs `decode` and `encode` on Beam imports them from here, so that its kinds of values are known
__all__ = ["Starts", "ValueCoder", "decode", "encode"]


@dataclass(frozen=True, eq=False)
class Starts:
    """Of each start its `Run`, or the `Tally` of some blocks; None where it needs none."""

    parts: tuple[Any, ...]

    @property
    def done(self) -> bool:
        """Whether all runs are."""
        return all(run.done for run in self.parts)


_ENGINE: tuple[type, ...] = (Run, Counts, Params, Answers, Cells, Agreement)
DATACLASSES = (*_ENGINE, Tally, BlockPosteriors, Starts, RatingSums)
KINDS.update({kind: tuple(field.name for field in fields(kind)) for kind in DATACLASSES})


class ValueCoder(coders.Coder):
    """Beam's way to `encode` and `decode`; registered for all kinds of values."""

    def encode(self, value: Any) -> bytes:
        """Bytes of a value."""
        return encode(value)

    def decode(self, encoded: bytes) -> Any:
        """The value."""
        return decode(encoded)

    def estimate_size(self, value: Any) -> int:
        """Beam asks often, for its metrics alone; so nothing is encoded."""
        return 0

    def is_deterministic(self) -> bool:
        """Equal arrays have equal bytes."""
        return True


for _kind in KINDS:
    coders.registry.register_coder(_kind, ValueCoder)
