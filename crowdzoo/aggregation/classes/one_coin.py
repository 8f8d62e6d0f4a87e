"""One-coin Dawid-Skene: a single accuracy per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.classes.iterative import (
    Incremental,
    Initial,
    Iterative,
    first_answers,
    initial_posteriors,
    same_crowd,
    warn_unless_converged,
)
from crowdzoo.aggregation.engine.block import blocks_of
from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.aggregation.engine.right_wrong import (
    CLASS_PRIORS,
    Answers,
    Cells,
    all_answers,
    class_prior_of,
    found_answers,
    log_class_density,
)
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, PRIOR, SEED, TOL, Choice, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

MAX_CELLS = 2**24  # of the confusion matrices of a result: 128 MiB


# === The steps ===


def update(counts: Answers, settings: OneCoinDawidSkene) -> Cells:
    """M-step: s[r] = (right[r] + prior) / (right[r] + wrong[r] + priors), and the mean posterior as class prior.

    An annotator without data and prior has s = 1 / K, so its annotations carry no information.

    Args:
        counts: counts of all annotations.
        settings: pseudo-counts, and the class prior.
    """
    num_classes = len(counts.classes)
    right, wrong = counts.right + settings.right, counts.wrong + settings.wrong
    total = right + wrong
    nothing = total <= 0
    skill = np.divide(right, total, out=np.full_like(right, 1 / num_classes), where=~nothing)
    slip = np.divide(wrong, total, out=np.full_like(right, 1 - 1 / num_classes), where=~nothing)
    return params_of(skill, slip, class_prior_of(counts.classes, settings.class_prior, settings.class_count))


def params_of(skill: NDArray[np.float64], slip: NDArray[np.float64], class_prior: NDArray[np.float64]) -> Cells:
    """Parameters in log space.

    Args:
        skill: probability that each annotator is right, [R].
        slip: 1 - skill, to full precision, [R].
        class_prior: [K].
    """
    num_wrong = max(len(class_prior) - 1, 1)
    return Cells(
        np.log(np.maximum(skill, TINY)), np.log(np.maximum(slip / num_wrong, TINY)), np.maximum(class_prior, TINY)
    )


def objective(counts: Answers, params: Cells, settings: OneCoinDawidSkene) -> float:
    """Objective that never falls in EM: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: counts computed with `params`.
        params: parameters at which the objective is evaluated.
        settings: as in `update`.
    """
    penalty = 0.0
    if settings.right:
        penalty += settings.right * params.right.sum()
    if settings.wrong:
        penalty += settings.wrong * params.wrong.sum()
    penalty += log_class_density(counts.classes, np.log(params.class_prior), settings.class_prior, settings.class_count)
    return counts.log_likelihood + float(penalty)


@dataclass(frozen=True)
class OneCoinDawidSkene(Incremental, Iterative):
    """Annotators with a single accuracy for all classes, fitted by EM.

    The truth of task i is class k with probability rho[k]; annotator r then says k with probability s[r], and each
    other class with probability (1 - s[r]) / (K - 1). (Dawid-Skene with homogeneous matrices, as in Zhang, Chen, Zhou
    and Jordan, "Spectral methods meet EM", JMLR 17, 2016, section 2.)

    - E-step: q[i, k] ~ rho[k] * product of s[r] or (1 - s[r]) / (K - 1) over the task's annotations, in log space.
    - M-step: s[r] = (expected number of right annotations + `right`) / (annotations + `right` + `wrong`).

    The class prior is uniform by default: estimating it makes this model collapse. On nine real crowds it always costs
    accuracy: .001 on dog, .04 on web, .14 on bluebird (.583 against .722).

    Args:
        max_iter: maximum number of iterations, an E-step and an M-step each. The M-step that computes the first
            parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: converged if an iteration raises the objective by at most this, in nats per annotation.
        right: pseudo-count of right annotations per annotator.
        wrong: pseudo-count of wrong annotations per annotator. `right=0, wrong=0` is maximum likelihood.
        class_prior: "estimated" from the posteriors; "smoothed", the mean of that and equal shares; or "uniform".
        class_count: pseudo-count of each class if the class prior is estimated.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import OneCoinDawidSkene
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = OneCoinDawidSkene().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']
        >>> str(result.annotators[result.skills.argmin()])  # who is wrong most often
        'cem'

    Needs:
        Annotators whose errors do not depend on the class.

    Source:
        Y. Zhang, X. Chen, D. Zhou, M. Jordan: Spectral Methods Meet EM. JMLR 17, 2016, section 2.
    """

    title: ClassVar[str] = "One-coin Dawid-Skene"

    max_iter: int = setting(100, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    right: float = setting(2.0, PRIOR)
    wrong: float = setting(1.0, PRIOR)
    class_prior: str = setting("smoothed", Choice(CLASS_PRIORS))
    class_count: float = setting(0.01, PRIOR)
    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Estimates truths and annotators' skills jointly.

        Memory in addition to the annotations: 5 bytes per annotation (8 for more than 256 classes), 16 + 8 K per task
        (the result), about 80 per annotator for the parameters and 16 for each thread's counts; and the confusions. The
        time of an iteration is proportional to the annotations, whatever K.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and the
                likelihood includes them.
            initial: starting point instead of vote shares: posteriors [N, K]; an earlier result of this class for
                the same annotators and classes, whose skills are used; or any result for the same tasks and classes,
                whose posteriors are used.

        Returns:
            Posteriors under the last parameters. `skills` is s. `confusions` are the matrices implied by s, or None if
            they would have more than 2**24 cells. `history` is the penalised log-likelihood (see `objective`) at the
            start and after each iteration. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not match them.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
        """
        check_classification(annotations, self.title)
        sizes = annotations.num_annotators, annotations.num_classes
        blocks = blocks_of(annotations, gold)
        run = self.warm_start(annotations, initial)
        if run is None:
            first_posteriors = initial_posteriors(initial, annotations)
            run = Run(update(first_answers(blocks, *sizes, first_posteriors, by_label=False), self))
        while not run.done:
            run = self.step(run, all_answers(blocks, run.params))
        warn_unless_converged(self, run, len(annotations))
        return self.result(annotations, run, *found_answers(annotations, blocks, run.params, self.seed))

    def step(self, run: Run[Cells], counts: Answers) -> Run[Cells]:
        """Runs one iteration, given the counts of all blocks under `run.params`."""
        return self._advance(run, objective(counts, run.params, self), counts, partial(update, counts, self))

    def warm_start(self, annotations: Annotations, initial: Initial) -> Run[Cells] | None:
        """Returns a run that starts from an earlier result of this class, see `fit`; else None."""
        if not same_crowd(initial, "one-coin", annotations):
            return None
        assert initial.skills is not None
        assert initial.class_prior is not None
        return Run(params_of(initial.skills, 1 - initial.skills, initial.class_prior))

    def result(
        self, annotations: Annotations, run: Run[Cells], posteriors: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> Aggregation:
        """Creates the result of `fit` from a finished run, its posteriors [N, K] and their labels [N]."""
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        skill = np.exp(run.params.right)
        confusions = None
        if num_annotators * num_classes**2 <= MAX_CELLS:
            confusions = np.repeat(np.exp(run.params.wrong), num_classes**2).reshape(-1, num_classes, num_classes)
            confusions[:, np.arange(num_classes), np.arange(num_classes)] = skill[:, None] if num_classes > 1 else 1.0
        return Aggregation.of(
            "one-coin",
            annotations,
            posteriors,
            labels,
            confusions=confusions,
            class_prior=run.params.class_prior,
            skills=skill,
            **run.facts,
        )
