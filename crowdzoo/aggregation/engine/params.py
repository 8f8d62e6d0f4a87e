"""Params: annotators' confusion matrices and the class prior, as logarithms."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T", bound="Additive")
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Params:
    """What an annotator model knows between two steps, in log space.

    Attributes:
        log_confusions: log P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K].
        log_class_prior: log P(truth k), [K].
    """

    log_confusions: NDArray[np.float64]
    log_class_prior: NDArray[np.float64]

    @classmethod
    def from_probabilities(cls, confusions: ArrayLike, class_prior: ArrayLike) -> Params:
        """Takes logarithms; a zero becomes the smallest normal number, so that no later sum meets `inf - inf`."""
        return cls(np.log(np.maximum(confusions, TINY)), np.log(np.maximum(class_prior, TINY)))

    @cached_property
    def log_table(self) -> NDArray[np.float64]:
        """`log_confusions` as the kernels read it: `[annotator, said, true]`, C-contiguous, [R, K, K]."""
        return np.ascontiguousarray(self.log_confusions.transpose(0, 2, 1))

    def __getstate__(self) -> dict[str, NDArray[np.float64]]:
        return {"log_confusions": self.log_confusions, "log_class_prior": self.log_class_prior}

    @property
    def confusions(self) -> NDArray[np.float64]:
        """Confusion matrices, `[annotator, true, said]`, rows sum to one, [R, K, K]."""
        return np.exp(self.log_confusions)

    @property
    def class_prior(self) -> NDArray[np.float64]:
        """Class probabilities, [K]."""
        return np.exp(self.log_class_prior)

    @property
    def num_annotators(self) -> int:
        """R."""
        return self.log_confusions.shape[0]

    @property
    def num_classes(self) -> int:
        """K."""
        return self.log_class_prior.shape[0]


class Additive:
    """Base of dataclasses of what a block adds to an M-step; `a + b` has the sums of their fields.

    Attributes:
        log_likelihood: of the block under the parameters that the counts were made with, nats.
        num_annotations: number of annotations that were counted.
    """

    log_likelihood: float
    num_annotations: int

    def __iadd__(self: T, other: T) -> T:
        for field in fields(self):  # type: ignore[arg-type]  # T is a dataclass
            mine = getattr(self, field.name)
            mine += getattr(other, field.name)  # of an array, in place
            object.__setattr__(self, field.name, mine)  # it may be frozen
        return self

    def __add__(self: T, other: T) -> T:
        names: Any = fields(self)  # type: ignore[arg-type]  # T is a dataclass
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in names))
