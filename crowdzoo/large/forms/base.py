"""Form: an algorithm as one pass over blocks after the other.

A driver adds up what the blocks give under the present parameters; the next ones follow from that sum. The steps are
those of the local engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.dawid_skene import start_weights
from crowdzoo.aggregation.classes.initial import initial_posteriors
from crowdzoo.aggregation.engine import bayes
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.kernels import vote_shares
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.params import Additive
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Array = NDArray[np.float64]
Begin = tuple[Any, Array | None]
Answer = Callable[[Any], "BlockPosteriors"]


@dataclass(frozen=True, eq=False)
class BlockPosteriors:
    """What was found for a block's tasks, or for all tasks.

    Attributes:
        tasks: task codes, int64 [T].
        posteriors: class probabilities, [T, K]; of ratings two numbers a task, see the form.
        labels: class codes, int64 [T]; of ratings zeros.
    """

    tasks: NDArray[np.int64]
    posteriors: Array
    labels: NDArray[np.int64]


@dataclass(eq=False)
class Tally(Additive):
    """What blocks add.

    Attributes:
        counts: as the method's own M-step takes them.
        more: what the method counts beside.
    """

    counts: Any
    more: Any = 0


class Form(ABC):
    """Base of all, with Dawid-Skene's counts and starts. Parameters are those that the local engine's `Run` has.

    Args:
        aggregator: the settings.
        num_annotators: R.
        num_classes: K.

    Attributes:
        starts: how many.
        max_iter: most M-steps after the first; 0: the first parameters are the last.
    """

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        self.aggregator, self.num_annotators, self.num_classes = aggregator, num_annotators, num_classes
        self.starts: int = getattr(aggregator, "num_starts", 1)
        self.max_iter: int = getattr(aggregator, "max_iter", 0)

    @property
    def num_columns(self) -> int:
        """Columns of `BlockPosteriors.posteriors`."""
        return self.num_classes

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a checkpoint must have in common with a fit, beside the data."""
        return self.aggregator, self.num_annotators, self.num_classes

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        """What the first start begins from: parameters, posteriors [N, K]; each may be None.

        Raises:
            ConfigError, DataError: `initial` does not fit.
        """
        if initial is None:
            return None, None
        if not hasattr(self.aggregator, "warm_start"):
            raise ConfigError(f"{self.aggregator.title} takes no `initial`.")
        run = self.aggregator.warm_start(annotations, initial)
        return (None, initial_posteriors(initial, annotations)) if run is None else (run.params, None)

    # === Over blocks ===

    def zero(self) -> Tally:
        """Counts of nothing."""
        return Tally(Counts.zero(self.num_annotators, self.num_classes))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        """Adds a block under given posteriors [T, K], or under votes."""
        if given is not None:
            self.add(total, block, block.clamped(given))
        else:
            weights = start_weights(self.num_annotators, start, self.aggregator.seed)
            self.add(total, block, vote_shares(block, weights, self.num_classes))

    def add(self, total: Tally, block: Block, shares: Array) -> None:
        """Adds a block under posteriors [T, K]."""
        total.counts.add(block, shares)

    def prepared(self, params: Any) -> Any:
        """Parameters as the kernels want them."""
        return params

    def expect(self, total: Tally, block: Any, prepared: Any, counting: bool) -> None:
        """Adds a block under parameters. Without `counting`: the likelihood alone."""
        total.counts.add_expected(block, prepared, counting)

    # === From sums ===

    @abstractmethod
    def start(self, total: Tally) -> Any:
        """The first parameters."""

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        """A run after one more iteration, from what was counted under its parameters."""
        found: Run[Any] = self.aggregator.step(run, total.counts)
        return found

    def next_run(self, run: Run[Any], total: Tally) -> Run[Any]:
        """A run after one more pass; before the first it has no parameters."""
        if run.params is not None:
            return self.step(run, total)
        done = not self.max_iter
        return Run(self.start(total), converged=done, done=done)

    # === At the end ===

    def posteriors(self, block: Any, prepared: Any) -> Array:
        """Class probabilities, [T, K]."""
        return bayes.posteriors(block, prepared)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class codes, [T]."""
        return choose_labels(posteriors, tasks, getattr(self.aggregator, "ties", "random"), self.aggregator.seed)

    def answers(self, params: Any) -> Answer:
        """What the last parameters say of blocks."""
        prepared = self.prepared(params)

        def answer(block: Any) -> BlockPosteriors:
            posteriors = self.posteriors(block, prepared)
            return BlockPosteriors(block.tasks, posteriors, self.labels(posteriors, block.tasks))

        return answer

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Any:
        """What the aggregator's `fit` gives, whether or not the run has converged."""
        return self.aggregator.result(data, run, found.posteriors, found.labels)
