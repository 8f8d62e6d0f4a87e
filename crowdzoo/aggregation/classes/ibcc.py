"""iBCC: Dawid-Skene with Dirichlet priors, fitted by variational Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.classes.history import Prior, with_prior
from crowdzoo.aggregation.classes.initial import Incremental, Initial, first_counts, taken
from crowdzoo.aggregation.classes.iterative import Iterative, warn_unless_converged
from crowdzoo.aggregation.engine.counts import Counts, posteriors_and_labels
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters
ANSWERS, RIGHT = 5.0, 4.0  # that the prior of a row is worth, and how many of them are right


@dataclass(frozen=True)
class Priors:
    """Pseudo-counts of the Dirichlet priors.

    Attributes:
        cell: of every cell of a confusion matrix.
        diagonal: further, of each diagonal cell.
        classes: of each class.
    """

    cell: float
    diagonal: float
    classes: float


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Dirichlet distributions of confusion rows and class probabilities.

    Attributes:
        counts: what the data added to the priors' pseudo-counts.
        priors: those.
        params: expected logarithms, which are in the E-step where Dawid-Skene has logarithms of estimates. Their
            exponentials are not probabilities: they sum to less than one.
        divergence: Kullback-Leibler divergence from the priors, nats, over all rows and the class probabilities.
    """

    counts: Counts
    priors: Priors
    params: Params
    divergence: float

    @property
    def means(self) -> Params:
        """Expected confusion matrices and class probabilities."""
        num_classes = self.counts.num_classes
        cells = self.counts.confusions + (self.priors.cell + self.priors.diagonal * np.eye(num_classes))
        cells /= cells.sum(axis=2, keepdims=True)
        classes = self.counts.classes + self.priors.classes
        return Params.from_probabilities(cells, classes / classes.sum())


# === The steps: Dawid-Skene's E-step, given `Beliefs.params`, and these ===


def update(counts: Counts, priors: Priors) -> Beliefs:
    """The best Dirichlet distributions given the tasks' posteriors, which enter by their counts.

    Args:
        counts: counts of all annotations.
        priors: pseudo-counts.
    """
    num_classes = counts.num_classes
    cells = priors.cell + priors.diagonal * np.eye(num_classes)
    logs, divergence = expected_logs(counts.table, cells)
    class_logs, class_divergence = expected_logs(
        counts.classes.reshape(1, -1, 1), np.full((num_classes, 1), priors.classes)
    )
    params = Params(logs.transpose(0, 2, 1), class_logs.ravel())
    return Beliefs(counts, priors, params, divergence + class_divergence)


def bound(counts: Counts, beliefs: Beliefs, num_idle: int = 0) -> float:
    """The variational lower bound of the log probability of all annotations and known classes, nats.

    Each task's log normaliser, log of the sum over k of exp(E[log rho_k] + sum of E[log pi_rkl]), is what it adds once
    its posterior is the best one; the beliefs subtract their divergence from the priors.

    Args:
        counts: made with `beliefs.params`.
        beliefs: where the bound is taken.
        num_idle: how many of the counted tasks have neither annotations nor a known class; they are not data.
    """
    idle = num_idle * float(np.logaddexp.reduce(beliefs.params.log_class_prior)) if num_idle else 0.0
    return counts.log_likelihood - idle - beliefs.divergence


