"""iBCC: Dawid-Skene with Dirichlet priors, fitted by variational Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdzoo.aggregation.classes.iterative import VariationalBayes
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.engine.dirichlet import expected_logs
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

if TYPE_CHECKING:
    pass

LEAST_PRIOR = 1e-6  # a Dirichlet distribution has positive parameters
ANSWERS, RIGHT = 5.0, 4.0  # labels that the prior of a row is worth, and how many of them are right


@dataclass(frozen=True)
class Priors:
    """Pseudo-counts of the Dirichlet priors.

    Attributes:
        cell: pseudo-count of each cell of a confusion matrix.
        diagonal: additional pseudo-count of each diagonal cell.
        classes: pseudo-count of each class.
    """

    cell: float
    diagonal: float
    classes: float


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Dirichlet distributions of confusion rows and class probabilities.

    Attributes:
        counts: counts that the data add to the pseudo-counts.
        priors: the pseudo-counts.
        params: expected logarithms, which the E-step uses where Dawid-Skene has logarithms of estimates. Their
            exponentials are not probabilities: they sum to less than one.
        divergence: Kullback-Leibler divergence from the priors, nats, summed over all rows and the class probabilities.
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
    """The optimal Dirichlet distributions given the tasks' posteriors, which enter through their counts.

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


@dataclass(frozen=True)
class IBCC(VariationalBayes):
    """Independent Bayesian classifier combination, by variational Bayes.

    The model of Dawid and Skene, with class probabilities rho ~ Dirichlet(`class_prior`) and rows of the annotators'
    confusion matrices pi[r, k] ~ Dirichlet(`prior`, plus `diagonal` at k) (Kim and Ghahramani, "Bayesian classifier
    combination", AISTATS 2012; by variational Bayes: Simpson, Roberts, Psorakis and Smith, "Dynamic Bayesian
    combination of multiple imperfect classifiers", 2013). Mean field: tasks, rows and rho are treated as independent.

    - Tasks: q[i, k] ~ exp(E[log rho_k] + sum over the task's annotations of E[log pi[r, k, said]]).
    - Rows: Dirichlet(prior + expected counts), so E[log pi[r, k, l]] = digamma(a[r, k, l]) - digamma(a[r, k, all]).

    If an annotator has few labels, the expected logarithm is far below the logarithm of the expectation, so uncertain
    estimates have little weight. Starts from vote shares. The defaults are those of Li, Rubinstein and Cohn
    ("Exploiting worker correlation for label aggregation in crowdsourcing", ICML 2019), and reproduce their accuracies.

    Args:
        max_iter: maximum number of iterations, an E-step and an M-step each. The M-step that computes the first
            parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: converged if an iteration raises the bound by at most this, in nats per annotation. The published figures
            need 1e-8: the last tasks change long after the bound is nearly constant.
        prior: pseudo-count of each cell of a confusion matrix, 1e-6 or more. None: `1 / (K - 1)` for K classes, so
            that the wrong labels of a row share one pseudo-count (1 for two classes, .25 each for five).
        diagonal: additional pseudo-count of the diagonal: the belief that annotators are right more often than not.
            None: `max(4 - prior, 0)`, which makes the diagonal 4 in total. With both None a row is worth five
            labels, four of them right, whatever K.
        class_prior: pseudo-count of each class, 1e-6 or more.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

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

    name: ClassVar[str] = "ibcc"
    title: ClassVar[str] = "iBCC"

    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-8, TOL)
    prior: float | None = setting(None, Number(LEAST_PRIOR, 1e9, optional=True))
    diagonal: float | None = setting(None, Number(0, 1e9, optional=True))
    class_prior: float = setting(1.0, Number(LEAST_PRIOR, 1e9))
    seed: int = setting(0, SEED)

    def _first(self, counts: Counts) -> Beliefs:
        cells = _cells(self.prior, self.diagonal, counts.num_classes)
        return update(counts, Priors(*cells, self.class_prior))

    def _next(self, counts: Counts, earlier: Beliefs) -> Beliefs:
        return update(counts, earlier.priors)


def _cells(prior: float | None, diagonal: float | None, num_classes: int) -> tuple[float, float]:
    """Pseudo-counts of each cell, and the additional ones of the diagonal; see `IBCC`."""
    wrong = (ANSWERS - RIGHT) / max(num_classes - 1, 1)
    cell = wrong if prior is None else prior
    return cell, max(RIGHT - cell, 0.0) if diagonal is None else diagonal
