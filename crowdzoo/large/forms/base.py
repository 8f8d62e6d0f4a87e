"""Method: an algorithm as a driver of blocks sees it: what belongs to an annotator, what to all, what to a task.

The steps themselves are those of the local engine; here only their arguments are laid out. Each works on some of the
annotators alone: M-steps and penalties are sums, or lists, over annotators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import dawid_skene
from crowdzoo.aggregation.classes.initial import initial_posteriors
from crowdzoo.aggregation.engine import bayes
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.kernels import vote_shares
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["Begin", "Found", "Method"]

Array = NDArray[np.float64]
Begin = tuple[tuple[Array, Array] | None, Array | None, Array | None]


class Found(NamedTuple):
    """What was found for all tasks, or for all tokens of sentences.

    Attributes:
        posteriors: class probabilities, [N, K]; of ratings see `RatingEMForm` and `PlainRatingForm`.
        labels: class codes, [N]; of ratings zeros.
        states: states of the tasks, [N]; without meaning where the method has none.
        log_likelihood: see `Method.last_likelihood`.
    """

    posteriors: Array
    labels: NDArray[np.int64]
    states: Array
    log_likelihood: float


class Method(ABC):
    """Base of all: Dawid-Skene's counts and starts.

    A tally's `common` is the expected number of tasks of each class [K], the log-likelihood (nats), a further sum of
    the method's own, and the number of annotations.

    Args:
        aggregator: the settings.
        num_annotators: R, of all.
        num_classes: K.

    Attributes:
        starts: how many.
        max_iter: most M-steps; 0: the first parameters are the last.
        tol: see the aggregators.
        has_state: whether something of each task goes on from step to step.
        needs_rows: whether an M-step looks at the annotators' parameters before it.
        first_state: what that is in the beginning.
        judges_m_step: whether `iterated` stands for `maximise` and `objective`.
        takes_shards: whether annotators may be cut in shards, so that no worker has the parameters of all.
        converges: whether iterations end by themselves, so that too few are worth a warning.
        params_type: class of the local engine's parameters.
        also_found: what a result is made of beside posteriors and labels, by its name in `Found`.
    """

    has_state = False
    first_state = 0.0
    needs_rows = False
    judges_m_step = False
    takes_shards = True
    converges = True
    params_type: type = Params
    also_found: tuple[str, ...] = ()

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        self.aggregator = aggregator
        self.num_annotators = num_annotators
        self.num_classes = num_classes
        self.starts = getattr(aggregator, "num_starts", 1)
        self.max_iter: int = getattr(aggregator, "max_iter", 0)
        self.tol: float = getattr(aggregator, "tol", 0.0)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Of an annotator's counts."""
        return (self.num_classes, self.num_classes)

    @property
    def params_shape(self) -> tuple[int, ...]:
        """Of an annotator's parameters."""
        return self.row_shape

    @property
    def row_bytes(self) -> int:
        """Bytes of an annotator's parameters."""
        return 8 * int(np.prod(self.params_shape))

    @property
    def num_columns(self) -> int:
        """Columns of `Found.posteriors`."""
        return self.num_classes

    @property
    def num_steps(self) -> int:
        """Most E-steps: one for each M-step, and a last one that tells what the last M-step was worth."""
        return self.max_iter + 1 if self.max_iter else 0

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint's method has to have in common with this one, beside settings and sizes."""
        return {}

    @property
    def no_rows(self) -> Array:
        """Parameters of no annotator."""
        return np.zeros((0, *self.params_shape))

    def zero(self, num_annotators: int) -> Tally:
        """Counts of nothing."""
        return Tally(np.zeros((num_annotators, *self.row_shape)), np.zeros(self.num_classes + 3))

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        """What the first start begins from: (rows, common) or None, posteriors [N, K] or None, task states [N] or None.

        Raises:
            ConfigError, DataError: `initial` does not fit.
        """
        return None, initial_posteriors(initial, annotations), None

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        """Adds a block under given posteriors [T, K], or under votes; gives its first task states, [T]."""
        if given is None:
            weights = dawid_skene.start_weights(self.num_annotators, start, getattr(self.aggregator, "seed", 0))
            given = vote_shares(block, weights if codes is None else weights[codes], self.num_classes)
        self._add(total, block, given)
        return None

    def _add(self, total: Tally, block: Block, given: Array) -> None:
        counts = self.counts(total)
        counts.add(block, block.clamped(given))
        total.common[-1] += len(block)

    def counts(self, total: Tally) -> Counts:
        """A tally as counts, on the same memory."""
        num_classes = self.num_classes
        return Counts(total.rows, total.common[:num_classes], float(total.common[-3]), int(total.common[-1]))

    def prepared(self, rows: Array, common: Array) -> Any:
        """Parameters as the kernels want them."""
        return Params(rows.transpose(0, 2, 1), common)

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        """E-step of a block: adds to `total`; gives new task states, [T]. Without `counting`: the likelihood alone."""
        counts = self.counts(total)
        counts.log_likelihood = 0.0
        counts.add_expected(block, params, counting)
        total.common[-3] += counts.log_likelihood
        total.common[-1] += len(block)
        return None

    @abstractmethod
    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        """M-step: rows of the annotators that `total` has rows of, and what is common."""

    @abstractmethod
    def objective(self, common_counts: Array, common: Array) -> float:
        """What EM never lets fall, without the annotators' part."""

    @abstractmethod
    def penalty(self, rows: Array) -> float:
        """The part of the objective that is a sum over annotators."""

    def iterated(self, run: Run[Array], total: Tally, rows: Callable[[], Array]) -> tuple[Run[Array], Array]:
        """One iteration, where the objective follows from an M-step and not from the E-step before it.

        Args:
            run: before.
            total: counts under the run's parameters, of all annotators.
            rows: gives the annotators' parameters before.
        """
        raise NotImplementedError

    def means(self, rows: Array, common: Array) -> Any:
        """Parameters as probabilities, where they are others than those that the kernels want."""
        return None

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        """Class probabilities, [T, K]."""
        return bayes.posteriors(block, params)

    def answers(
        self, block: Any, params: Any, means: Any, state: Array | None
    ) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
        """Tasks of a block (of sentences tokens), what is found for each, and labels: [T], [T, columns], [T]."""
        posteriors = self.posteriors(block, params, means, state)
        return block.tasks, posteriors, self.labels(posteriors, block.tasks)

    def last_likelihood(self, block: Block, means: Any) -> float:
        """Log-likelihood of a block (nats), where the method states another than that of the last step."""
        return 0.0

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class codes, [T]."""
        return choose_labels(posteriors, tasks, seed=self.aggregator.seed)

    def params(self, rows: Array, common: Array) -> Any:
        """Parameters as the local engine's `Run` has them."""
        return self.prepared(rows, common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        """The reverse of `params`."""
        return params.log_table, params.log_class_prior

    def difficulty(self, states: Array) -> Array | None:
        """One number a task out of its state, [T]; None where the method has no such number."""
        return None

    def result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        """What the aggregator's `fit` gives."""
        if self.max_iter and self.converges:
            self.aggregator.warn_unless_converged(run, len(annotations))
        return self.found_result(annotations, run, found)

    def found_result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        """What was found, whether or not the run has converged."""
        more = [getattr(found, name) for name in self.also_found]
        return self.aggregator.result(annotations, run, found.posteriors, found.labels, *more)
