"""The methods for classes on blocks that lie somewhere else, on Beam."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import (
    dawid_skene,
    glad,
    hierarchical_dawid_skene,
    ibcc,
    majority_vote,
    one_coin,
    robust,
)
from crowdzoo.aggregation.classes.initial import same_crowd
from crowdzoo.aggregation.engine import bayes
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

    def posteriors(self, block: Any, prepared: Any, means: Any, state: Array | None) -> Array:
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
            return self.aggregator.warm_start(annotations, initial).params, None, None
        return super().begin_from(annotations, initial)

    def start(self, total: Tally) -> Any:
        return dawid_skene.update(total.counts, self.aggregator.prior, self.aggregator.diagonal)


class OneCoinForm(Form):
    """One-coin Dawid-Skene."""

    def begin_from(self, annotations: Any, initial: Any) -> Begin:
        if same_crowd(initial, "one-coin", annotations):
            return self.aggregator.warm_start(initial).params, None, None
        return super().begin_from(annotations, initial)

    def zero(self) -> Tally:
        return Tally(Answers.zero((self.num_annotators,), self.num_classes))

    def add(self, total: Tally, block: Any, shares: Array) -> None:
        total.counts += given_answers(block, shares, (self.num_annotators,))

    def expect(self, total: Tally, block: Any, prepared: Any, state: Array | None, counting: bool) -> Array | None:
        total.counts += answers_of([block], prepared)
        return None

    def start(self, total: Tally) -> Any:
        return one_coin.update(total.counts, self.aggregator)

    def posteriors(self, block: Any, prepared: Any, means: Any, state: Array | None) -> Array:
        return posteriors_of(block, prepared)


class GLADForm(Form):
    """GLAD; the state of a task is b."""

    also_found = ("state",)

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        super().__init__(aggregator, num_annotators, num_classes)
        self.first_state = float(aggregator.b_mean)
        alpha = np.full(num_annotators, float(aggregator.alpha_mean))
        self.begin = glad.Abilities(alpha, np.full(num_classes, 1 / num_classes))

    def begin_from(self, annotations: Any, initial: Any) -> Begin:
        if same_crowd(initial, "glad", annotations):
            run, b = self.aggregator.begin(annotations, initial)
            return run.params, None, b
        return super().begin_from(annotations, initial)

    def zero(self) -> Tally:
        return Tally(glad.GladCounts.zero(self.num_annotators, self.num_classes))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> Array | None:
        b = np.full(len(block.tasks), self.first_state)
        return b if given is None else self._add(total, block, self.begin, b, block.clamped(given))

    def expect(self, total: Tally, block: Any, prepared: Any, state: Array | None, counting: bool) -> Array | None:
        assert state is not None
        return self._add(total, block, prepared, state, None)

    def _add(self, total: Tally, block: Any, params: Any, b: Array, given: Array | None) -> Array:
        counts, new = glad.contribution(block, params, b, self.aggregator, given)
        total.counts += counts
        return new

    def start(self, total: Tally) -> Any:
        return glad.update(total.counts, self.begin, self.aggregator)

    def posteriors(self, block: Any, prepared: Any, means: Any, state: Array | None) -> Array:
        assert state is not None
        return glad.posteriors(block, prepared, state)


class _Variational(Form):
    """Expected logarithms stand in the E-step, and means in the result; also counted are tasks without information."""

    also_found = ("log_likelihood",)

    def prepared(self, params: Any) -> Any:
        return params.params

    def means(self, params: Any) -> Any:
        return params.means

    def expect(self, total: Tally, block: Any, prepared: Any, state: Array | None, counting: bool) -> Array | None:
        total.more += int((~block.informed).sum())
        return super().expect(total, block, prepared, state, counting)

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        return self.aggregator.step(run, total.counts, total.more)

    def last_likelihood(self, block: Any, means: Any) -> float:
        counts = self.zero().counts
        counts.add_expected(block, means, False)
        return float(counts.log_likelihood)


class IBCCForm(_Variational):
    """iBCC."""

    def start(self, total: Tally) -> Any:
        return ibcc.update(total.counts, self.aggregator.priors(self.num_classes))

    def posteriors(self, block: Any, prepared: Any, means: Any, state: Array | None) -> Array:
        found = bayes.posteriors(block, prepared)
        found[~block.informed] = means.class_prior
        return found


class HierarchicalForm(_Variational):
    """Hierarchical Dawid-Skene."""

    def start(self, total: Tally) -> Any:
        return hierarchical_dawid_skene.start(total.counts)


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

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> Array | None:
        total.more.add(block)
        robust.first_counts(total.counts, block)
        return None

    def start(self, total: Tally) -> Any:
        return 0, total.counts, total.more

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        number, _, agreement = run.params
        done = number + 1 == self.max_iter
        return Run((number + 1, total.counts, agreement), converged=done, done=done)

    def prepared(self, params: Any) -> Any:
        return robust.believe(*params)

    def expect(self, total: Tally, block: Any, prepared: Any, state: Array | None, counting: bool) -> Array | None:
        return super().expect(total, block, prepared.params, state, counting)

    def posteriors(self, block: Any, prepared: Any, means: Any, state: Array | None) -> Array:
        return robust.posteriors_of(block, prepared)

    def result(self, data: Any, run: Run[Any], found: BlockPosteriors) -> Aggregation:
        return self.aggregator.result(data, found.posteriors, run.params[1])


FORMS: dict[type, type[Form]] = {
    majority_vote.MajorityVote: MajorityVoteForm,
    dawid_skene.DawidSkene: DawidSkeneForm,
    one_coin.OneCoinDawidSkene: OneCoinForm,
    glad.GLAD: GLADForm,
    ibcc.IBCC: IBCCForm,
    hierarchical_dawid_skene.HierarchicalDawidSkene: HierarchicalForm,
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
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam: use one of {known}.")
    if setting := _in_memory(aggregator):
        raise ConfigError(f"{type(aggregator).__name__} does not run on Beam with {setting}.")
    return kind(aggregator, num_annotators, num_classes)
