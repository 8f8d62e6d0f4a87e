"""Dawid-Skene: one confusion matrix per annotator, estimated by expectation maximisation."""

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
    """M-step: the most probable parameters given the counts and a Dirichlet prior.

    confusion[r, k, l] = (counts[r, k, l] + prior + diagonal [k = l]) / sum over l, class_prior[k] ~ counts[k] + prior.
    A row without data is the prior's mean; without a prior it is uniform.

    Args:
        counts: counts of all annotations.
        prior: pseudo-count of each cell.
        diagonal: additional pseudo-count of each diagonal cell.
    """
    logs = normalised_logs(counts.table, prior + diagonal * np.eye(counts.num_classes))
    return Params(logs.transpose(0, 2, 1), np.log(np.maximum(shares_of(counts.classes + prior), TINY)))


# === EM around them; who adds up is the caller's business ===


def objective(counts: Counts, params: Params, prior: float = 0.01, diagonal: float = 1.0) -> float:
    """Objective that never falls in EM: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: counts computed with `params`.
        params: parameters at which the objective is evaluated.
        prior: as in `update`.
        diagonal: as in `update`.
    """
    logs = params.log_confusions
    density = prior * float(logs.sum()) if prior else 0.0
    if diagonal:
        density += diagonal * float(np.trace(logs, axis1=1, axis2=2).sum())
    return counts.log_likelihood + (density + prior * float(params.log_class_prior.sum()))


def start_weights(num_annotators: int, start: int, seed: int) -> NDArray[np.float64]:
    """Weights of the annotators' votes with which a start begins, [R].

    Start 0 is the plain vote. The others draw weights from Exp(1) (a Bayesian bootstrap over annotators), which makes
    the starts differ but keeps the meaning of the classes, unlike random posteriors.
    """
    if start == 0:
        return np.ones(num_annotators)
    return np.random.default_rng([seed, start]).exponential(size=num_annotators)


@dataclass(frozen=True)
class DawidSkene(Incremental, Iterative):
    """Confusion matrices of annotators (Dawid and Skene, Applied Statistics 28(1), 1979), fitted by EM.

    The truth of task i is class k with probability rho[k]; annotator r then says l with probability pi[r, k, l].

    - E-step: q[i, k] ~ rho[k] * product over the task's annotations of pi[r, k, said], in log space.
    - M-step: pi[r, k, l] ~ sum of q[i, k] where r said l, plus the prior; rho[k] ~ sum of q[i, k], plus the prior.

    Starts from vote shares, or from the posteriors of `OneCoinDawidSkene`. The default prior is small because
    annotators often have few labels: one pseudo-count per cell outweighs them (Music: .55 instead of .77).

    With `confidence`, an answer is a distribution s over the classes: the annotation's confidence for its label, and
    the rest spread evenly over the others. It replaces the label that the annotator has in mind, and has the
    likelihood `sum_l s[l] pi[r, k, l]`. The M-step counts labels by their probability given s and k, and EM starts from
    mean answers, as in Platanios et al. (2020, equation 8). `SoftAnswers` describes the model.

    Args:
        max_iter: maximum number of iterations per start, an E-step and an M-step each. The M-step that computes the
            first parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: converged if an iteration raises the objective by at most this, in nats per annotation. Further iterations
            usually fit noise (web: .830 at 1e-5, .822 at 1e-6, .819 at 1e-9).
        prior: pseudo-count of each cell of a confusion matrix, and of each class. 0: maximum likelihood.
        diagonal: additional pseudo-count of diagonal cells: the belief that annotators are right more often than not.
        num_starts: number of starts; the one with the highest objective is kept. The first is `start` (or `initial`),
            the others weight annotators' votes at random.
        start: what the first start begins with: "votes", the shares of the plain vote; or "one-coin", the posteriors of
            `OneCoinDawidSkene` with its default settings (which ignores confidences). It does not run on Beam: fit one
            coin there, and pass its result as `initial`.
        seed: seed of the starts, and of random ties.
        confidence: whether the column `confidence` of the annotations is used as the probability of the label; labels
            without one (NaN) are taken as certain. Needs 8 K bytes per annotation, and does not run on Beam.

    Raises:
        ConfigError: a setting is out of range.

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
        """Estimates truths and confusion matrices jointly.

        Memory in addition to the annotations: 5 bytes per annotation (8 for more than 256 classes), 16 + 8 K per task
        (the result), and 8 K**2 per annotator for the parameters and for each thread's counts.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and the
                likelihood includes them.
            initial: starting point of the first start instead of `start`: posteriors [N, K], confusions [R, K, K] (with
                equal class prior), or an earlier `Aggregation` of the same annotators and classes.
            prior: an earlier result for classes. Its annotations, with their posteriors there, count in the estimates
                of annotators and classes. Annotators and classes are matched by name; those that only the prior has are
                last in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors under the last parameters. `history` is the penalised log-likelihood (see `objective`) at the
            start and after each iteration. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, `gold`, `initial` or `prior` does not match them, or
                a confidence that is used is missing or outside 0 to 1.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
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
        """Posteriors for the first start, [N, K]; None to start from the votes."""
        if initial is None and self.start == "one-coin":
            with ignored(ConvergenceWarning, VotesWarning):  # only a start; warnings about the result count
                return OneCoinDawidSkene().fit(annotations, gold).posteriors
        return initial_posteriors(initial, annotations)

    def step(self, run: Run[Params], counts: Counts) -> Run[Params]:
        """Runs one iteration, given the counts of all blocks under `run.params`; a finished run is unchanged."""
        return self._advance(
            run,
            objective(counts, run.params, self.prior, self.diagonal),
            counts,
            partial(update, counts, self.prior, self.diagonal),
        )

    def result(
        self, annotations: Annotations, run: Run[Params], posteriors: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> Aggregation:
        """Creates the result of `fit` from the chosen run, its posteriors [N, K] and their labels [N]."""
        return Aggregation.of(
            "dawid-skene", annotations, posteriors, labels, run.params, confidence=self.confidence, **run.facts
        )

    def warm_start(self, annotations: Annotations, initial: Initial) -> Run[Params] | None:
        """Returns a run that starts from confusions [R, K, K] or an earlier `Aggregation`, see `fit`; else None."""
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
