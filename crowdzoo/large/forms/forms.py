"""The methods for classes on blocks that lie somewhere else, on Beam."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import dawid_skene, majority_vote, one_coin, robust
from crowdzoo.aggregation.classes.initial import same_crowd
from crowdzoo.aggregation.engine.agreement import Agreement
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.right_wrong import Answers, answers_of, given_answers, posteriors_of
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Begin, BlockPosteriors, Form, Tally

__all__ = ["FORMS", "method_of", "runs_on_blocks"]

Array = NDArray[np.float64]


class MajorityVoteForm(Form):
    """Counts once."""

    takes_initial = False

    def start(self, total: Tally) -> Any:
        return majority_vote.update(total.counts)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        settings = self.aggregator
        return majority_vote.posteriors(block, prepared, settings.voting, settings.ties, settings.seed)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return choose_labels(posteriors, tasks, self.aggregator.ties, self.aggregator.seed)

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Aggregation:
        return Aggregation.of("majority-vote", data, found.posteriors, found.labels, run.params)


class DawidSkeneForm(Form):
    """Dawid-Skene."""

    def begin_from(self, annotations: Any, initial: Any) -> Begin:
        if initial is not None and (isinstance(initial, Aggregation) or np.ndim(initial) != 2):
            return self.aggregator.warm_start(annotations, initial).params, None
        return super().begin_from(annotations, initial)

    def start(self, total: Tally) -> Any:
        return dawid_skene.update(total.counts, self.aggregator.prior, self.aggregator.diagonal)


class OneCoinForm(Form):
    """One-coin Dawid-Skene."""

    def begin_from(self, annotations: Any, initial: Any) -> Begin:
        if same_crowd(initial, "one-coin", annotations):
            return self.aggregator.warm_start(initial).params, None
        return super().begin_from(annotations, initial)

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

    takes_initial = False
    converges = False

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


FORMS: dict[type, type[Form]] = {
    majority_vote.MajorityVote: MajorityVoteForm,
    dawid_skene.DawidSkene: DawidSkeneForm,
    one_coin.OneCoinDawidSkene: OneCoinForm,
    robust.Robust: RobustForm,
}


def runs_on_blocks(aggregator: Any) -> bool:
    """Whether an aggregator for classes has a form."""
    return type(aggregator) in FORMS and not _in_memory(aggregator)


def _in_memory(aggregator: Any) -> str:
    """A setting that no form has, and what to do about it; empty as a rule."""
    if getattr(aggregator, "confidence", False):
        return "confidence=True; set it to False"
    if getattr(aggregator, "start", "votes") != "votes":
        return f"start={aggregator.start!r}; set it to 'votes', or give the result of OneCoinDawidSkene as initial"
    return ""


def method_of(aggregator: Any, num_annotators: int, num_classes: int) -> Form:
    """The form of an aggregator for classes.

    Args:
        aggregator: the settings.
        num_annotators: R.
        num_classes: K.

    Raises:
        ConfigError: there is none.
    """
    kind = FORMS.get(type(aggregator))
    if kind is None:
        known = ", ".join(sorted(known.__name__ for known in FORMS))
        raise ConfigError(
            f"{type(aggregator).__name__} does not run on Beam. Use one of {known}, or fit it without Beam, by its own "
            "`fit`."
        )
    if setting := _in_memory(aggregator):
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam with {setting}.")
    return kind(aggregator, num_annotators, num_classes)
