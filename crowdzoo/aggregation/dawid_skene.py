"""Dawid-Skene: every annotator has a confusion matrix, found by expectation maximisation."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation import majority_vote
from crowdzoo.aggregation.base import (
    Aggregation,
    ConvergenceWarning,
    check_classification,
    check_number,
    check_seed,
)
from crowdzoo.aggregation.block import Block, blocks_of, checked_gold
from crowdzoo.aggregation.counts import Counts
from crowdzoo.aggregation.initial import checked_initial
from crowdzoo.aggregation.labels import choose_labels
from crowdzoo.aggregation.params import Params
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.annotations import Annotations

__all__ = ["DawidSkene", "contribution", "objective", "posteriors", "start_weights", "update"]

# === The three functions over blocks ===


def contribution(block: Block, params: Params) -> Counts:
    """E-step of a block, and what it adds to the M-step.

    Args:
        block: T tasks, A annotations.
        params: of R annotators and K classes.
    """
    probabilities, log_evidence = _e_step(block, params)
    return Counts.of(block, probabilities, params.num_annotators, float(log_evidence.sum()))


def update(counts: Counts, prior: float = 0.01, diagonal: float = 0.0) -> Params:
    """M-step: the most probable parameters under the counts and a Dirichlet prior.

    confusion[r, k, l] = (counts[r, k, l] + prior + diagonal [k = l]) / sum over l, class_prior[k] ~ counts[k] + prior.
    A row that nothing is known of is the prior's own mean: with no prior at all, uniform.

    Args:
        counts: of all annotations.
        prior: pseudo-count of each cell.
        diagonal: further pseudo-count of each diagonal cell.
    """
    num_classes = len(counts.classes)
    confusions = counts.confusions + (prior + diagonal * np.eye(num_classes))
    classes = counts.classes + prior
    return Params.from_probabilities(_normalised(confusions), _normalised(classes))


def posteriors(block: Block, params: Params) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks given the parameters, [T, K].

    Known classes are certain, tasks without annotations have the class prior.
    """
    return _e_step(block, params)[0]


# === EM around them; who adds up is the caller's business ===


def objective(counts: Counts, params: Params, prior: float = 0.01, diagonal: float = 0.0) -> float:
    """What EM never lets fall: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: made with `params`.
        params: where the objective is taken.
        prior: as in `update`.
        diagonal: as in `update`.
    """
    penalty = 0.0
    if prior:
        penalty += prior * (params.log_confusions.sum() + params.log_class_prior.sum())
    if diagonal:
        penalty += diagonal * np.trace(params.log_confusions, axis1=1, axis2=2).sum()
    return counts.log_likelihood + float(penalty)


def start_weights(num_annotators: int, start: int, seed: int) -> NDArray[np.float64]:
    """Weights of the annotators' votes that a start begins from, [R].

    Start 0 is the plain vote. The others draw weights from Exp(1) (a Bayesian bootstrap over annotators): starts
    differ, and yet classes keep their meaning, which they would lose from random posteriors.
    """
    if start == 0:
        return np.ones(num_annotators)
    return np.random.default_rng([seed, start]).exponential(size=num_annotators)


@dataclass(frozen=True, eq=False)
class Run:
    """One start of EM, between two steps.

    Attributes:
        params: of the next E-step; the final ones once `done`.
        history: objective of the start and of each iteration so far, nats.
        log_likelihood: of the last E-step, without prior, nats.
        converged: the objective stands still.
        done: converged, or out of iterations.
    """

    params: Params
    history: tuple[float, ...] = ()
    log_likelihood: float = 0.0
    converged: bool = False
    done: bool = False


def best_of(runs: Sequence[Run]) -> Run:
    """The run with the highest objective; the earliest of equals."""
    return max(runs, key=lambda run: run.history[-1])


