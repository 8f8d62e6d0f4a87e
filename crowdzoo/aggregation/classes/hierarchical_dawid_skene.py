"""Hierarchical Dawid-Skene: annotators differ from a common matrix, by as much as the data show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes.iterative import VariationalBayes
from crowdzoo.aggregation.engine.confusions import Counts, Params, normalised_logs, shares_of
from crowdzoo.aggregation.engine.dirichlet import expected_logs, expected_tables
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

STRENGTH = 4.0  # where the fit begins
LEAST, MOST = 0.1, 1e4  # of the strength
GUARD = 1.5  # factor by which class probabilities may differ from the shares of the votes
HALVINGS = 60
LEAST_SHARE = 1e-6  # of a cell of the common matrix: a Dirichlet distribution has positive parameters


@dataclass(frozen=True, eq=False)
class Crowd:
    """What is believed of the annotators.

    Attributes:
        counts: what the data added to the pseudo-counts.
        coin: the matrix that the common one is drawn to, columns sum to one, `[said, true]`, [K, K].
        common: the common matrix, columns sum to one, `[said, true]`, [K, K].
        strength: pseudo-counts that the common matrix is worth in each row of an annotator's matrix.
        params: expected logarithms, which are in the E-step where Dawid-Skene has logarithms of estimates.
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
    """What is believed at first: annotators near one coin, whose accuracy is that of all annotations together.

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
    """Common matrix and strength by one step of Minka's fixed point, then the annotators' matrices given them.

    Args:
        counts: counts of all annotations under `earlier`.
        earlier: what was believed.
        annotators: how many annotations of one coin are added to each row of the common matrix.
    """
    tables, slope = expected_tables(counts.table, earlier.strength * earlier.common)
    common = tables + annotators * earlier.coin
    common = np.maximum(common / common.sum(axis=0), LEAST_SHARE)
    strength = float(tables.sum()) / slope if slope > 0 else earlier.strength
    strength = min(max(strength, LEAST), MOST)
    return crowd_of(counts, earlier.coin, common / common.sum(axis=0), strength)


def crowd_of(counts: Counts, coin: NDArray[np.float64], common: NDArray[np.float64], strength: float) -> Crowd:
    """What is believed, from what of it is kept; see `Crowd`."""
    logs, divergence = expected_logs(counts.table, strength * common)
    log_prior = np.log(guarded_prior(counts.classes, counts.table.sum(axis=(0, 2))))
    return Crowd(counts, coin, common, strength, Params(logs.transpose(0, 2, 1), log_prior), divergence)


def guarded_prior(counts: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most probable class probabilities within a factor of 1.5 of the shares of the votes, [K].

    A class that is frequent among the posteriors draws doubtful tasks, and more so in the next iteration. The votes say
    how frequent it can be at most, and a class that is rare among them stays rare.

    Args:
        counts: expected number of tasks of each class, [K].
        votes: annotations that name each class, [K].
    """
    shares = shares_of(votes + 1.0)
    low, high = shares / GUARD, shares * GUARD
    counts = np.maximum(counts, 1e-300)
    least, most = np.log((counts / high).min()), np.log((counts / low).max())
    for _ in range(HALVINGS):  # of the multiplier of the constraint that they sum to one
        middle = (least + most) / 2
        if np.clip(counts / np.exp(middle), low, high).sum() > 1:
            least = middle
        else:
            most = middle
    return shares_of(np.clip(counts / np.exp(most), low, high))


@dataclass(frozen=True)
class HierarchicalDawidSkene(VariationalBayes):
    """Annotators whose confusion matrices are drawn around a common one, fitted by variational Bayes.

    Row k of annotator r's matrix is drawn from Dirichlet(s * M[k]). The common matrix M is drawn to one coin, the
    matrix of one accuracy for all classes, by `annotators` annotations in each row. The strength s, and M, have the
    highest marginal likelihood (empirical Bayes). So an annotator with few annotations is taken for an average one, and
    how much is few follows from how far annotators differ. (The model of Paun, Carpenter, Chamberlain, Hovy,
    Kruschwitz and Poesio, "Comparing Bayesian models of annotation", TACL 2018, section 3.4, with Dirichlet instead of
    logistic-normal rows.)

    - Tasks: q[i, k] ~ rho[k] * exp(sum over the task's annotations of E[log pi[r, k, said]]).
    - Rows: Dirichlet(s * M[k] + expected counts).
    - M and s: one step an iteration of the fixed point of Minka, "Estimating a Dirichlet distribution", 2000.
    - rho: the mean posterior, within a factor of 1.5 of the shares of the votes (`guarded_prior`).

    Args:
        max_iter: most iterations, an E-step and an M-step each; the M-step that makes the first parameters
            of the votes comes before them, as in scikit-learn's mixtures.
        tol: it has converged when an iteration raises the bound by no more than this, in nats per annotation. The
            strength goes on rising slowly for long. A smaller tolerance is not better: where annotators are not
            independent, more iterations lead away from the votes.
        annotators: annotations of one coin that each row of the common matrix begins with.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import HierarchicalDawidSkene
        >>> task, annotator = [1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "cem"] * 3
        >>> labels = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat"]
        >>> result = HierarchicalDawidSkene().fit(Annotations.from_arrays(task, annotator, labels))
        >>> result.classes[result.labels].tolist()
        ['cat', 'dog', 'cat']

    Needs:
        Annotators who do not make the same errors; few annotations by an annotator are enough.

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
