"""The algorithms as the driver on Beam sees them: what belongs to an annotator, what to all, and what to a task.

The steps themselves are those of the local engine; here only their arguments are laid out. Each works on some of the
annotators alone: M-steps and penalties are sums, or lists, over annotators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import dawid_skene, glad, ibcc, majority_vote, one_coin
from crowdzoo.aggregation.classes.initial import initial_posteriors
from crowdzoo.aggregation.classes.majority_vote import vote_shares
from crowdzoo.aggregation.engine import bayes
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.right_wrong import Answers, Cells, answers_of, given_answers, posteriors_of
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.beam.values import Tally
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["Begin", "Found", "Method", "method_of", "runs_on_beam"]

Array = NDArray[np.float64]
Begin = tuple[tuple[Array, Array] | None, Array | None, Array | None]


class Found(NamedTuple):
    """What was found for all tasks.

    Attributes:
        posteriors: class probabilities, [N, K].
        labels: class codes, [N].
        states: of the tasks, [N]; without meaning where the method has none.
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
        params_type: class of the local engine's parameters.
    """

    has_state = False
    first_state = 0.0
    needs_rows = False
    params_type: type = Params

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        self.aggregator = aggregator
        self.num_annotators = num_annotators
        self.num_classes = num_classes
        self.starts = getattr(aggregator, "num_starts", 1)
        self.max_iter: int = getattr(aggregator, "max_iter", 0)
        self.tol: float = getattr(aggregator, "tol", 0.0)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Of an annotator's counts, and of its parameters."""
        return (self.num_classes, self.num_classes)

    @property
    def row_bytes(self) -> int:
        """Bytes of an annotator's parameters."""
        return 8 * int(np.prod(self.row_shape))

    def zero(self, num_annotators: int) -> Tally:
        """Counts of nothing."""
        return Tally(np.zeros((num_annotators, *self.row_shape)), np.zeros(self.num_classes + 3))

    @abstractmethod
    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        """What the first start begins from: (rows, common) or None, posteriors [N, K] or None, task states [N] or None.

        Raises:
            ConfigError, DataError: `initial` does not fit.
        """

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

    def means(self, rows: Array, common: Array) -> Any:
        """Parameters as probabilities, where they are others than those that the kernels want."""
        return None

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        """Class probabilities, [T, K]."""
        return bayes.posteriors(block, params)

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

    def result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        """What the aggregator's `fit` gives."""
        self.aggregator.warn_unless_converged(run, len(annotations))
        return self.aggregator.result(annotations, run, found.posteriors, found.labels)

    def _without_rows(self) -> Array:
        return np.zeros((0, *self.row_shape))


class _MajorityVote(Method):
    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is not None:
            raise ConfigError("Majority vote takes no `initial`.")
        return None, None, None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        params = majority_vote.update(self.counts(total))
        return params.log_table, params.log_class_prior

    def objective(self, common_counts: Array, common: Array) -> float:
        return 0.0

    def penalty(self, rows: Array) -> float:
        return 0.0

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        settings = self.aggregator
        return majority_vote.posteriors(block, params, settings.voting, settings.ties, settings.seed)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return choose_labels(posteriors, tasks, self.aggregator.ties, self.aggregator.seed)

    def result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        return Aggregation.of("majority-vote", annotations, found.posteriors, found.labels, run.params)


class _DawidSkene(Method):
    """Rows are log P(said | true), `[annotator, said, true]`."""

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is not None and (isinstance(initial, Aggregation) or np.ndim(initial) != 2):
            return self.rows_of(self.aggregator.warm_start(annotations, initial).params), None, None
        return None, initial_posteriors(initial, annotations), None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(dawid_skene.update(self.counts(total), self.aggregator.prior, self.aggregator.diagonal))

    def objective(self, common_counts: Array, common: Array) -> float:
        counts = self.counts(Tally(self._without_rows(), common_counts))
        settings = self.aggregator
        return dawid_skene.objective(counts, Params(counts.table, common), settings.prior, settings.diagonal)

    def penalty(self, rows: Array) -> float:
        params = Params(rows.transpose(0, 2, 1), np.zeros(0))
        settings = self.aggregator
        return dawid_skene.objective(Counts(rows, params.log_class_prior), params, settings.prior, settings.diagonal)


class _IBCC(Method):
    """Rows are expected counts, from which each worker takes the expected logarithms that it needs."""

    params_type = ibcc.Beliefs

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        return None, initial_posteriors(initial, annotations), None

    def prepared(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).params

    def params(self, rows: Array, common: Array) -> Any:
        return ibcc.update(Counts(rows, common), self.aggregator.priors(self.num_classes))

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return params.counts.table, params.counts.classes

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        total.common[-2] += (~block.informed).sum()
        return super().expect(total, block, params, state, counting)

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return total.rows, total.common[: self.num_classes].copy()

    def objective(self, common_counts: Array, common: Array) -> float:
        counts = self.counts(Tally(self._without_rows(), common_counts))
        return ibcc.bound(counts, self.params(counts.table, common), int(common_counts[-2]))

    def penalty(self, rows: Array) -> float:
        return -self.params(rows, np.zeros(self.num_classes)).divergence

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        found = bayes.posteriors(block, params)
        found[~block.informed] = means.class_prior
        return found

    def means(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).means

    def last_likelihood(self, block: Block, means: Any) -> float:
        counts = self.counts(self.zero(means.num_annotators))
        counts.add_expected(block, means, False)
        return counts.log_likelihood

    def result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        self.aggregator.warn_unless_converged(run, len(annotations))
        return self.aggregator.result(annotations, run, found.posteriors, found.labels, found.log_likelihood)


