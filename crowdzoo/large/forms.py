"""Form: an algorithm as repeated passes over blocks; and Job: a table in memory and a method.

A driver sums what the blocks return under the current parameters; the sum determines the next parameters. The steps
are those of the local engine.
"""

# ruff: noqa: D102  (`Form` describes them)
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.classes import dawid_skene, majority_vote, one_coin, robust
from crowdzoo.aggregation.classes.iterative import initial_posteriors, warn_unless_converged
from crowdzoo.aggregation.classes.robust import Agreement
from crowdzoo.aggregation.engine.block import Additive, Block, blocks_of, checked_gold
from crowdzoo.aggregation.engine.confusions import Counts, block_posteriors, vote_shares
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.right_wrong import Answers, answers_of, given_answers, posteriors_of
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import (
    SUMS,
    PlainRatings,
    RatingMean,
    RatingMedian,
    add_answers,
    block_of_ratings,
    result_of_answers,
)
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import ConfigError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Array = NDArray[np.float64]
Begin = tuple[Any, Array | None]
Answer = Callable[[Any], "BlockPosteriors"]


@dataclass(frozen=True, eq=False)
class BlockPosteriors:
    """Results for a block's tasks, or for all tasks.

    Attributes:
        tasks: task codes, int64 [T].
        posteriors: class probabilities, [T, K]; for ratings two numbers per task, see the form.
        labels: class codes, int64 [T]; zeros for ratings.
    """

    tasks: NDArray[np.int64]
    posteriors: Array
    labels: NDArray[np.int64]


@dataclass(eq=False)
class Tally(Additive):
    """Sums over blocks.

    Attributes:
        counts: counts for the M-step of the method.
        more: other counts of the method.
    """

    counts: Any
    more: Any = 0


class Form(ABC):
    """Base class of all forms, with counts and starts of Dawid-Skene and the parameters of the local engine's `Run`.

    Args:
        aggregator: aggregator with the settings.
        num_annotators: R.
        num_classes: K.

    Attributes:
        starts: number of starts.
        max_iter: maximum number of M-steps after the first; 0: the first parameters are final.
    """

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        self.aggregator, self.num_annotators, self.num_classes = aggregator, num_annotators, num_classes
        self.starts: int = getattr(aggregator, "num_starts", 1)
        self.max_iter: int = getattr(aggregator, "max_iter", 0)

    @property
    def num_columns(self) -> int:
        """Number of columns of `BlockPosteriors.posteriors`."""
        return self.num_classes

    @property
    def identity(self) -> tuple[Any, ...]:
        """What must be equal in a checkpoint and a fit, apart from the data."""
        return self.aggregator, self.num_annotators, self.num_classes

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        """Starting point of the first start: parameters and posteriors [N, K], each of which may be None.

        Raises:
            ConfigError, DataError: `initial` does not match.
        """
        if initial is None:
            return None, None
        if not hasattr(self.aggregator, "warm_start"):
            raise ConfigError(f"{self.aggregator.title} takes no `initial`.")
        run = self.aggregator.warm_start(annotations, initial)
        return (None, initial_posteriors(initial, annotations)) if run is None else (run.params, None)

    # === Over blocks ===

    def zero(self) -> Tally:
        """Counts before any block."""
        return Tally(Counts.zero(self.num_annotators, self.num_classes))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        """Adds a block under the given posteriors [T, K], or under votes."""
        if given is not None:
            self.add(total, block, block.clamped(given))
        else:
            weights = dawid_skene.start_weights(self.num_annotators, start, self.aggregator.seed)
            self.add(total, block, vote_shares(block, weights, self.num_classes))

    def add(self, total: Tally, block: Block, shares: Array) -> None:
        """Adds a block under posteriors [T, K]."""
        total.counts.add(block, shares)

    def prepared(self, params: Any) -> Any:
        """Converts parameters for the kernels."""
        return params

    def expect(self, total: Tally, block: Any, prepared: Any) -> None:
        """Adds a block under parameters."""
        total.counts.add_expected(block, prepared)

    # === From sums ===

    @abstractmethod
    def start(self, total: Tally) -> Any:
        """Returns the first parameters."""

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        """Returns the run after one more iteration, from the counts under its parameters."""
        found: Run[Any] = self.aggregator.step(run, total.counts)
        return found

    def next_run(self, run: Run[Any], total: Tally) -> Run[Any]:
        """Returns the run after one more pass; before the first pass it has no parameters."""
        if run.params is not None:
            return self.step(run, total)
        done = not self.max_iter
        return Run(self.start(total), converged=done, done=done)

    # === At the end ===

    def posteriors(self, block: Any, prepared: Any) -> Array:
        """Class probabilities, [T, K]."""
        return block_posteriors(block, prepared)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class codes, [T]."""
        return choose_labels(posteriors, tasks, getattr(self.aggregator, "ties", "random"), self.aggregator.seed)

    def answers(self, params: Any) -> Answer:
        """Returns the function that applies the final parameters to a block."""
        prepared = self.prepared(params)

        def answer(block: Any) -> BlockPosteriors:
            posteriors = self.posteriors(block, prepared)
            return BlockPosteriors(block.tasks, posteriors, self.labels(posteriors, block.tasks))

        return answer

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Any:
        """Creates the result of the aggregator's `fit`, whether or not the run has converged."""
        return self.aggregator.result(data, run, found.posteriors, found.labels)


