"""Hierarchical Dawid-Skene: annotators vary around a common confusion matrix, by as much as the data show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.iterative import VariationalBayes
from crowdzoo.aggregation.engine.confusions import Counts, Params, normalised_logs, shares_of
from crowdzoo.aggregation.engine.dirichlet import expected_logs, expected_tables
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

STRENGTH = 4.0  # at the start
LEAST, MOST = 0.1, 1e4  # of the strength
GUARD = 1.5  # factor by which class probabilities may differ from vote shares
HALVINGS = 60
LEAST_SHARE = 1e-6  # of a cell of the common matrix: a Dirichlet distribution has positive parameters


@dataclass(frozen=True, eq=False)
class Crowd:
    """Beliefs about the annotators.

    Attributes:
        counts: counts that the data add to the pseudo-counts.
        coin: mean of the prior of the common matrix, columns sum to one, `[said, true]`, [K, K].
        common: the common matrix, columns sum to one, `[said, true]`, [K, K].
        strength: pseudo-counts that the common matrix adds to each row of an annotator's matrix.
        params: expected logarithms, which the E-step uses where Dawid-Skene has logarithms of estimates.
        divergence: Kullback-Leibler divergence of the annotators' matrices from their prior, nats.
    """

    counts: Counts
    coin: NDArray[np.float64]
    common: NDArray[np.float64]
    strength: float
    params: Params
    divergence: float

    @property
    def means(self) -> Params:
        """Expected confusion matrices, and class probabilities."""
        logs = normalised_logs(self.counts.table, self.strength * self.common)
        return Params(logs.transpose(0, 2, 1), self.params.log_class_prior)


# === The steps: Dawid-Skene's E-step, given `Crowd.params`, and these ===


def start(counts: Counts) -> Crowd:
    """First beliefs: annotators near one coin, with the accuracy of all annotations together.

    Args:
        counts: counts of all annotations under the starting posteriors.
    """
    num_classes = counts.num_classes
    total = counts.table.sum(axis=0)
    right = (np.trace(total) + 1) / (total.sum() + num_classes) if num_classes > 1 else 1.0
    coin = np.full((num_classes, num_classes), (1 - right) / max(num_classes - 1, 1))
    np.fill_diagonal(coin, right)
    pooled = (total + coin) / (total + coin).sum(axis=0)
    return crowd_of(counts, coin, (coin + pooled) / 2, STRENGTH)


def update(counts: Counts, earlier: Crowd, annotators: float) -> Crowd:
    """Updates common matrix and strength by one step of Minka's fixed point, then the annotators' matrices.

    Args:
        counts: counts of all annotations under `earlier`.
        earlier: the current beliefs.
        annotators: number of one-coin annotations added to each row of the common matrix.
    """
    tables, slope = expected_tables(counts.table, earlier.strength * earlier.common)
    common = tables + annotators * earlier.coin
    common = np.maximum(common / common.sum(axis=0), LEAST_SHARE)
    strength = float(tables.sum()) / slope if slope > 0 else earlier.strength
    strength = min(max(strength, LEAST), MOST)
    return crowd_of(counts, earlier.coin, common / common.sum(axis=0), strength)


def crowd_of(counts: Counts, coin: NDArray[np.float64], common: NDArray[np.float64], strength: float) -> Crowd:
    """Creates beliefs from their independent parts; see `Crowd`."""
    logs, divergence = expected_logs(counts.table, strength * common)
    log_prior = np.log(guarded_prior(counts.classes, counts.table.sum(axis=(0, 2))))
    return Crowd(counts, coin, common, strength, Params(logs.transpose(0, 2, 1), log_prior), divergence)


def guarded_prior(counts: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most probable class probabilities within a factor of 1.5 of the vote shares, [K].

    A class that is frequent among the posteriors attracts doubtful tasks, and becomes even more frequent in the next
    iteration. The votes limit how frequent it can be, and a class that is rare among them stays rare.

    Args:
        counts: expected number of tasks of each class, [K].
        votes: annotations of each class, [K].
    """
    shares = shares_of(votes + 1.0)
    low, high = shares / GUARD, shares * GUARD
    counts = np.maximum(counts, 1e-300)
    least, most = np.log((counts / high).min()), np.log((counts / low).max())
    for _ in range(HALVINGS):  # bisection of the multiplier of the constraint that they sum to one
        middle = (least + most) / 2
        if np.clip(counts / np.exp(middle), low, high).sum() > 1:
            least = middle
        else:
            most = middle
    return shares_of(np.clip(counts / np.exp(most), low, high))


@dataclass(frozen=True)
class HierarchicalDawidSkene(VariationalBayes):
    """Annotators with confusion matrices drawn around a common one, fitted by variational Bayes.

    Row k of annotator r's matrix is drawn from Dirichlet(s * M[k]). The common matrix M is shrunk towards one coin, the
    matrix with the same accuracy for all classes, by `annotators` annotations per row. The strength s, and M, maximise
    the marginal likelihood (empirical Bayes). So an annotator with few annotations is treated as an average one, and
    what counts as few depends on how much annotators differ. (The model of Paun, Carpenter, Chamberlain, Hovy,
    Kruschwitz and Poesio, "Comparing Bayesian models of annotation", TACL 2018, section 3.4, with Dirichlet instead of
    logistic-normal rows.)

    - Tasks: q[i, k] ~ rho[k] * exp(sum over the task's annotations of E[log pi[r, k, said]]).
    - Rows: Dirichlet(s * M[k] + expected counts).
    - M and s: one step per iteration of the fixed point of Minka, "Estimating a Dirichlet distribution", 2000.
    - rho: the mean posterior, within a factor of 1.5 of the shares of the votes (`guarded_prior`).

    Args:
        max_iter: maximum number of iterations, an E-step and an M-step each. The M-step that computes the first
            parameters from the votes is not counted, as in scikit-learn's mixtures.
        tol: converged if an iteration raises the bound by at most this, in nats per annotation. The strength keeps
            rising slowly for many iterations. A smaller tolerance is not better: if annotators are not independent,
            more iterations move the result away from the votes.
        annotators: number of one-coin annotations that each row of the common matrix starts with.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import HierarchicalDawidSkene
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = HierarchicalDawidSkene().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']

    Needs:
        Annotators who do not make the same errors; few annotations per annotator are enough.

    Source:
        Our own form of partial pooling; a sampler for it is the hierarchical Dawid-Skene model of S. Paun et al.:
        Comparing Bayesian Models of Annotation. TACL 2018.
    """

    name: ClassVar[str] = "hierarchical-dawid-skene"
    title: ClassVar[str] = "Hierarchical Dawid-Skene"

    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    annotators: float = setting(100.0, Number(1e-6, 1e9))
    seed: int = setting(0, SEED)

    def _first(self, counts: Counts) -> Crowd:
        return start(counts)

    def _next(self, counts: Counts, earlier: Crowd) -> Crowd:
        return update(counts, earlier, self.annotators)

    def _log_density(self, beliefs: Crowd) -> float:
        return self.annotators * float((beliefs.coin * np.log(beliefs.common)).sum())
