"""One-coin Dawid-Skene: every annotator has one number, how often it is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.classes.initial import initial_posteriors
from crowdzoo.aggregation.classes.majority_vote import vote_shares
from crowdzoo.aggregation.convergence import warn_not_converged
from crowdzoo.aggregation.engine.block import Block, blocks_of
from crowdzoo.aggregation.engine.class_frequencies import CLASS_PRIORS, class_prior_of, log_class_density
from crowdzoo.aggregation.engine.params import TINY
from crowdzoo.aggregation.engine.right_wrong import Answers, Cells, answers_of, given_answers, posteriors_of
from crowdzoo.aggregation.engine.run import Run, advance, answers_by_block
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.constraints import MAX_ITER, PRIOR, SEED, TOL, Checked, Choice, Rule

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["OneCoinDawidSkene", "Priors", "contribution", "objective", "posteriors", "start", "update"]

MAX_CELLS = 2**24  # of the confusion matrices that a result holds: 128 MiB


@dataclass(frozen=True)
class Priors:
    """What is believed before any annotation.

    Attributes:
        right: pseudo-count of right annotations of each annotator.
        wrong: pseudo-count of wrong annotations of each annotator.
        class_prior: one of `CLASS_PRIORS`.
        classes: pseudo-count of each class, where the class prior is estimated.
    """

    right: float
    wrong: float
    class_prior: str
    classes: float


# === The functions over blocks ===


def contribution(block: Block, params: Cells) -> Answers:
    """E-step of a block, and what it adds to the M-step.

    Args:
        block: T tasks, A annotations.
        params: `right` and `wrong` of R annotators, log s[r] and log((1 - s[r]) / (K - 1)), both [R].
    """
    return answers_of([block], params)


def start(block: Block, num_annotators: int, num_classes: int, initial: NDArray[np.float64] | None = None) -> Answers:
    """What a block adds before there are parameters: vote shares as posteriors, or given ones.

    Args:
        block: T tasks, A annotations.
        num_annotators: R.
        num_classes: K.
        initial: posteriors of all tasks, [N, K].
    """
    if initial is None:
        shares = vote_shares(block, np.ones(num_annotators), num_classes)
    else:
        shares = block.clamped(initial[block.tasks])
    return given_answers(block, shares, (num_annotators,))


def update(counts: Answers, priors: Priors) -> Cells:
    """M-step: s[r] = (right[r] + prior) / (right[r] + wrong[r] + priors), and the mean posterior as class prior.

    An annotator of whom nothing is known, not even by a prior, has s = 1 / K: its annotations say nothing.

    Args:
        counts: counts of all annotations.
        priors: pseudo-counts.
    """
    num_classes = len(counts.classes)
    right, wrong = counts.right + priors.right, counts.wrong + priors.wrong
    total = right + wrong
    nothing = total <= 0
    skill = np.divide(right, total, out=np.full_like(right, 1 / num_classes), where=~nothing)
    slip = np.divide(wrong, total, out=np.full_like(right, 1 - 1 / num_classes), where=~nothing)
    return params_of(skill, slip, class_prior_of(counts.classes, priors.class_prior, priors.classes))


def params_of(skill: NDArray[np.float64], slip: NDArray[np.float64], class_prior: NDArray[np.float64]) -> Cells:
    """Parameters in log space.

    Args:
        skill: probability that each annotator is right, [R].
        slip: 1 - skill, to full precision, [R].
        class_prior: [K].
    """
    others = max(len(class_prior) - 1, 1)
    return Cells(
        np.log(np.maximum(skill, TINY)), np.log(np.maximum(slip / others, TINY)), np.maximum(class_prior, TINY)
    )


def posteriors(block: Block, params: Cells) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks given the parameters, [T, K].

    Known classes are certain, tasks without annotations have the class prior.
    """
    return posteriors_of(block, params)


def objective(counts: Answers, params: Cells, priors: Priors) -> float:
    """What EM never lets fall: log-likelihood plus log prior density (up to a constant), in nats.

    Args:
        counts: made with `params`.
        params: where the objective is taken.
        priors: as in `update`.
    """
    penalty = 0.0
    if priors.right:
        penalty += priors.right * params.right.sum()
    if priors.wrong:
        penalty += priors.wrong * params.wrong.sum()
    penalty += log_class_density(counts.classes, np.log(params.class_prior), priors.class_prior, priors.classes)
    return counts.log_likelihood + float(penalty)