class MajorityVoteForm(Form):
    """Majority vote, which needs only one pass."""

    def start(self, total: Tally) -> Any:
        return majority_vote.update(total.counts)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        settings = self.aggregator
        return majority_vote.posteriors(block, prepared, settings.voting, settings.ties, settings.seed)

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Aggregation:
        return Aggregation.of("majority-vote", data, found.posteriors, found.labels, run.params)


class DawidSkeneForm(Form):
    """Dawid-Skene."""

    def start(self, total: Tally) -> Any:
        return dawid_skene.update(total.counts, self.aggregator.prior, self.aggregator.diagonal)


class OneCoinForm(Form):
    """One-coin Dawid-Skene."""

    def zero(self) -> Tally:
        return Tally(Answers.zero((self.num_annotators,), self.num_classes))

    def add(self, total: Tally, block: Any, shares: Array) -> None:
        total.counts += given_answers(block, shares, (self.num_annotators,))

    def expect(self, total: Tally, block: Any, prepared: Any) -> None:
        total.counts += answers_of([block], prepared)

    def start(self, total: Tally) -> Any:
        return one_coin.update(total.counts, self.aggregator)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return posteriors_of(block, prepared)


class RobustForm(Form):
    """Robust. Parameters are the number of the step, its counts, and the `Agreement` counted in the first pass."""

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        super().__init__(aggregator, num_annotators, num_classes)
        self.max_iter = robust.num_steps() - 1

    @property
    def identity(self) -> tuple[Any, ...]:
        return (*super().identity, robust.WEIGHTS.read_bytes())

    def zero(self) -> Tally:
        return Tally(super().zero().counts, Agreement.zero(self.num_annotators, self.num_classes))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        total.more.add(block)
        robust.first_counts(total.counts, block)

    def start(self, total: Tally) -> Any:
        return 0, total.counts, total.more

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        number, _, agreement = run.params
        done = number + 1 == self.max_iter
        return Run((number + 1, total.counts, agreement), converged=done, done=done)

    def prepared(self, params: Any) -> Any:
        return robust.believe(*params)

    def expect(self, total: Tally, block: Any, prepared: Any) -> None:
        super().expect(total, block, prepared.params)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return robust.posteriors_of(block, prepared)

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Aggregation:
        return self.aggregator.result(data, found.posteriors, run.params[1])


@dataclass(frozen=True, eq=False)
class RatingSums(Additive):
    """Sums over ratings: per annotator, [R, 2], and over all tasks."""

    rows: Array
    common: Array


class RatingForm(Form):
    """Mean and median: sums without iterations. `posteriors` are estimates and their errors, [T, 2]."""

    num_columns = 2

    def zero(self) -> Tally:
        return Tally(RatingSums(np.zeros((self.num_annotators, 2)), np.zeros(SUMS)))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        add_answers(block, self.aggregator.answers(block)[0], total.counts.rows, total.counts.common)

    def start(self, total: Tally) -> Any:
        return total.counts

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return np.stack(self.aggregator.answers(block), axis=1)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.zeros(len(tasks), np.int64)