class _OneCoin(Method):
    """Rows are two logarithms, of a right annotation and of a certain wrong one; counts are right and wrong ones."""

    params_type = Cells

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (2,)

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if one_coin._knows_skills(initial, annotations):
            return self.rows_of(self.aggregator.warm_start(initial).params), None, None
        return None, initial_posteriors(initial, annotations), None

    def _add(self, total: Tally, block: Block, given: Array) -> None:
        self._add_answers(total, given_answers(block, block.clamped(given), (len(total.rows),)))

    def _add_answers(self, total: Tally, answers: Answers) -> None:
        total.rows[:, 0] += answers.right
        total.rows[:, 1] += answers.wrong
        total.common[: self.num_classes] += answers.classes
        total.common[-3] += answers.log_likelihood
        total.common[-1] += answers.num_annotations

    def prepared(self, rows: Array, common: Array) -> Any:
        return Cells(np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]), common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return np.stack([params.right, params.wrong], axis=1), params.class_prior

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        self._add_answers(total, answers_of([block], params))
        return None

    def _answers(self, rows: Array, common_counts: Array) -> Answers:
        classes = common_counts[: self.num_classes]
        return Answers(rows[:, 0], rows[:, 1], classes, float(common_counts[-3]), int(common_counts[-1]))

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(one_coin.update(self._answers(total.rows, total.common), self.aggregator.priors))

    def objective(self, common_counts: Array, common: Array) -> float:
        nobody = self._without_rows()
        params = self.prepared(nobody, common)
        return one_coin.objective(self._answers(nobody, common_counts), params, self.aggregator.priors)

    def penalty(self, rows: Array) -> float:
        params = self.prepared(rows, np.ones(self.num_classes))  # of which the logarithms are zero
        counts = self._answers(self._without_rows(), np.zeros(self.num_classes + 3))
        return one_coin.objective(counts, params, self.aggregator.priors)

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        return posteriors_of(block, params)


class _Glad(Method):
    """Rows are abilities; counts are pull and weight; the state of a task is b."""

    has_state = True
    needs_rows = True
    params_type = glad.Abilities

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        super().__init__(aggregator, num_annotators, num_classes)
        self.first_state = float(aggregator.b_mean)

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (2,)  # of the counts; a row of parameters has its ability first, and zero

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is None:
            return None, None, None
        if glad._knows_abilities(initial, annotations):
            run, b = self.aggregator.begin(annotations, initial)
            return self.rows_of(run.params), None, b
        return None, initial_posteriors(initial, annotations), None

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        b = np.full(len(block.tasks), self.first_state)
        return b if given is None else self._step(total, block, self._begin(len(total.rows)), b, block.clamped(given))

    def _begin(self, num_annotators: int) -> glad.Abilities:
        alpha = np.full(num_annotators, float(self.aggregator.alpha_mean))
        return glad.Abilities(alpha, np.full(self.num_classes, 1 / self.num_classes))

    def _step(self, total: Tally, block: Block, params: glad.Abilities, b: Array, given: Array | None) -> Array:
        counts, new = glad.contribution(block, params, b, self.aggregator.priors, given)
        total.rows[:, 0] += counts.pull
        total.rows[:, 1] += counts.weight
        total.common[: self.num_classes] += counts.classes
        total.common[-3:] += counts.log_likelihood, counts.log_prior, counts.num_annotations
        return new

    def prepared(self, rows: Array, common: Array) -> Any:
        return glad.Abilities(np.ascontiguousarray(rows[:, 0]), common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return np.stack([params.alpha, np.zeros_like(params.alpha)], axis=1), params.class_prior

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        assert state is not None
        return self._step(total, block, params, state, None)

    def _glad_counts(self, rows: Array, common_counts: Array) -> glad.GladCounts:
        classes, (likelihood, prior, number) = common_counts[: self.num_classes], common_counts[-3:].tolist()
        return glad.GladCounts(rows[:, 0], rows[:, 1], classes, likelihood, prior, int(number))

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        params = self._begin(len(total.rows))
        if common is not None:
            params = replace(params, class_prior=common)
        if rows is not None:
            params = replace(params, alpha=rows[:, 0])
        return self.rows_of(glad.update(self._glad_counts(total.rows, total.common), params, self.aggregator.priors))

    def objective(self, common_counts: Array, common: Array) -> float:
        nobody = self._without_rows()
        counts = self._glad_counts(nobody, common_counts)
        return glad.objective(counts, self.prepared(nobody, common), self.aggregator.priors)

    def penalty(self, rows: Array) -> float:
        counts = self._glad_counts(rows, np.zeros(self.num_classes + 3))
        return glad.objective(counts, self.prepared(rows, np.zeros(0)), self.aggregator.priors)

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        assert state is not None
        return glad.posteriors(block, params, state)

    def result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        self.aggregator.warn_unless_converged(run, len(annotations))
        return self.aggregator.result(annotations, run, found.posteriors, found.labels, found.states)


METHODS: dict[type, type[Method]] = {
    majority_vote.MajorityVote: _MajorityVote,
    dawid_skene.DawidSkene: _DawidSkene,
    one_coin.OneCoinDawidSkene: _OneCoin,
    glad.GLAD: _Glad,
    ibcc.IBCC: _IBCC,
}


def runs_on_beam(aggregator: Any) -> bool:
    """Whether an aggregator has a form on Beam."""
    return type(aggregator) in METHODS


def method_of(aggregator: Any, num_annotators: int, num_classes: int) -> Method:
    """The form on Beam of an aggregator.

    Raises:
        ConfigError: there is none.
    """
    kind = METHODS.get(type(aggregator))
    if kind is None:
        known = ", ".join(sorted(known.__name__ for known in METHODS))
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam: use one of {known}.")
    return kind(aggregator, num_annotators, num_classes)
