"""M-MSR: annotators' skills from how often they agree in pairs, robust to adversaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.connected import connected_groups
from crowdzoo.aggregation.engine.pairs import Pairs, one_coin_params, skill_margin, with_signs
from crowdzoo.aggregation.engine.softmax import softmax
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

UNKNOWN_SKILL = 0.5  # where no two annotators share a task


@dataclass(frozen=True)
class MMSR(Aggregator):
    """Matrix mean-subsequence-reduced (Ma and Olshevsky, NeurIPS 2020; arXiv 2010.12181): skills from pairs.

    One-coin model: annotator r is right with probability p[r], and otherwise says each other class equally often. With
    the skill s[r] = (K p[r] - 1) / (K - 1) (1: always right, 0: guesses) two annotators' agreement a[r, q] gives
    C[r, q] = (K a[r, q] - 1) / (K - 1), whose expectation is s[r] s[q]: a matrix of rank one, of which the pairs that
    share tasks are known. Adversaries, who need not follow the model, spoil their rows and columns only.

    - Sizes: alternately u[r] and v[r] become the mean over partners q of |C[r, q]| / v[q] (or u[q]), without those
      values that are the farthest above and below the present one: up to `trim` of the partners on each side. The paper
      drops as many for all annotators; a share serves annotators of few partners too. |s[r]| is sqrt(u[r] v[r]), which
      leaves no scale open in any part of the graph.
    - Signs: those of the leading eigenvector of C weighted by shared tasks and normalised by degrees, found by power
      iteration from all positive. In each connected group of annotators the sign of all is the one by which the
      answers are better than chance on the whole; where classes are known the truth takes part as an annotator, whose
      sign is plus.
    - Skills are kept 1 / sqrt(annotated tasks) away from 1 and -1 / (K - 1) (at most a half), as in the paper.

    Posteriors are the model's, with equal class prior: each answer weighs log((K - 1) p / (1 - p)). `skills` is
    s[r]. Annotators who share no task with anybody have the mean skill of the others (0.5 if nobody shares one). So
    there is a value on sparse data, where a dense implementation divides by zero.

    Pairs should share several tasks. Where they share few, |C| is mostly noise, which the absolute value turns into
    skill (web: .69, below majority vote's .73); if all share one task, and K = 2, every size is 1 and the votes decide.

    Memory and time follow the pairs of annotations of a task, sum of m (m - 1) / 2; no [R, R] matrix.

    Args:
        trim: share of the partners dropped on each side, 0 to below 0.5. To withstand adversaries it has to be their
            share among the partners, at least.
        max_iter: most rounds.
        tol: it has converged when no product u[r] v[q] of a pair moves by more than this.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Three annotations a task or more, and annotators who share tasks.

    Source:
        Q. Ma, A. Olshevsky: Adversarial Crowdsourcing Through Robust Rank-One Matrix Completion. NeurIPS 2020.
    """

    trim: float = setting(0.25, Number(0, 0.5, below=True))
    max_iter: int = setting(1000, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    seed: int = setting(0, SEED)

    whole_table: ClassVar[bool] = True  # no blocks; see `check_blocks_are_irrelevant`

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None) -> Aggregation:
        """Finds skills by pairs of annotators, and then the answers.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class, and the truth takes part
                as an annotator who is never wrong.

        Returns:
            Posteriors, labels, `skills`, and `confusions` of the one-coin model. Tasks without annotations have
            equal probabilities. `history` is empty.

        Raises:
            DataError: annotations are not of kind classification, `gold` does not fit them, or there are more than 100
                million pairs.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, "M-MSR")
        block = whole_block(annotations, gold)
        num_tasks, num_annotators, num_classes = len(block.tasks), annotations.num_annotators, annotations.num_classes
        pairs = Pairs.of(block, num_annotators)
        chance = 1 / max(num_classes, 2)
        correlation = (pairs.agreement - chance) / (1 - chance)
        margin = skill_margin(block)
        size, change, rounds = self._sizes(pairs, np.abs(correlation), margin)
        if change > self.tol:
            warn_not_converged("M-MSR", self.max_iter, self.tol, change, "of a product of skills", stacklevel=2)
        groups = connected_groups(block, num_annotators)
        skill = with_signs(pairs, correlation, size, groups)
        alone = np.diff(pairs.starts)[:num_annotators] == 0
        skill = np.clip(skill, margin - chance / (1 - chance), 1 - margin)
        skill[alone] = min(skill[~alone].mean() if not alone.all() else UNKNOWN_SKILL, 1 - margin)

        accuracy = chance + (1 - chance) * skill
        weights = np.log(accuracy / (1 - accuracy)) + np.log(max(num_classes - 1, 1))
        said = block.index * num_classes + block.labels
        score = np.bincount(said, weights=weights[block.annotator_ids], minlength=num_tasks * num_classes)
        posteriors = block.clamped(softmax(score.astype(np.float64).reshape(num_tasks, num_classes))[0])
        return Aggregation.of(
            "mmsr",
            annotations,
            posteriors,
            params=one_coin_params(accuracy, np.full(num_classes, 1 / num_classes)),
            seed=self.seed,
            converged=bool(change <= self.tol),
            num_iterations=rounds,
            skills=skill,
        )

    def _sizes(self, pairs: Pairs, sizes: NDArray[np.float64], least: float) -> tuple[NDArray[np.float64], float, int]:
        """Absolute skills of all that take part, the last change, and the number of rounds."""
        degrees = np.diff(pairs.starts)
        trimmed = np.floor(self.trim * degrees).astype(np.int64)
        left, right = np.ones(len(degrees)), np.ones(len(degrees))
        products = np.ones(len(pairs.partners))
        change, rounds = np.inf, 0
        while rounds < self.max_iter and change > self.tol:
            right = _trimmed_means(pairs.starts, pairs.partners, sizes, left, right, trimmed, least)
            left = _trimmed_means(pairs.starts, pairs.partners, sizes, right, left, trimmed, least)
            before, products = products, left[pairs.owners] * right[pairs.partners]
            change, rounds = float(np.abs(products - before).max(initial=0.0)), rounds + 1
        return np.sqrt(left * right), change, rounds


@compiled()
def _trimmed_means(starts, partners, sizes, others, own, trimmed, least):  # type: ignore[no-untyped-def]  # for Numba
    """Mean over partners of sizes / others, without those farthest above and below `own`; `own` where none are left."""
    result = own.copy()
    for node in range(len(own)):
        begin, end = starts[node], starts[node + 1]
        ratios = np.empty(end - begin)
        for row in range(begin, end):
            ratios[row - begin] = sizes[row] / max(others[partners[row]], least)  # nobody's skill divides by nothing
        ratios.sort()
        low, high = 0, len(ratios)
        while low < min(trimmed[node], high) and ratios[low] < own[node]:
            low += 1
        while high > low and len(ratios) - high < trimmed[node] and ratios[high - 1] > own[node]:
            high -= 1
        if high > low:
            result[node] = ratios[low:high].mean()
    return result