FORMS: dict[type, type[Form]] = {
    dawid_skene.DawidSkene: DawidSkeneForm,
    majority_vote.MajorityVote: MajorityVoteForm,
    one_coin.OneCoinDawidSkene: OneCoinForm,
    robust.Robust: RobustForm,
    RatingMean: RatingForm,
    RatingMedian: RatingForm,
}


@dataclass(frozen=True)
class Job:
    """The inputs of a driver.

    Attributes:
        form: form of the aggregator.
        blocks: function that returns all blocks, given the maximum number of annotations per block.
        result: function that creates the result of `fit` from the last run and the posteriors of all tasks.
        begin: see `Form.begin_from`.
    """

    form: Form
    blocks: Callable[[int], Sequence[Block]]
    result: Callable[[Run[Any], BlockPosteriors], Any]
    begin: Begin = (None, None)


def runs_in_parts(aggregator: Any) -> bool:
    """Whether an aggregator has a form."""
    return type(aggregator) in FORMS and not _in_memory(aggregator)


def _in_memory(aggregator: Any) -> str:
    """A setting that no form supports, and the fix; usually empty."""
    if getattr(aggregator, "confidence", False):
        return "confidence=True; set it to False"
    if getattr(aggregator, "start", "votes") != "votes":
        return f"start={aggregator.start!r}; set it to 'votes', or pass the result of OneCoinDawidSkene as initial"
    return ""


def form_of(aggregator: Any, num_annotators: int, num_classes: int) -> Form:
    """Returns the form of an aggregator.

    Args:
        aggregator: aggregator with the settings.
        num_annotators: R.
        num_classes: K; any number for ratings.

    Raises:
        ConfigError: the aggregator has no form.
    """
    if type(aggregator) not in FORMS:
        kind = getattr(aggregator, "kind", "classification")
        names = ", ".join(method.__name__ for method in FORMS if getattr(method, "kind", "") == kind)
        rest = f"Use one of {names}, or fit" if names else f"No method for kind {kind!r} does; fit"
        raise ConfigError(
            f"{type(aggregator).__name__} does not run on Beam. {rest} it without Beam, by its own `fit`."
        )
    if setting := _in_memory(aggregator):
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam with {setting}.")
    return FORMS[type(aggregator)](aggregator, num_annotators, num_classes)


def job_of(aggregator: Any, data: Any, gold: Any = None, initial: Any = None) -> Job:
    """Creates a job from a table and a method.

    Args:
        aggregator: aggregator with the settings.
        data: argument of its `fit`.
        gold: argument of its `fit`.
        initial: argument of its `fit`.

    Raises:
        ConfigError: the method has no form, or does not accept `gold` or `initial`.
        DataError: data, gold or initial do not match.
    """
    form_of(aggregator, 1, 1)  # refuses methods of other kinds, whatever the data
    form = form_of(aggregator, data.num_annotators, data.num_classes)
    if isinstance(aggregator, PlainRatings):
        for name, value in (("gold", gold), ("initial", initial)):
            if value is not None:
                raise ConfigError(f"{type(aggregator).__name__} takes no `{name}`.")
        aggregator.check(data)
        origin, block = block_of_ratings(data)

        def rated(run: Run[Any], found: BlockPosteriors) -> Any:
            estimates, errors = np.ascontiguousarray(found.posteriors.T)
            return result_of_answers(aggregator, data, origin + estimates, errors, run.params.rows, run.params.common)

        return Job(form, block.cut, rated)
    check_classification(data, aggregator.title)
    known = checked_gold(gold, data.num_tasks, data.num_classes)

    def result(run: Run[Any], found: BlockPosteriors) -> Any:
        warn_unless_converged(aggregator, run, len(data))
        return form.result(data, run, found)

    def blocks(most: int) -> Sequence[Block]:
        return blocks_of(data, known, most) or [Block([], [], [])]

    return Job(form, blocks, result, form.begin_from(data, initial))
