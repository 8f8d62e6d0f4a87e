"""The methods that run on blocks that lie somewhere else, on Beam."""

# ruff: noqa: D102  (`Form` describes them)
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import dawid_skene, majority_vote, one_coin, robust
from crowdzoo.aggregation.engine.agreement import Agreement
from crowdzoo.aggregation.engine.params import Additive
from crowdzoo.aggregation.engine.right_wrong import Answers, answers_of, given_answers, posteriors_of
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import SUMS, add_answers
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.large.forms.base import BlockPosteriors, Form, Tally

Array = NDArray[np.float64]


class MajorityVoteForm(Form):
    """Counts once."""

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

    def expect(self, total: Tally, block: Any, prepared: Any, counting: bool) -> None:
        total.counts += answers_of([block], prepared)

    def start(self, total: Tally) -> Any:
        return one_coin.update(total.counts, self.aggregator)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return posteriors_of(block, prepared)


class RobustForm(Form):
    """Robust. Parameters are the number of the step, its counts, and `Agreement`, which the first pass counts."""

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

    def expect(self, total: Tally, block: Any, prepared: Any, counting: bool) -> None:
        super().expect(total, block, prepared.params, counting)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return robust.posteriors_of(block, prepared)

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Aggregation:
        return self.aggregator.result(data, found.posteriors, run.params[1])


@dataclass(frozen=True, eq=False)
class RatingSums(Additive):
    """Sums over ratings: of each annotator, [R, 2], and of all tasks."""

    rows: Array
    common: Array


class RatingForm(Form):
    """The mean and the median: sums, and no iteration. `posteriors` are estimates and their errors, [T, 2]."""

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
