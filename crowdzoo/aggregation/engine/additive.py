"""Additive: counts that are added up field by field."""

from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["Additive"]

T = TypeVar("T", bound="Additive")


class Additive:
    """Base of dataclasses of what a block adds to an M-step; `a + b` has the sums of their fields.

    Attributes:
        log_likelihood: of the block under the parameters that the counts were made with, nats.
        num_annotations: number of annotations that were counted.
    """

    log_likelihood: float
    num_annotations: int

    def __add__(self: T, other: T) -> T:
        names: Any = fields(self)  # type: ignore[arg-type]  # T is a dataclass
        return type(self)(*(getattr(self, each.name) + getattr(other, each.name) for each in names))
