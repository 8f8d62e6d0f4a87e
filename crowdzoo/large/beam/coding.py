"""Values that workers exchange on Beam, and their coder; `crowdzoo.aggregation.engine.coding` defines the bytes."""

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

# Import `decode` and `encode` from here for Beam, so that its types of values are registered
__all__ = ["Starts", "ValueCoder", "decode", "encode"]


@dataclass(frozen=True, eq=False)
class Starts:
    """The `Run` of each start, or its `Tally` over some blocks; None if not needed."""

    parts: tuple[Any, ...]

    @property
    def done(self) -> bool:
        """Whether all runs are done."""
        return all(run.done for run in self.parts)


_ENGINE: tuple[type, ...] = (Run, Counts, Params, Answers, Cells, Agreement)
DATACLASSES = (*_ENGINE, Tally, BlockPosteriors, Starts, RatingSums)
KINDS.update({kind: tuple(field.name for field in fields(kind)) for kind in DATACLASSES})


class ValueCoder(coders.Coder):
    """Coder that applies `encode` and `decode`; registered for all types of values."""

    def encode(self, value: Any) -> bytes:
        """Converts a value to bytes."""
        return encode(value)

    def decode(self, encoded: bytes) -> Any:
        """Converts bytes to a value."""
        return decode(encoded)

    def estimate_size(self, value: Any) -> int:
        """Beam asks often, only for its metrics, so nothing is encoded."""
        return 0

    def is_deterministic(self) -> bool:
        """Equal arrays have equal bytes."""
        return True


for _kind in KINDS:
    coders.registry.register_coder(_kind, ValueCoder)
