"""SoftVotes: the steps of Dawid-Skene for answers with a confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.soft_answers import SoftAnswers

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


class SoftVotes:
    """All annotations with their confidence, in memory.

    Args:
        annotations: N tasks, R annotators, K classes.
        blocks: blocks of the same annotations from `blocks_of`; their gold is used.
        method: name of the method, for messages.

    Raises:
        DataError: no confidences, or one outside 0 to 1.
    """

    def __init__(self, annotations: Annotations, blocks: Sequence[Block], method: str):
        self.said = SoftAnswers(annotations, method)
        self.num_tasks, self.num_annotators = annotations.num_tasks, annotations.num_annotators
        self.blocks = blocks
        self.informed = np.concatenate([block.informed for block in blocks])

    def first_counts(self, first_posteriors: NDArray[np.float64] | None, weights: NDArray[np.float64]) -> Counts:
        """Counts under posteriors [N, K], or under mean answers weighted by annotator, [R]."""
        if first_posteriors is None:
            first_posteriors = self.said.mean(self.num_tasks, weights)
            first_posteriors[first_posteriors.sum(axis=1) == 0] = 1 / first_posteriors.shape[1]
        return self._counts(self._clamped(first_posteriors), 0.0, None)

    def expected(self, params: Params) -> Counts:
        """Counts under the posteriors given the parameters, with the log-likelihood."""
        posteriors, likelihood = self._posteriors(params)
        return self._counts(posteriors, likelihood, params.confusions)

    def posteriors(self, params: Params) -> NDArray[np.float64]:
        """Class probabilities of all tasks given the parameters, [N, K]."""
        return self._posteriors(params)[0]

    def answers(self, params: Params, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Posteriors [N, K] and labels [N]; tasks without annotations have the class prior."""
        posteriors = self.posteriors(params)
        return posteriors, choose_labels(posteriors, np.arange(self.num_tasks), seed=seed)

    def _counts(
        self, posteriors: NDArray[np.float64], log_likelihood: float, confusions: NDArray[np.float64] | None
    ) -> Counts:
        table = self.said.expected_counts(posteriors, self.num_annotators, confusions).transpose(0, 2, 1)
        classes = posteriors[self.informed].sum(axis=0)
        return Counts(np.ascontiguousarray(table), classes, log_likelihood, len(self.said.tasks))

    def _posteriors(self, params: Params) -> tuple[NDArray[np.float64], float]:
        joint = params.log_class_prior + self.said.log_evidence(params.confusions, self.num_tasks)
        top = joint.max(axis=1, keepdims=True)
        odds = np.exp(joint - top)
        total = odds.sum(axis=1, keepdims=True)
        evidence = (top + np.log(total))[:, 0]
        for block in self.blocks:
            if block.gold is not None:
                known = np.flatnonzero(block.gold >= 0)
                evidence[block.tasks[known]] = joint[block.tasks[known], block.gold[known]]
        return self._clamped(odds / total), float(evidence[self.informed].sum())

    def _clamped(self, posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Makes known classes certain."""
        return np.concatenate([block.clamped(posteriors[block.tasks]) for block in self.blocks])
