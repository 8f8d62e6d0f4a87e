"""Job: a table in memory and a method, as a driver of blocks takes them, whatever the kind of labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.engine.block import Block, blocks_of, checked_gold
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import (
    PlainRatings,
    RatingMean,
    RatingMedian,
    block_of_ratings,
    result_of_answers,
)
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Begin, BlockPosteriors, Form
from crowdzoo.large.forms.forms import DawidSkeneForm, MajorityVoteForm, OneCoinForm, RatingForm, RobustForm

FORMS: dict[type, type[Form]] = {
    DawidSkene: DawidSkeneForm,
    MajorityVote: MajorityVoteForm,
    OneCoinDawidSkene: OneCoinForm,
    Robust: RobustForm,
    RatingMean: RatingForm,
    RatingMedian: RatingForm,
}


@dataclass(frozen=True)
class Job:
    """What a driver needs.

    Attributes:
        form: the aggregator's.
        blocks: gives all blocks, each of at most so many annotations.
        result: what the aggregator's `fit` gives, from the last run and the posteriors of all tasks.
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
    """A setting that no form has, and what to do about it; empty as a rule."""
    if getattr(aggregator, "confidence", False):
        return "confidence=True; set it to False"
    if getattr(aggregator, "start", "votes") != "votes":
        return f"start={aggregator.start!r}; set it to 'votes', or give the result of OneCoinDawidSkene as initial"
    return ""


def form_of(aggregator: Any, num_annotators: int, num_classes: int) -> Form:
    """The form of an aggregator.

    Args:
        aggregator: the settings.
        num_annotators: R.
        num_classes: K; of ratings any number.

    Raises:
        ConfigError: an aggregator without a form.
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
    """A table and a method.

    Args:
        aggregator: the settings.
        data: what its `fit` takes.
        gold: as its `fit` takes it.
        initial: as its `fit` takes it.

    Raises:
        ConfigError: a method without a form; `gold` or `initial` for a method that takes none.
        DataError: data, gold or initial do not fit.
    """
    form_of(aggregator, 1, 1)  # refuses methods of other kinds, whatever the data are
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
        if not run.converged:
            aggregator.warn_unless_converged(run, len(data))
        return form.result(data, run, found)

    def blocks(most: int) -> Sequence[Block]:
        return blocks_of(data, known, most) or [Block([], [], [])]

    return Job(form, blocks, result, form.begin_from(data, initial))
