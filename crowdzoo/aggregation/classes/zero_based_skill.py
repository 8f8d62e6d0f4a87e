"""Zero-based skill: annotators' skills follow their agreement with the weighted vote, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.initial import Initial, initial_posteriors
from crowdzoo.aggregation.classes.wawa import agreement, weighted_shares, winners
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True)
class ZeroBasedSkill(Aggregator):
    """Weighted majority vote whose weights learn (the algorithm of that name in crowd-kit).

    All skills start at 1 / K. Each iteration votes with the skills as weights and moves every skill towards the share
    of its annotator's labels that won, by a step that is halved from time to time: gradient descent on half the squared
    difference of the two. With a step of 1 an iteration is a round of `Wawa`; smaller steps damp what would otherwise
    swing for ever.

    Where m classes tie, each has won by 1/m, so no draw enters the skills.

    `skills` is the skill, 0 to 1; an annotator without annotations keeps 1 / K.

    Args:
        max_iter: most iterations.
        tol: it has converged when no skill differs from its annotator's agreement by more than this.
        step: step of the first iterations, more than 0 and at most 1.
        step_every: after how many iterations the step shrinks.
        step_factor: what it is then multiplied by, more than 0 and at most 1.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        A majority that is mostly right.

    Source:
        crowd-kit's method of this name: D. Ustalov, N. Pavlichenko, B. Tseitlin: Learning from Crowds with Crowd-Kit.
        JOSS 2024.
    """

    max_iter: int = setting(100, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    step: float = setting(1.0, Number(0, 1, above=True))
    step_every: int = setting(20, MAX_ITER)
    step_factor: float = setting(0.5, Number(0, 1, above=True))
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Finds skills and weighted vote together.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks have their known class throughout.
            initial: what the first agreement is taken with, instead of the plain vote: posteriors [N, K], or an earlier
                `Aggregation` of the same tasks and classes.

        Returns:
            Posteriors (shares of the votes weighted by skill; uniform without annotations), labels, `skills`.
            `history` is empty.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, "Zero-based skill")
        num_classes = annotations.num_classes
        block = whole_block(annotations, gold)
        start = initial_posteriors(initial, annotations)
        skills = np.full(annotations.num_annotators, 1 / num_classes)
        shares = weighted_shares(block, skills, num_classes) if start is None else block.clamped(start)
        step, converged, iteration = self.step, False, 0
        while not converged and iteration < self.max_iter:
            iteration += 1
            if iteration % self.step_every == 0:
                step *= self.step_factor
            skills = skills + step * (agreement(block, winners(shares), skills) - skills)
            shares = weighted_shares(block, skills, num_classes)
            off = np.abs(agreement(block, winners(shares), skills) - skills).max(initial=0)
            converged = bool(off <= self.tol)
        if not converged:
            warn_not_converged("Zero-based skill", self.max_iter, self.tol, off, "in a skill", stacklevel=2)
        return Aggregation.of(
            "zero-based-skill",
            annotations,
            shares,
            seed=self.seed,
            converged=converged,
            num_iterations=iteration,
            skills=skills,
        )