@dataclass(frozen=True)
class DawidSkene:
    """Annotators with confusion matrices (Dawid and Skene, Applied Statistics 28(1), 1979), fitted by EM.

    The truth of task i is class k with probability rho[k]; annotator r then says l with probability pi[r, k, l].

    - E-step: q[i, k] ~ rho[k] * product over the task's annotations of pi[r, k, said], in log space.
    - M-step: pi[r, k, l] ~ sum of q[i, k] where r said l, plus the prior; rho[k] ~ sum of q[i, k], plus the prior.

    Starts from vote shares. The prior is small because annotators often have few labels: one pseudo-count in every
    cell drowns them (on Music it takes accuracy from .77 to .55).

    Args:
        max_iter: most iterations (M-steps) of a start.
        tol: it has converged when an iteration raises the objective by no more than this, in nats per annotation. EM's
            long tail past 1e-5 fits noise as a rule (web: .830 at 1e-5, .822 at 1e-6, .819 at 1e-9).
        prior: pseudo-count of every cell of a confusion matrix, and of every class. 0: maximum likelihood.
        diagonal: further pseudo-count of the diagonal: the belief that annotators are right more often than not.
        num_starts: how many starts; that with the highest objective is kept. The first is the plain vote (or
            `initial`), the others weigh annotators at random.
        seed: of the starts, and of drawn ties.

    Raises:
        ConfigError: a setting that is out of range.
    """

    max_iter: int = 100
    tol: float = 1e-5
    prior: float = 0.01
    diagonal: float = 0.0
    num_starts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_number("tol", self.tol, 0)
        check_number("prior", self.prior, 0)
        check_number("diagonal", self.diagonal, 0)
        check_number("num_starts", self.num_starts, 1, whole=True)
        check_seed(self.seed)

    def fit(
        self,
        annotations: Annotations,
        gold: ArrayLike | None = None,
        initial: ArrayLike | Aggregation | None = None,
    ) -> Aggregation:
        """Finds truths and confusion matrices together.

        Memory beside the table: 32 bytes per annotation, and the work arrays of one block of at most a million
        annotations (16 bytes per annotation, 24 K per task).

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the
                likelihood counts it.
            initial: what the first start begins from: posteriors [N, K], confusions [R, K, K] (with equal class
                prior), or an earlier `Aggregation` of the same annotators and classes.

        Returns:
            Posteriors under the last parameters. `history` is the penalised log-likelihood (see `objective`) at the
            start and after each iteration. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, "Dawid-Skene")
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        blocks = list(blocks_of(annotations, checked_gold(gold, annotations.num_tasks, num_classes)))

        def add_up(kernel: Callable[[Block], Counts]) -> Counts:
            return reduce(add, map(kernel, blocks), Counts.zero(num_annotators, num_classes))

        shares = None
        if initial is not None and not isinstance(initial, Aggregation) and np.ndim(initial) == 2:
            given = checked_initial(initial, (annotations.num_tasks, num_classes))
            shares = functools.partial(_given, posteriors=given, num_annotators=num_annotators)
        runs = []
        for start in range(self.num_starts):
            if start == 0 and initial is not None:
                run = self.warm_start(annotations, initial) if shares is None else self.begin(add_up(shares))
            else:
                weights = start_weights(num_annotators, start, self.seed)
                vote = functools.partial(majority_vote.contribution, weights=weights, num_classes=num_classes)
                run = self.begin(add_up(vote))
            while not run.done:
                run = self.step(run, add_up(functools.partial(contribution, params=run.params)))
            runs.append(run)
        best = best_of(runs)
        self.warn_unless_converged(best, len(annotations))
        result = np.empty((annotations.num_tasks, num_classes))
        for block in blocks:
            result[block.tasks] = posteriors(block, best.params)
        return self.result(annotations, best, result)

    def begin(self, counts: Counts) -> Run:
        """A run whose first parameters come from counts under other posteriors, such as vote shares."""
        return Run(update(counts, self.prior, self.diagonal))

    def step(self, run: Run, counts: Counts) -> Run:
        """One iteration, given the counts of all blocks under `run.params`; a run that is done stays as it is."""
        if run.done:
            return run
        history = (*run.history, objective(counts, run.params, self.prior, self.diagonal))
        converged = len(history) > 1 and history[-1] - history[-2] <= self.tol * max(counts.num_annotations, 1)
        done = converged or len(history) > self.max_iter
        params = run.params if done else update(counts, self.prior, self.diagonal)
        return Run(params, history, counts.log_likelihood, converged, done)

    def warn_unless_converged(self, run: Run, num_annotations: int) -> None:
        """Says what to do about a run that is done without having converged."""
        if run.converged:
            return
        rise = (run.history[-1] - run.history[-2]) / max(num_annotations, 1)
        warnings.warn(
            f"Dawid-Skene did not converge in {self.max_iter} iterations: the last still raised the objective by "
            f"{rise:.1e} nats per annotation (tol={self.tol:g}). Posteriors may still move; raise max_iter, or tol "
            f"if that is close enough.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def result(self, annotations: Annotations, run: Run, posteriors: NDArray[np.float64]) -> Aggregation:
        """What `fit` gives back for the chosen run and its posteriors [N, K]."""
        return Aggregation.of(
            "dawid-skene",
            annotations,
            posteriors,
            choose_labels(posteriors, np.arange(len(posteriors)), seed=self.seed),
            run.params,
            log_likelihood=run.log_likelihood,
            history=run.history,
            converged=run.converged,
            num_iterations=len(run.history) - 1,
        )

    def warm_start(self, annotations: Annotations, initial: ArrayLike | Aggregation) -> Run:
        """A run that begins with given confusions [R, K, K] or an earlier `Aggregation`; see `fit`."""
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        if isinstance(initial, Aggregation):
            if initial.confusions is None or initial.class_prior is None:
                raise DataError("initial: that Aggregation has no confusions to start from; pass its posteriors.")
            for name in ("annotators", "classes"):
                if not np.array_equal(getattr(initial, name), getattr(annotations, name)):
                    raise DataError(f"initial: that Aggregation has other {name} than the annotations.")
            return Run(Params.from_probabilities(initial.confusions, initial.class_prior))
        confusions = checked_initial(initial, (num_annotators, num_classes, num_classes))
        return Run(Params.from_probabilities(confusions, np.full(num_classes, 1 / num_classes)))


def _given(block: Block, posteriors: NDArray[np.float64], num_annotators: int) -> Counts:
    """What a block adds under given posteriors [N, K] of all tasks."""
    return Counts.of(block, block.clamped(posteriors[block.tasks]), num_annotators)


def _e_step(block: Block, params: Params) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Posteriors [T, K] and the log probability of each task's annotations and known class [T]."""
    num_annotators, num_classes = params.num_annotators, params.num_classes
    said = block.said(num_annotators, num_classes)
    table = params.log_confusions.transpose(1, 0, 2).reshape(num_classes, -1)  # [true, annotator * K + said]
    joint = np.empty((num_classes, len(block.tasks)))
    for true in range(num_classes):  # one pass a class: no array of A x K
        joint[true] = np.bincount(block.index, weights=table[true].take(said), minlength=len(block.tasks))
        joint[true] += params.log_class_prior[true]
    if block.gold is not None:
        known = np.flatnonzero(block.gold >= 0)
        kept = joint[block.gold[known], known]
        joint[:, known] = -np.inf
        joint[block.gold[known], known] = kept
    peak = joint.max(axis=0)
    joint -= peak
    np.exp(joint, out=joint)
    total = joint.sum(axis=0)
    joint /= total
    return joint.T, peak + np.log(total)


def _normalised(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (last axis) that sum to one; uniform where a row is all zero."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, 1 / counts.shape[-1]), where=total > 0)