@dataclass(frozen=True)
class IBCC(Incremental, Iterative):
    """Independent Bayesian classifier combination, by variational Bayes.

    The model of Dawid and Skene, with class probabilities rho ~ Dirichlet(`class_prior`) and rows of the annotators'
    confusion matrices pi[r, k] ~ Dirichlet(`prior`, and `diagonal` more at k) (Kim and Ghahramani, "Bayesian classifier
    combination", AISTATS 2012; by variational Bayes: Simpson, Roberts, Psorakis and Smith, "Dynamic Bayesian
    combination of multiple imperfect classifiers", 2013). Mean field: tasks, rows and rho are taken as independent.

    - Tasks: q[i, k] ~ exp(E[log rho_k] + sum over the task's annotations of E[log pi[r, k, said]]).
    - Rows: Dirichlet(prior + expected counts), so E[log pi[r, k, l]] = digamma(a[r, k, l]) - digamma(a[r, k, all]).

    Where an annotator has few labels the expected logarithm is far below the logarithm of the expectation: what is
    hardly known weighs little. Starts from vote shares. The defaults are those of Li, Rubinstein and Cohn ("Exploiting
    worker correlation for label aggregation in crowdsourcing", ICML 2019), and give their accuracies.

    Args:
        max_iter: most iterations, an E-step and an M-step each; the M-step that makes the first parameters
            of the votes comes before them, as in scikit-learn's mixtures.
        tol: it has converged when an iteration raises the bound by no more than this, in nats per annotation. The
            published figures need 1e-8: the last tasks change long after the bound has all but stood still.
        prior: pseudo-count of every cell of a confusion matrix, 1e-6 or more. None: `1 / (K - 1)` for K classes, so
            that the wrong labels of a row share one pseudo-count (1 for two classes, .25 each for five).
        diagonal: further pseudo-count of the diagonal: the belief that annotators are right more often than not. None:
            what makes the diagonal 4 together with `prior`, `max(4 - prior, 0)`. With both None a row is worth five
            labels, four of them right, whatever K.
        class_prior: pseudo-count of each class, 1e-6 or more.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import IBCC
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = IBCC().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']
        >>> result.posteriors.shape  # task, class
        (3, 2)

    Needs:
        Annotators who are right more often than not, and do not copy each other.

    Source:
        H.-C. Kim, Z. Ghahramani: Bayesian Classifier Combination. AISTATS 2012; variational Bayes: E. Simpson et al.:
        Dynamic Bayesian Combination of Multiple Imperfect Classifiers. 2013.
    """

    title: ClassVar[str] = "iBCC"

    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-8, TOL)
    prior: float | None = setting(None, Number(LEAST_PRIOR, 1e9, optional=True))
    diagonal: float | None = setting(None, Number(0, 1e9, optional=True))
    class_prior: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    seed: int = setting(0, SEED)

    def _priors(self, num_classes: int) -> Priors:
        """The settings that `update` takes."""
        return Priors(*_cells(self.prior, self.diagonal, num_classes), self.class_prior)

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None, prior: Prior = None
    ) -> Aggregation:
        """Finds truths and annotators together.

        Memory beyond the table of annotations: as `DawidSkene`, and 8 K**2 bytes an annotator more.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the bound
                counts it.
            initial: starting point instead of vote shares: posteriors [N, K], or an earlier `Aggregation` of the
                same tasks and classes, whose posteriors count.
            prior: an earlier result for classes, whose annotations count for annotators and classes as if they were
                fitted here with the posteriors that they had; annotators and classes are matched by name, and those
                that only the prior has follow in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors under the last beliefs; where there are no annotations, the class prior. `confusions` and
            `class_prior` are posterior means, and `log_likelihood` is that of the annotations (and known classes) under
            these means. `history` is the variational lower bound (see `bound`) at the start and after each iteration.
            Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold`, `initial` or `prior` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        annotations, history = with_prior(annotations, prior, self.title)
        blocks, first_posteriors = taken(annotations, self.title, gold, initial)
        num_idle = sum(int((~block.informed).sum()) for block in blocks)
        first = first_counts(blocks, annotations.num_annotators, annotations.num_classes, first_posteriors)
        run = Run(update(history.added(first), self._priors(annotations.num_classes)))
        while not run.done:
            params = run.params.params
            run = self.step(run, history.added(Counts.expected(blocks, params), params), num_idle)
        warn_unless_converged(self, run, len(annotations))
        posteriors, labels = posteriors_and_labels(annotations, blocks, run.params.params, self.seed)
        means = run.params.means
        for block in blocks:
            posteriors[block.tasks[~block.informed]] = means.class_prior
        log_likelihood = Counts.expected(blocks, means).log_likelihood
        return history.noted(self.result(annotations, run, posteriors, labels, log_likelihood))

    def step(self, run: Run[Beliefs], counts: Counts, num_idle: int) -> Run[Beliefs]:
        """One iteration, given the counts of all blocks under `run.params`, and tasks without information."""
        m_step = partial(update, counts, self._priors(len(counts.classes)))
        return self._advance(run, bound(counts, run.params, num_idle), counts, m_step)

    def result(
        self, annotations: Annotations, run: Run[Beliefs], posteriors: Any, labels: Any, log_likelihood: float
    ) -> Aggregation:
        """What `fit` gives back for a run, its posteriors [N, K], their labels [N], and its means' log-likelihood."""
        facts = run.facts | {"log_likelihood": log_likelihood}
        return Aggregation.of("ibcc", annotations, posteriors, labels, run.params.means, **facts)


def _cells(prior: float | None, diagonal: float | None, num_classes: int) -> tuple[float, float]:
    """Pseudo-counts of every cell and, further, of the diagonal; see `IBCC`."""
    wrong = (ANSWERS - RIGHT) / max(num_classes - 1, 1)
    cell = wrong if prior is None else prior
    return cell, max(RIGHT - cell, 0.0) if diagonal is None else diagonal
