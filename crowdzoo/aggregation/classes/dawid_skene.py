"""Dawid-Skene: every annotator has a confusion matrix, found by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import ConvergenceWarning, VotesWarning, check_classification, ignored
from crowdzoo.aggregation.classes.history import Prior, with_prior
from crowdzoo.aggregation.classes.iterative import (
    Incremental,
    Initial,
    Iterative,
    check_same,
    checked_initial,
    initial_posteriors,
    warn_unless_converged,
)
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.engine.block import blocks_of
from crowdzoo.aggregation.engine.confusions import (
    TINY,
    Counts,
    Params,
    first_counts,
    normalised_logs,
    posteriors_and_labels,
    shares_of,
)
from crowdzoo.aggregation.engine.run import Run, best_of
from crowdzoo.aggregation.engine.soft_votes import SoftVotes
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import COUNT, FLAG, MAX_ITER, PRIOR, SEED, TOL, Choice, setting
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

STARTS = ("votes", "one-coin")

# === The M-step; the E-step is that of `Counts` ===


def update(counts: Counts, prior: float = 0.01, diagonal: float = 1.0) -> Params:
    """M-step: the most probable parameters under the counts and a Dirichlet prior.

    confusion[r, k, l] = (counts[r, k, l] + prior + diagonal [k = l]) / sum over l, class_prior[k] ~ counts[k] + prior.
    A row that nothing is known of is the prior's own mean: with no prior at all, uniform.

    Args:
        counts: counts of all annotations.
        prior: pseudo-count of each cell.
        diagonal: further pseudo-count of each diagonal cell.
    """
    logs = normalised_logs(counts.table, prior + diagonal * np.eye(counts.num_classes))
    return Params(logs.transpose(0, 2, 1), np.log(np.maximum(shares_of(counts.classes + prior), TINY)))


# === EM around them; who adds up is the caller's business ===


def objective(counts: Counts, params: Params, prior: float = 0.01, diagonal: float = 1.0) -> float:
    """What EM never lets fall: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: made with `params`.
        params: where the objective is taken.
        prior: as in `update`.
        diagonal: as in `update`.
    """
    logs = params.log_confusions
    density = prior * float(logs.sum()) if prior else 0.0
    if diagonal:
        density += diagonal * float(np.trace(logs, axis1=1, axis2=2).sum())
    return counts.log_likelihood + (density + prior * float(params.log_class_prior.sum()))


def start_weights(num_annotators: int, start: int, seed: int) -> NDArray[np.float64]:
    """Weights of the annotators' votes that a start begins from, [R].

    Start 0 is the plain vote. The others draw weights from Exp(1) (a Bayesian bootstrap over annotators): starts
    differ, and yet classes keep their meaning, which they would lose from random posteriors.
    """
    if start == 0:
        return np.ones(num_annotators)
    return np.random.default_rng([seed, start]).exponential(size=num_annotators)


@dataclass(frozen=True)
class DawidSkene(Incremental, Iterative):
    """Annotators with confusion matrices (Dawid and Skene, Applied Statistics 28(1), 1979), fitted by EM.

    The truth of task i is class k with probability rho[k]; annotator r then says l with probability pi[r, k, l].

    - E-step: q[i, k] ~ rho[k] * product over the task's annotations of pi[r, k, said], in log space.
    - M-step: pi[r, k, l] ~ sum of q[i, k] where r said l, plus the prior; rho[k] ~ sum of q[i, k], plus the prior.

    Starts from vote shares, or from the posteriors of `OneCoinDawidSkene`. The prior is small because annotators often
    have few labels: one pseudo-count in every cell drowns them (on Music it takes accuracy from .77 to .55).

    With `confidence`, an answer is a distribution s over the classes: the annotation's confidence for its label, the
    rest evenly for the others. It takes the place of the label that the annotator has in mind, with the likelihood
    `sum_l s[l] pi[r, k, l]`; the M-step counts the labels by their probability given s and k, and EM starts from mean
    answers, as Platanios et al. (2020, equation 8) do. For the model see `SoftAnswers`.

    Args:
        max_iter: most iterations of a start, an E-step and an M-step each; the M-step that makes the first parameters
            of the votes comes before them, as in scikit-learn's mixtures.
        tol: it has converged when an iteration raises the objective by no more than this, in nats per annotation. EM's
            long tail past 1e-5 fits noise as a rule (web: .830 at 1e-5, .822 at 1e-6, .819 at 1e-9).
        prior: pseudo-count of every cell of a confusion matrix, and of every class. 0: maximum likelihood.
        diagonal: further pseudo-count of the diagonal: the belief that annotators are right more often than not.
        num_starts: number of starts; the one with the highest objective is kept. The first is `start` (or `initial`),
            the others weigh annotators' votes at random.
        start: what the first start begins with: "votes", the shares of the plain vote; or "one-coin", the posteriors of
            `OneCoinDawidSkene` with its own settings (which takes all labels whole, also with `confidence`). It does
            not run on Beam: fit one coin there, and give its result as `initial`.
        seed: seed of the starts, and of random ties.
        confidence: whether annotations count by their column `confidence`, a probability; where it is missing (NaN),
            the label counts whole. It takes 8 K bytes an annotation and does not run on Beam.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import DawidSkene
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = DawidSkene().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']
        >>> result.confusions.shape  # annotator, true class, class that the annotator said
        (3, 2, 2)

    Needs:
        About ten annotations of each class by each annotator, who do not copy each other.

    Source:
        A. P. Dawid, A. M. Skene: Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm. Applied
        Statistics 28(1), 1979.
    """

    title: ClassVar[str] = "Dawid-Skene"

    max_iter: int = setting(100, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    prior: float = setting(0.01, PRIOR)
    diagonal: float = setting(1.0, PRIOR)
    num_starts: int = setting(1, COUNT)
    seed: int = setting(0, SEED)
    confidence: bool = setting(False, FLAG)
    start: str = setting("votes", Choice(STARTS))

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None, prior: Prior = None
    ) -> Aggregation:
        """Finds truths and confusion matrices together.

        Memory beyond the table of annotations: 5 bytes an annotation (8 with more than 256 classes), 16 + 8 K a task
        (the result), and 8 K**2 an annotator for the parameters and for each thread's counts.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the
                likelihood counts it.
            initial: starting point of the first start instead of `start`: posteriors [N, K], confusions [R, K, K] (with
                equal class prior), or an earlier `Aggregation` of the same annotators and classes.
            prior: an earlier result for classes, whose annotations count for annotators and classes as if they were
                fitted here with the posteriors that they had; annotators and classes are matched by name, and those
                that only the prior has follow in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors under the last parameters. `history` is the penalised log-likelihood (see `objective`) at the
            start and after each iteration. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, `gold`, `initial` or `prior` does not fit them, or
                with `confidence` one is missing or outside of 0 to 1.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, self.title)
        annotations, history = with_prior(annotations, prior, self.title)
        sizes = annotations.num_annotators, annotations.num_classes
        blocks = blocks_of(annotations, gold)
        soft = SoftVotes(annotations, blocks, self.title) if self.confidence else None
        runs = []
        for start in range(self.num_starts):
            run = None if start else self.warm_start(annotations, initial)
            if run is None:
                begin = self._begin(annotations, gold, initial) if start == 0 else None
                weights = start_weights(sizes[0], start, self.seed)
                first = soft.first_counts(begin, weights) if soft else first_counts(blocks, *sizes, begin, weights)
                run = Run(update(history.added(first), self.prior, self.diagonal))
            while not run.done:
                counts = soft.expected(run.params) if soft else Counts.expected(blocks, run.params)
                run = self.step(run, history.added(counts, run.params))
            runs.append(run)
        best = best_of(runs)
        best = replace(best, log_likelihood=best.log_likelihood - history.evidence(best.params))
        warn_unless_converged(self, best, len(annotations))
        if soft:
            posteriors, labels = soft.answers(best.params, self.seed)
        else:
            posteriors, labels = posteriors_and_labels(annotations, blocks, best.params, self.seed)
        return history.noted(self.result(annotations, best, posteriors, labels))

    def _begin(self, annotations: Annotations, gold: ArrayLike | None, initial: Initial) -> NDArray[np.float64] | None:
        """Posteriors that the first start begins with, [N, K]; None for those of the votes."""
        if initial is None and self.start == "one-coin":
            with ignored(ConvergenceWarning, VotesWarning):  # only a start; what is said of the result counts
                return OneCoinDawidSkene().fit(annotations, gold).posteriors
        return initial_posteriors(initial, annotations)

    def step(self, run: Run[Params], counts: Counts) -> Run[Params]:
        """One iteration, given the counts of all blocks under `run.params`; a run that is done stays as it is."""
        return self._advance(
            run,
            objective(counts, run.params, self.prior, self.diagonal),
            counts,
            partial(update, counts, self.prior, self.diagonal),
        )

    def result(
        self, annotations: Annotations, run: Run[Params], posteriors: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> Aggregation:
        """What `fit` gives back for the chosen run, its posteriors [N, K] and their labels [N]."""
        return Aggregation.of(
            "dawid-skene", annotations, posteriors, labels, run.params, confidence=self.confidence, **run.facts
        )

    def warm_start(self, annotations: Annotations, initial: Initial) -> Run[Params] | None:
        """A run that begins with given confusions [R, K, K] or an earlier `Aggregation`, see `fit`; else None."""
        if initial is None or (not isinstance(initial, Aggregation) and np.ndim(initial) == 2):
            return None
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        if isinstance(initial, Aggregation):
            if initial.confusions is None or initial.class_prior is None:
                raise DataError("initial: that Aggregation has no confusions to start from; pass its posteriors.")
            check_same(initial, annotations, "annotators", "classes")
            return Run(Params.from_probabilities(initial.confusions, initial.class_prior))
        confusions = checked_initial(initial, num_annotators, num_classes, num_classes)
        return Run(Params.from_probabilities(confusions, np.full(num_classes, 1 / num_classes)))
