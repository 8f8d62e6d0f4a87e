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
from crowdzoo.aggregation.ratings.plain_ratings import block_of_ratings, result_of_answers
from crowdzoo.aggregation.ratings.rating_em import RatingEM
from crowdzoo.aggregation.ratings.rating_mean import RatingMean
from crowdzoo.aggregation.ratings.rating_median import RatingMedian
from crowdzoo.aggregation.sentences.chain_method import ChainMethod
from crowdzoo.aggregation.sentences.chain_model import ChainModel
from crowdzoo.data.tags import TagSet
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Begin, BlockPosteriors, Form
from crowdzoo.large.forms.forms import DawidSkeneForm, MajorityVoteForm, OneCoinForm, RobustForm
from crowdzoo.large.forms.ratings_and_sentences import ChainForm, PlainRatingForm, RatingEMForm

RATINGS = {RatingEM: RatingEMForm, RatingMean: PlainRatingForm, RatingMedian: PlainRatingForm}
FORMS: dict[type, type[Form]] = {
    DawidSkene: DawidSkeneForm,
    MajorityVote: MajorityVoteForm,
    OneCoinDawidSkene: OneCoinForm,
    Robust: RobustForm,
    **RATINGS,
}
NAMES = {  # that a refusal names
    "classification": "DawidSkene, MajorityVote, OneCoinDawidSkene, Robust",
    "regression": "RatingEM, RatingMean, RatingMedian",
    "sequence": "BayesianSequenceCombination, HMMCrowd",
}


@dataclass(frozen=True)
class Job:
    """What a driver needs.

    Attributes:
        form: the aggregator's.
        blocks: gives all blocks, each of at most so many annotations.
        num_annotations: A.
        num_answers: N tasks, or T tokens.
        result: what the aggregator's `fit` gives, once all is found.
        begin: see `Form.begin_from`.
        known: the result, where there is nothing to compute.
    """

    form: Form
    blocks: Callable[[int], Sequence[Any]]
    num_annotations: int
    num_answers: int
    result: Callable[[Run[Any], BlockPosteriors], Any]
    begin: Begin = (None, None)
    known: Any = None


def runs_in_parts(aggregator: Any) -> bool:
    """Whether an aggregator has a form."""
    return isinstance(aggregator, ChainMethod) or (type(aggregator) in FORMS and not _in_memory(aggregator))


def _in_memory(aggregator: Any) -> str:
    """A setting that no form has, and what to do about it; empty as a rule."""
    if getattr(aggregator, "confidence", False):
        return "confidence=True; set it to False"
    if getattr(aggregator, "start", "votes") != "votes":
        return f"start={aggregator.start!r}; set it to 'votes', or give the result of OneCoinDawidSkene as initial"
    return ""


def form_of(
    aggregator: Any, num_annotators: int, num_classes: int, tag_set: TagSet | None = None, num_words: int = 0
) -> Form:
    """The form of an aggregator.

    Args:
        aggregator: the settings.
        num_annotators: R.
        num_classes: K; of ratings and sentences any number.
        tag_set: of sentences.
        num_words: of sentences, V.

    Raises:
        ConfigError: there is none, or sentences without `tag_set`.
    """
    name, kind = type(aggregator).__name__, getattr(aggregator, "kind", "classification")
    if isinstance(aggregator, ChainMethod):
        if tag_set is None:
            raise ConfigError(f"{name} needs tag_set, the tags of the sentences.")
        return ChainForm(ChainModel(aggregator, tag_set, num_words), num_annotators)
    if type(aggregator) not in FORMS:
        rest = f"Use one of {NAMES[kind]}, or fit" if kind in NAMES else f"No method for kind {kind!r} does; fit"
        raise ConfigError(f"{name} does not run on Beam. {rest} it without Beam, by its own `fit`.")
    if setting := _in_memory(aggregator):
        raise ConfigError(f"{name} does not run on Beam with {setting}.")
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
    if getattr(aggregator, "kind", "") in ("regression", "sequence"):
        for name, value in (("gold", gold), ("initial", initial)):
            if value is not None:
                raise ConfigError(f"{type(aggregator).__name__} takes no `{name}`.")
    if isinstance(aggregator, ChainMethod):
        return _of_sentences(aggregator, data)
    if type(aggregator) in RATINGS:
        return _of_ratings(aggregator, data)
    form_of(aggregator, 1, 1)  # refuses methods of other kinds, whatever the data are
    form = form_of(aggregator, data.num_annotators, data.num_classes)
    check_classification(data, aggregator.title)
    known = checked_gold(gold, data.num_tasks, data.num_classes)

    def result(run: Run[Any], found: BlockPosteriors) -> Any:
        if not run.converged:
            aggregator.warn_unless_converged(run, len(data))
        return form.result(data, run, found)

    def blocks(most: int) -> Sequence[Block]:
        return blocks_of(data, known, most) or [Block([], [], [])]

    return Job(form, blocks, len(data), data.num_tasks, result, form.begin_from(data, initial))


def _of_ratings(aggregator: Any, data: Any) -> Job:
    aggregator.check(data)
    form = form_of(aggregator, data.num_annotators, 0)
    origin, block = block_of_ratings(data)

    def result(run: Run[Any], found: BlockPosteriors) -> Any:
        one, other = np.ascontiguousarray(found.posteriors.T)
        if isinstance(aggregator, RatingEM):
            return aggregator.result(data, origin, run, one, other)
        return result_of_answers(aggregator, data, origin + one, other, run.params.rows, run.params.common)

    equal = isinstance(aggregator, RatingEM) and np.ptp(data.labels) == 0
    known = aggregator.unanimous(data) if equal else None
    return Job(form, block.cut, len(data), data.num_tasks, result, known=known)


def _of_sentences(aggregator: ChainMethod, data: Any) -> Job:
    table, model, block = aggregator.begin(data)

    def result(run: Run[Any], found: BlockPosteriors) -> Any:
        return aggregator.result(table, model, run, found.posteriors, found.labels, found.log_likelihood)

    form = ChainForm(model, table.annotations.num_annotators)
    return Job(form, lambda most: block.cut(most) or [block], len(block), block.num_tokens, result)