@dataclass(frozen=True)
class OneCoinDawidSkene(Checked):
    """Annotators who are right with one probability whatever the class, fitted by EM.

    The truth of task i is class k with probability rho[k]; annotator r then says k with probability s[r], and each
    other class with probability (1 - s[r]) / (K - 1). (Dawid-Skene with homogeneous matrices, as in Zhang, Chen, Zhou
    and Jordan, "Spectral methods meet EM", JMLR 17, 2016, section 2.)

    - E-step: q[i, k] ~ rho[k] * product of s[r] or (1 - s[r]) / (K - 1) over the task's annotations, in log space.
    - M-step: s[r] = (expected number of right annotations + `right`) / (annotations + `right` + `wrong`).

    The class prior is uniform unless asked for: an estimated one is what makes this model collapse. On nine real
    crowds the estimate costs accuracy on each: .001 on dog, .04 on web, .14 on bluebird (.583 against .722).

    Args:
        max_iter: most iterations (M-steps).
        tol: it has converged when an iteration raises the objective by no more than this, in nats per annotation.
        right: pseudo-count of right annotations of each annotator.
        wrong: pseudo-count of wrong annotations of each annotator. With `right=0, wrong=0`: maximum likelihood.
        class_prior: "estimated" from the posteriors; "smoothed": half way between those shares and equal ones; or
            "uniform".
        class_count: pseudo-count of each class, where the class prior is estimated.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.
    """

    max_iter: int = 100
    tol: float = 1e-5
    right: float = 2.0
    wrong: float = 1.0
    class_prior: str = "smoothed"
    class_count: float = 0.01
    seed: int = 0

    rules: ClassVar[dict[str, Rule]] = {
        "max_iter": MAX_ITER,
        "tol": TOL,
        "right": PRIOR,
        "wrong": PRIOR,
        "class_prior": Choice(CLASS_PRIORS),
        "class_count": PRIOR,
        "seed": SEED,
    }

    @property
    def priors(self) -> Priors:
        """The settings that `update` and `objective` take."""
        return Priors(self.right, self.wrong, self.class_prior, self.class_count)

    def fit(
        self,
        annotations: Annotations,
        gold: ArrayLike | None = None,
        initial: ArrayLike | Aggregation | None = None,
    ) -> Aggregation:
        """Finds truths and annotators' skills together.

        Memory beside the table of annotations: 5 bytes an annotation (8 with more than 256 classes), 16 + 8 K a task
        (the result), about 80 an annotator for the parameters and 16 for each thread's counts; and the confusions. An
        iteration's time follows the annotations, whatever K.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the
                likelihood counts it.
            initial: starting point instead of vote shares: posteriors [N, K]; an earlier result of this class for
                the same annotators and classes, whose skills count; or any result for the same tasks and classes,
                whose posteriors count.

        Returns:
            Posteriors under the last parameters. `reliability` is s. `confusions` are the matrices that s stands for,
            or None where they would have more than 2**24 cells. `history` is the penalised log-likelihood (see
            `objective`) at the start and after each iteration. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        check_classification(annotations, "One-coin Dawid-Skene")
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        blocks, threads = blocks_of(annotations, gold), num_threads()
        if knows_skills(initial, annotations):
            run = self.warm_start(initial)  # type: ignore[arg-type]
        else:
            given = initial_posteriors(initial, annotations)
            counts = (start(block, num_annotators, num_classes, given) for block in blocks)
            run = self.begin(reduce(add, counts, Answers.zero((num_annotators,), num_classes)))
        while not run.done:
            run = self.step(run, reduce(add, in_threads(partial(answers_of, cells=run.params), blocks, threads)))
        self.warn_unless_converged(run, len(annotations))

        def write(place: int, out: NDArray[np.float64]) -> None:
            out[:] = posteriors(blocks[place], run.params)

        found, labels, _ = answers_by_block(annotations, blocks, write, self.seed)
        return self.result(annotations, run, found, labels)

    def begin(self, counts: Answers) -> Run[Cells]:
        """A run whose first parameters come from counts under other posteriors, such as vote shares."""
        return Run(update(counts, self.priors))

    def warm_start(self, earlier: Aggregation) -> Run[Cells]:
        """A run that begins with the skills and the class prior of an earlier result of this class."""
        assert earlier.reliability is not None
        assert earlier.class_prior is not None
        return Run(params_of(earlier.reliability, 1 - earlier.reliability, earlier.class_prior))

    def step(self, run: Run[Cells], counts: Answers) -> Run[Cells]:
        """One iteration, given the counts of all blocks under `run.params`; a run that is done stays as it is."""
        return advance(
            run,
            objective(counts, run.params, self.priors),
            counts.log_likelihood,
            counts.num_annotations,
            self.max_iter,
            self.tol,
            lambda: update(counts, self.priors),
        )

    def warn_unless_converged(self, run: Run[Cells], num_annotations: int) -> None:
        """Says what to do about a run that is done without having converged."""
        if not run.converged:
            rise = run.last_rise(num_annotations)
            title = "One-coin Dawid-Skene"
            warn_not_converged(title, self.max_iter, self.tol, rise, "nats per annotation", stacklevel=3)

    def result(
        self, annotations: Annotations, run: Run[Cells], posteriors: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> Aggregation:
        """What `fit` gives back for a run that is done, its posteriors [N, K] and their labels [N]."""
        num_annotators, num_classes = annotations.num_annotators, annotations.num_classes
        skill = np.exp(run.params.right)
        confusions = None
        if num_annotators * num_classes**2 <= MAX_CELLS:
            confusions = np.repeat(np.exp(run.params.wrong), num_classes**2).reshape(-1, num_classes, num_classes)
            confusions[:, np.arange(num_classes), np.arange(num_classes)] = skill[:, None] if num_classes > 1 else 1.0
        result = Aggregation.of(
            "one-coin",
            annotations,
            posteriors,
            labels,
            log_likelihood=run.log_likelihood,
            history=run.history,
            converged=run.converged,
            num_iterations=run.num_iterations,
            reliability=skill,
        )
        return replace(result, confusions=confusions, class_prior=run.params.class_prior)


def knows_skills(initial: ArrayLike | Aggregation | None, annotations: Annotations) -> bool:
    """Whether an earlier result is one of this class, for the same annotators and classes."""
    return (
        isinstance(initial, Aggregation)
        and initial.method == "one-coin"
        and np.array_equal(initial.annotators, annotations.annotators)
        and np.array_equal(initial.classes, np.asarray(annotations.classes))
    )
