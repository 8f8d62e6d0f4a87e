"""Wawa: votes weighted by how often an annotator agrees with the aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Aggregator, check_classification
from crowdzoo.aggregation.classes.iterative import Initial, initial_posteriors
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, Choice, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

WEIGHTS = ("agreement", "iwmv")


def winners(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability that each class wins if ties are broken at random: 1/m for each of m tied classes, [T, K]."""
    tied = tied_classes(shares)
    return tied / np.maximum(tied.sum(axis=1, keepdims=True), 1)


def agreement(block: Block, won: NDArray[np.float64], default: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of each annotator's labels that match the aggregate, in expectation over random ties, [R].

    Args:
        block: T tasks, A annotations.
        won: see `winners`, [T, K].
        default: value for annotators without annotations, [R].
    """
    agreed = won[block.index, block.labels]
    total = np.bincount(block.annotator_ids, weights=agreed, minlength=len(default))
    number = np.bincount(block.annotator_ids, minlength=len(default))
    return np.divide(total, number, out=default.astype(np.float64), where=number > 0)


def weighted_shares(block: Block, weights: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Shares of a task's weighted votes; a vote of negative weight counts for every other class.

    Subtracting |w| from the voted class or adding |w| to all others gives the same ranking, but only the latter keeps
    shares probabilities.

    Args:
        block: T tasks, A annotations.
        weights: weight of each annotator, of any sign, [R].
        num_classes: K.

    Returns:
        Shares [T, K], rows sum to one. Uniform if no vote has weight, certain if the class is known.
    """
    num_tasks = len(block.tasks)
    weight = weights.take(block.annotator_ids)
    cells = block.index * num_classes + block.labels
    votes = np.bincount(cells, weights=weight, minlength=num_tasks * num_classes).astype(np.float64)
    against = np.bincount(block.index, weights=np.maximum(-weight, 0), minlength=num_tasks)
    votes = np.maximum(votes.reshape(num_tasks, num_classes) + against[:, None], 0)  # rounding may leave -1e-17
    total = votes.sum(axis=1, keepdims=True)
    shares = np.divide(votes, total, out=np.full_like(votes, 1 / num_classes), where=total > 0)
    return block.clamped(shares)


@dataclass(frozen=True)
class Wawa(Aggregator):
    """Worker agreement with aggregate: a vote, then a second vote weighted by agreement with the first.

    With more rounds, this is iterative weighted majority voting (IWMV; Li and Yu, "Error rate bounds and iterative
    weighted majority voting for crowdsourcing", arXiv:1411.4086, 2014): agreement is then measured with the last
    weighted vote.

    If m classes tie, an annotator who voted for one of them agrees by 1/m, the expectation of a random choice, so that
    weights are not random.

    `skills` is the agreement with the aggregate from which the last weights were computed, 0 to 1. It is too high, as
    an annotator's own votes are in the aggregate. An annotator without annotations has the overall agreement.

    Args:
        num_rounds: number of weighted votes. 1: Wawa. Stops early if no winner changes.
        weights: "agreement": the agreement itself. "iwmv": K * agreement - 1, the weight of Li and Yu, which is 0 at
            chance; below, a vote counts for every other class.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import Wawa
        >>> task, annotator = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog", "dog", "dog"])
        >>> result = Wawa().fit(annotations)
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog']
        >>> dict(zip(result.annotators.tolist(), result.skills.tolist(), strict=True))  # agreement with the vote
        {'ann': 1.0, 'bob': 1.0, 'cem': 0.5}

    Needs:
        A majority that is mostly right.

    Source:
        crowd-kit's method of this name. With more rounds: H. Li, B. Yu: Error Rate Bounds and Iterative Weighted
        Majority Voting for Crowdsourcing. arXiv:1411.4086, 2014.
    """

    num_rounds: int = setting(1, MAX_ITER)
    weights: str = setting("agreement", Choice(WEIGHTS))
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Votes, computes weights, and votes again.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. These tasks are labelled with their class, and agreement
                is measured with it.
            initial: what the first agreement is measured with instead of the plain vote: posteriors [N, K], or an
                earlier `Aggregation` of the same tasks and classes.

        Returns:
            Posteriors (shares of the weighted votes; uniform without annotations), labels and `skills`. `history` is
            empty. `converged`: no winner changed in the last round, or `num_rounds` is 1.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not match them.
        """
        check_classification(annotations, "Wawa")
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        block = whole_block(annotations, gold)
        start = initial_posteriors(initial, annotations)
        votes = weighted_shares(block, np.ones(num_annotators), num_classes)
        won = winners(votes if start is None else block.clamped(start))
        still, rounds = False, 0
        while not still and rounds < self.num_rounds:
            agreed = won[block.index, block.labels]
            overall = agreed.mean() if agreed.size else 1 / num_classes
            skills = agreement(block, won, np.full(num_annotators, overall))
            weights = skills if self.weights == "agreement" else num_classes * skills - 1
            shares = weighted_shares(block, weights, num_classes)
            before, won = won, winners(shares)
            still = np.array_equal(before, won)
            rounds += 1
        return Aggregation.of(
            "wawa",
            annotations,
            shares,
            seed=self.seed,
            converged=still or self.num_rounds == 1,
            num_iterations=rounds,
            skills=skills,
        )
