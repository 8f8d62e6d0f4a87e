"""Ratings and sentences on blocks."""

# ruff: noqa: D102  (`Form` describes them)
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.params import Additive
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.ratings.plain_ratings import SUMS, add_answers
from crowdzoo.aggregation.ratings.rating_steps import COMMON, add_expected, add_ratings, iterated, started, truths
from crowdzoo.aggregation.sentences.chain_model import ChainBeliefs, ChainLogs, ChainModel
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Answer, BlockPosteriors, Form, Tally

Array = NDArray[np.float64]
MOST_BYTES = 2**25  # of one block's counts for sentences: a step of 64 blocks then hands on 2 GiB


@dataclass(frozen=True, eq=False)
class RatingSums(Additive):
    """Sums over ratings: of each annotator, [R, columns], and of all tasks."""

    rows: Array
    common: Array


class PlainRatingForm(Form):
    """The mean and the median: sums, and no iteration. `posteriors` are estimates and their errors, [T, 2]."""

    shape = 2, SUMS
    num_columns = 2

    def zero(self) -> Tally:
        return Tally(RatingSums(np.zeros((self.num_annotators, self.shape[0])), np.zeros(self.shape[1])))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        add_answers(block, self.aggregator.answers(block)[0], total.counts.rows, total.counts.common)

    def start(self, total: Tally) -> Any:
        return total.counts

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return np.stack(self.aggregator.answers(block), axis=1)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.zeros(len(tasks), np.int64)


class RatingEMForm(PlainRatingForm):
    """Rating EM. `posteriors` are truths and their variances, [T, 2]."""

    shape = 3, COMMON

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        add_ratings(block, total.counts.rows)

    def expect(self, total: Tally, block: Any, prepared: Any, counting: bool) -> None:
        add_expected(block, prepared, total.counts.rows, total.counts.common)

    def start(self, total: Tally) -> Any:
        return started(total.counts.rows, self.aggregator)

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        return iterated(run, total.counts.rows, total.counts.common, self.aggregator)

    def posteriors(self, block: Any, prepared: Any) -> Array:
        return np.stack(truths(block, prepared), axis=1)


class ChainForm(Form):
    """BSC-seq and HMM-crowd on blocks of sentences; also counted are the paths' log normaliser, and annotations.

    Args:
        model: the method's steps.
        num_annotators: R.

    Raises:
        ConfigError: the counts, of which every block hands on its own and a worker holds several, are above
            `MOST_BYTES`.
    """

    def __init__(self, model: ChainModel, num_annotators: int):
        one = 8 * math.prod(model.row_shape)
        if one * num_annotators > MOST_BYTES:
            raise ConfigError(
                f"{type(model.settings).__name__} on Beam: the counts of {num_annotators:,} annotators take "
                f"{one * num_annotators / 1e6:,.0f} MB in each block and several times that in each worker; at most "
                f"{MOST_BYTES / 1e6:,.0f} MB are run. Leave out annotators with few sentences, so that at most "
                f"{MOST_BYTES // one:,} are left; take HMMCrowd (hmm-crowd), which counts less of each annotator; or "
                "run it without Beam."
            )
        super().__init__(model.settings, num_annotators, model.num_classes)
        self.model = model

    @property
    def identity(self) -> tuple[Any, ...]:
        return (*super().identity, *self.model.tag_set.classes, self.model.tag_set.scheme, self.model.num_words)

    def zero(self) -> Tally:
        return Tally(self.model.zero(self.num_annotators), np.zeros(2))

    def first(self, total: Tally, block: Any, start: int, given: Array | None) -> None:
        self.model.add_votes(block, total.counts)

    def prepared(self, params: Any) -> Any:
        chain, words, _ = self.model.expected_rest(params.sums)
        return ChainLogs(self.model.expected_says(params.sums.says, params.votes)[0], chain, words)

    def expect(self, total: Tally, block: Any, prepared: Any, counting: bool) -> None:
        found = self.model.paths(block, prepared)
        total.more += found.log_normaliser, len(block)
        if counting:
            self.model.add(block, found, total.counts)

    def start(self, total: Tally) -> Any:
        return self.model.believed(total.counts)

    def step(self, run: Run[Any], total: Tally) -> Run[Any]:
        sums, votes, settings = run.params.sums, run.params.votes, self.aggregator
        divergence = self.model.expected_says(sums.says, votes)[1] + self.model.expected_rest(sums)[2]
        likelihood, number = total.more.tolist()
        update = ChainBeliefs(total.counts, votes)
        return advance(
            run, likelihood - divergence, likelihood, int(number), settings.max_iter, settings.tol, lambda: update
        )

    def answers(self, params: Any) -> Answer:
        prepared, means = self.prepared(params), self.model.means(params)[3]

        def answer(block: Any) -> BlockPosteriors:
            posteriors, labels = self.model.answers(block, prepared)
            tokens = block.first_token + np.arange(block.num_tokens)
            return BlockPosteriors(tokens, posteriors, labels, self.model.paths(block, means).log_normaliser)

        return answer
