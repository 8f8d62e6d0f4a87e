"""BSC-seq and HMM-crowd on blocks of sentences."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.sentences.chain_model import ChainBeliefs, ChainLogs, ChainModel, ChainSums
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.tally import Tally

__all__ = ["ChainForm"]

Array = NDArray[np.float64]


class ChainForm(Method):
    """Rows are an annotator's counts and, after them, the part of its prior that votes made, `[2, C, said, true]`.

    What is common are the counts of first tags, transitions and words, one after the other.

    Args:
        model: the method's steps.
        num_annotators: R.
    """

    needs_rows = True
    params_type = ChainBeliefs
    also_found = ("log_likelihood",)

    def __init__(self, model: ChainModel, num_annotators: int):
        super().__init__(model.settings, num_annotators, model.num_classes)
        self.model = model

    @property
    def row_shape(self) -> tuple[int, ...]:
        return self.model.row_shape

    @property
    def params_shape(self) -> tuple[int, ...]:
        return (2, *self.row_shape)

    @property
    def identity(self) -> dict[str, Any]:
        tags = self.model.tag_set
        return {"tags": list(tags.classes), "scheme": tags.scheme, "words": self.model.num_words}

    def zero(self, num_annotators: int) -> Tally:
        count = self.num_classes
        common = np.zeros(count * (1 + count + self.model.num_words) + 3)
        return Tally(np.zeros((num_annotators, *self.row_shape)), common)

    def _sums(self, says: Array, common: Array) -> ChainSums:
        """Counts as the model has them, on the same memory."""
        count = self.num_classes
        first, after = common[:count], common[count : count * (1 + count)]
        words = common[count * (1 + count) : count * (1 + count + self.model.num_words)]
        return ChainSums(says, first, after.reshape(count, count), words.reshape(-1, count))

    def first(
        self, total: Tally, block: Any, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        self.model.add_votes(block, self._sums(total.rows, total.common))
        return None

    def prepared(self, rows: Array, common: Array) -> Any:
        chain, words, _ = self.model.expected_rest(self._sums(rows[:, 0], common))
        return ChainLogs(self._expected_says(rows)[0], chain, words)

    def _expected_says(self, rows: Array) -> tuple[Array, float]:
        return self.model.expected_says(rows[:, 0], rows[:, 1])

    def params(self, rows: Array, common: Array) -> Any:
        return ChainBeliefs(self._sums(rows[:, 0], common), rows[:, 1])

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        sums = params.sums
        common = np.concatenate([sums.first, sums.after.ravel(), sums.words.ravel()])
        return np.stack([sums.says, params.votes], axis=1), common

    def expect(self, total: Tally, block: Any, params: Any, state: Array | None, counting: bool) -> Array | None:
        found = self.model.paths(block, params)
        total.common[-3] += found.log_normaliser
        total.common[-1] += len(block)
        if counting:
            self.model.add(block, found, self._sums(total.rows, total.common))
        return None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        votes = self.aggregator.votes * total.rows if rows is None else rows[:, 1]
        return np.stack([total.rows, votes], axis=1), total.common[:-3].copy()

    def objective(self, common_counts: Array, common: Array) -> float:
        return float(common_counts[-3]) - self.model.expected_rest(self._sums(self.no_rows, common))[2]

    def penalty(self, rows: Array) -> float:
        return -self._expected_says(rows)[1]

    def means(self, rows: Array, common: Array) -> Any:
        return self.model.means(self.params(rows, common))[3]

    def last_likelihood(self, block: Any, means: Any) -> float:
        return self.model.paths(block, means).log_normaliser

    def answers(
        self, block: SentenceBlock, params: Any, means: Any, state: Array | None
    ) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
        posteriors, labels = self.model.answers(block, params)
        return block.first_token + np.arange(block.num_tokens), posteriors, labels
