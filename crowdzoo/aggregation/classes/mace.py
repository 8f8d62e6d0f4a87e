"""MACE: annotators who either know the answer or spam."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.classes.iterative import Initial, Iterative, first_answers, taken, warn_unless_converged
from crowdzoo.aggregation.classes.one_coin import MAX_CELLS
from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.aggregation.engine.right_wrong import (
    CLASS_PRIORS,
    Answers,
    Cells,
    all_answers,
    class_prior_of,
    found_answers,
    log_class_density,
)
from crowdzoo.aggregation.engine.run import Run, best_of
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import COUNT, MAX_ITER, PRIOR, SEED, TOL, Choice, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

INFERENCES = ("vb", "em")


@dataclass(frozen=True, eq=False)
class Competence:
    """Estimates for the annotators between two steps.

    Attributes:
        know: probability that an annotator knows the answer, [R]; with "vb" its mean.
        strategy: label distribution of an annotator who spams, [R, K]; with "vb" its mean.
        log_know: logarithm of `know`, or with "vb" the expected logarithm, [R].
        log_spam: the same for 1 - know, [R].
        log_strategy: the same for `strategy`, [R, K].
        log_prior: the annotators' part of the objective, nats: the log prior density, or with "vb" minus the divergence
            of posterior from prior.
        class_prior: probability of each class, [K].
    """

    know: NDArray[np.float64]
    strategy: NDArray[np.float64]
    log_know: NDArray[np.float64]
    log_spam: NDArray[np.float64]
    log_strategy: NDArray[np.float64]
    log_prior: float
    class_prior: NDArray[np.float64]

    @property
    def cells(self) -> Cells:
        """Probabilities of annotations; right ones come from annotators who know and from those who spam."""
        wrong = self.log_spam[:, None] + self.log_strategy
        return Cells(np.logaddexp(self.log_know[:, None], wrong), wrong, self.class_prior)


# === The steps ===


def update(counts: Answers, params: Competence, settings: MACE) -> Competence:
    """M-step, with the rest of the E-step: how many of the right annotations were known, and how many are spam.

    Returns the most probable values ("em"), or posterior distributions ("vb").

    Args:
        counts: counts of all annotations, computed with `params`.
        params: current estimates.
        settings: priors, and the kind of inference.
    """
    cells = params.cells
    knew = (counts.right * np.exp(params.log_know[:, None] - cells.right)).sum(axis=1)
    strategy = counts.right * np.exp(cells.wrong - cells.right) + counts.wrong
    answers, num_classes = np.stack([knew, strategy.sum(axis=1)], axis=1), strategy.shape[1]
    know, spam, cell = settings.know, settings.spam, settings.strategy
    if settings.inference == "em":
        know = spam = cell = settings.smoothing / num_classes
    means, logs, log_prior = [], [], 0.0
    for expected, prior in ((answers, np.array([know, spam])), (strategy, np.full(num_classes, cell))):
        posterior = expected + prior
        total = posterior.sum(axis=1, keepdims=True)
        uniform = np.full_like(posterior, 1 / posterior.shape[1])
        means.append(np.divide(posterior, total, out=uniform, where=total > 0))
        if settings.inference == "vb":
            log_means, divergence = expected_logs(expected[:, :, None], prior[:, None])
            logs.append(log_means[:, :, 0])
            log_prior -= divergence
        else:
            logs.append(np.log(np.maximum(means[-1], TINY)))
            log_prior += float((prior * logs[-1]).sum()) if prior.any() else 0.0
    class_prior = np.maximum(class_prior_of(counts.classes, settings.class_prior, settings.class_count), TINY)
    return Competence(means[0][:, 0], means[1], logs[0][:, 0], logs[0][:, 1], logs[1], log_prior, class_prior)


def objective(counts: Answers, params: Competence, settings: MACE) -> float:
    """Objective that never falls, in nats: penalised log-likelihood ("em"), or variational bound ("vb").

    Args:
        counts: counts computed with `params`.
        params: estimates at which the objective is evaluated.
        settings: as in `update`.
    """
    log_prior = np.log(params.class_prior)
    classes = log_class_density(counts.classes, log_prior, settings.class_prior, settings.class_count)
    return counts.log_likelihood + params.log_prior + classes


def undecided(num_annotators: int, num_classes: int, know: float | NDArray[np.float64] = 0.5) -> Competence:
    """Annotators who all know with the same probability, and spam uniformly."""
    known = np.broadcast_to(np.asarray(know, np.float64), (num_annotators,))
    strategy = np.full((num_annotators, num_classes), 1 / num_classes)
    equal = np.full(num_classes, 1 / num_classes)
    return Competence(known, strategy, np.log(known), np.log1p(-known), np.log(strategy), 0.0, equal)


@dataclass(frozen=True)
class MACE(Iterative):
    """Annotators who either know the truth or spam; "Multi-Annotator Competence Estimation".

    Hovy, Berg-Kirkpatrick, Vaswani and Hovy, "Learning whom to trust with MACE", NAACL 2013. All classes are equally
    probable for the truth of task i. Annotator r knows it with probability theta[r], and says it; otherwise r says
    class l with probability xi[r, l], whatever the truth. So annotators cannot be worse than chance, unlike in
    `DawidSkene`.

    - "em": expectation maximisation with pseudo-counts.
    - "vb": variational Bayes with Beta and Dirichlet priors, which the paper prefers. Beta(1/2, 1/2) expresses that
      annotators nearly always know or nearly always spam.

    Of several starts, the one with the highest objective is kept; the first is the vote, the others draw each theta at
    random. With "vb" they usually reach the same optimum; "em" has more local optima.

    Args:
        max_iter: maximum number of iterations per start, an E-step and an M-step each. The M-step that computes the
            first parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: converged if an iteration raises the objective by at most this, in nats per annotation.
        inference: "vb" or "em".
        know: first parameter of the Beta prior on theta ("vb").
        spam: second parameter of the Beta prior on theta ("vb").
        strategy: parameter of the symmetric Dirichlet prior on xi ("vb").
        smoothing: pseudo-count divided equally among the classes, for theta and for xi ("em").
        class_prior: "estimated" from the posteriors; "smoothed", the mean of that and equal shares; or "uniform", as in
            the paper.
        class_count: pseudo-count of each class if the class prior is "estimated".
        num_starts: number of starts; the one with the highest objective is kept. The first is the plain vote (or
            `initial`).
        seed: seed of the starts, and of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MACE
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "dog"]
        >>> result = MACE().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']
        >>> str(result.annotators[result.skills.argmin()])  # who says "dog" whatever the task is
        'cem'

    Needs:
        Annotators who are not worse than chance.

    Source:
        D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy: Learning Whom to Trust with MACE. NAACL 2013.
    """

    title: ClassVar[str] = "MACE"

    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-5, TOL)
    inference: str = setting("vb", Choice(INFERENCES))
    know: float = setting(0.5, Number(1e-6, 1e9))
    spam: float = setting(0.5, Number(1e-6, 1e9))
    strategy: float = setting(10.0, Number(1e-6, 1e9))
    smoothing: float = setting(0.01, PRIOR)
    class_prior: str = setting("estimated", Choice(CLASS_PRIORS))
    class_count: float = setting(0.01, PRIOR)
    num_starts: int = setting(1, COUNT)
    seed: int = setting(0, SEED)

    @property
    def draws_by_code(self) -> bool:
        """Whether random numbers depend on the annotators' codes."""
        return self.num_starts > 1

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Estimates truths, competences and spamming strategies jointly.

        Memory in addition to the annotations: 5 bytes per annotation (8 for more than 256 classes), 16 + 8 K per task
        (the result), about 70 K per annotator for the parameters and 16 K for each thread's counts; and the confusions.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and the
                likelihood includes them.
            initial: starting point of the first start instead of vote shares: posteriors [N, K], or any result for the
                same tasks and classes, whose posteriors are used.

        Returns:
            Posteriors under the last parameters. `skills` is theta, the probability that an annotator knows (with "vb"
            its posterior mean). `confusions` are the matrices implied by theta and xi, theta [k = l] + (1 - theta)
            xi[l], or None if they would have more than 2**24 cells. `history` is the objective at the start and after
            each iteration: with "vb" a lower bound of the log evidence, with "em" the penalised log-likelihood.
            `log_likelihood` is that of "em" without penalty; with "vb" it is None. Ties are broken at random, as in
            `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not match them.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
        """
        blocks, first_posteriors = taken(annotations, self.title, gold, initial)
        sizes = annotations.num_annotators, annotations.num_classes
        runs = []
        for place in range(self.num_starts):
            if place:
                know = np.random.default_rng([self.seed, place]).uniform(0.01, 0.99, sizes[0])
                run = Run(undecided(*sizes, know))
            else:
                run = Run(
                    update(first_answers(blocks, *sizes, first_posteriors, by_label=True), undecided(*sizes), self)
                )
            while not run.done:
                counts, params = all_answers(blocks, run.params.cells), run.params
                run = self._advance(run, objective(counts, params, self), counts, partial(update, counts, params, self))
            runs.append(run)
        best = best_of(runs)
        warn_unless_converged(self, best, len(annotations))
        num_classes, params = sizes[1], best.params
        confusions = None
        if sizes[0] * num_classes**2 <= MAX_CELLS:
            know = params.know[:, None, None]
            confusions = know * np.eye(num_classes) + (1 - know) * params.strategy[:, None, :]
        fields = {**best.facts, "confusions": confusions, "class_prior": params.class_prior, "skills": params.know}
        if self.inference == "vb":
            fields["log_likelihood"] = None
        return Aggregation.of(
            "mace", annotations, *found_answers(annotations, blocks, params.cells, self.seed), **fields
        )
