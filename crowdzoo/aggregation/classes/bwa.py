"""BWA: a Bayesian weighted average of the votes, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.initial import Initial, initial_posteriors
from crowdzoo.aggregation.classes.wawa import weighted_shares
from crowdzoo.aggregation.engine.block import Block, whole_block
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

LEAST_VARIANCE = 1e-6  # of the prior: keeps precisions finite where all votes agree


@dataclass(frozen=True)
class BWA(Aggregator):
    """Bayesian weighted average of the votes, class by class.

    Li, Rubinstein and Cohn, "Truth inference at scale: a Bayesian model for adjudicating highly redundant crowd
    annotations", WWW 2019.

    For each class on its own, y = 1 where an annotator named it and 0 where another. Task i has a latent score z_i,
    and annotator r a precision v_r:

        z_i ~ Normal(mu, variance 1 / strength),    y_ir ~ Normal(z_i, variance 1 / v_r),
        v_r ~ Gamma(shape (a + 2) / 2, rate b / 2),    with a = `annotator_prior` and
        b = a * (mean over annotations of (y_ir - share of i's votes)^2) * 4 (1 - 1 / K).

    The most probable mu, v and z are found in turns, from vote shares:

        z_i = (strength * mu + sum of v_r y_ir) / (strength + sum of v_r over i's annotators),
        mu = mean of z,    v_r = (a + n_r) / (b + sum of (y_ir - z_i)^2 over r's n_r annotations).

    The factor 4 (1 - 1 / K), which is 2 for two classes, is the authors' correction of the prior, as in their code. The
    variance behind b is taken as 1e-6 at least: where nobody ever disagrees, precisions would be infinite.

    z_i is a weighted share of votes drawn towards the mean, between 0 and 1. With more than two classes each has its
    own precisions, so z need not sum to one: posteriors are z_ik / sum over k of z_ik. They rank classes as the authors
    do. They are shares of votes, not calibrated probabilities: where equals vote three to two the winner has about
    0.6, although many equals would hardly be wrong so often.

    `skills` is the annotator's precision, 1 / (mean over classes of 1 / v_r): how much a vote weighs, on the scale
    on which the prior mean weighs `strength`. An annotator without annotations has that of the prior.

    Args:
        annotator_prior: a: how many annotations the prior of an annotator's precision is worth.
        strength: lambda: precision of a task's score around the mean.
        max_iter: most iterations.
        tol: it has converged when no score moves by more than this.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Annotators who are not biased.

    Source:
        Y. Li, B. Rubinstein, T. Cohn: Truth Inference at Scale. WWW 2019.
    """

    annotator_prior: float = setting(15.0, Number(1e-3, 1e9))
    strength: float = setting(1.0, PRIOR)
    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Finds scores and precisions together.

        Memory beside the table: 40 bytes per annotation, 40 K per task, 32 K per annotator.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Scores of those tasks stay 0 and 1.
            initial: scores to begin from instead of vote shares: posteriors [N, K], or an earlier `Aggregation` of the
                same tasks and classes.

        Returns:
            Posteriors (without annotations: the mean scores mu, as shares), labels, `skills`. `history` is the log
            posterior density of mu, v and z up to a constant, summed over classes (nats), at the start and after each
            iteration; `log_likelihood` is None.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, "BWA")
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        block = whole_block(annotations, gold)
        shares = weighted_shares(block, np.ones(num_annotators), num_classes)
        start = initial_posteriors(initial, annotations)
        begin = shares if start is None else block.clamped(start)
        sides = [
            _Side(self, block, num_annotators, num_classes, k, shares[:, k], begin[:, k]) for k in range(num_classes)
        ]
        history, change = [sum(side.objective for side in sides)], np.inf
        while change > self.tol and len(history) <= self.max_iter:
            for side in sides:
                if side.change > self.tol:
                    side.step()
            history.append(sum(side.objective for side in sides))
            change = max(side.change for side in sides)
        if change > self.tol:
            warn_not_converged("BWA", self.max_iter, self.tol, change, "in a score", stacklevel=2)
        scores = np.stack([side.scores for side in sides], axis=1)
        posteriors = block.clamped(scores / scores.sum(axis=1, keepdims=True))
        return Aggregation.of(
            "bwa",
            annotations,
            posteriors,
            seed=self.seed,
            history=tuple(history),
            converged=change <= self.tol,
            num_iterations=len(history) - 1,
            skills=1 / np.mean([1 / side.precisions for side in sides], axis=0),
        )


class _Side:
    """One class against the others: its scores [N] and precisions [R], between two steps.

    `scores` holds the mean where a task has no annotations; `change` is what the last step moved a score at most.
    """

    def __init__(
        self,
        settings: BWA,
        block: Block,
        num_annotators: int,
        num_classes: int,
        code: int,
        shares: NDArray[np.float64],
        begin: NDArray[np.float64],
    ):
        self.block, self.strength, self.num_classes = block, settings.strength, num_classes
        self.code = code
        self.annotated = np.bincount(block.index, minlength=len(shares)) > 0
        self.fixed = np.zeros(len(shares), bool) if block.gold is None else block.gold >= 0
        variance = np.square((block.labels == code) - shares.take(block.index)).sum() / max(len(block), 1)
        variance = max(variance * 4 * (1 - 1 / num_classes), LEAST_VARIANCE)
        self.rate = settings.annotator_prior * variance  # b
        counts = np.bincount(block.annotator_ids, minlength=num_annotators)
        self.worth = settings.annotator_prior + counts  # a + n_r
        self.change = np.inf
        self._learn(begin.copy())

    def step(self) -> None:
        """Scores given mean and precisions, then these given the scores."""
        block, size = self.block, len(self.scores)
        weights = self.precisions.take(block.annotator_ids)
        total = self.strength + np.bincount(block.index, weights=weights, minlength=size)
        voted = np.bincount(block.index, weights=weights * (block.labels == self.code), minlength=size)
        free = self.annotated & ~self.fixed
        scores = self.scores.copy()
        scores[free] = (self.strength * self.mean + voted[free]) / total[free]
        self.change = float(np.abs(scores - self.scores)[free].max(initial=0))
        self._learn(scores)

    def _learn(self, scores: NDArray[np.float64]) -> None:
        """Mean, precisions and objective at these scores."""
        known = self.annotated | self.fixed
        self.mean = float(scores[known].mean()) if known.any() else 1 / self.num_classes
        scores[~known] = self.mean
        off = np.square((self.block.labels == self.code) - scores.take(self.block.index))
        spread = self.rate + np.bincount(self.block.annotator_ids, weights=off, minlength=len(self.worth))
        self.scores, self.precisions = scores, self.worth / spread
        # precisions * spread is `worth`, so the quadratic term is a constant and left out
        self.objective = 0.5 * float(
            self.worth @ np.log(self.precisions) - self.strength * np.square(scores - self.mean).sum()
        )
