"""Hierarchical Dawid-Skene: annotators differ from a common matrix, by as much as the data show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.classes.history import Prior, with_prior
from crowdzoo.aggregation.classes.initial import Incremental, Initial, first_counts, taken
from crowdzoo.aggregation.classes.iterative import Iterative, warn_unless_converged
from crowdzoo.aggregation.engine.class_frequencies import guarded_prior
from crowdzoo.aggregation.engine.counts import Counts, posteriors_and_labels
from crowdzoo.aggregation.engine.dirichlet import expected_logs, expected_tables
from crowdzoo.aggregation.engine.kernels import normalised_logs
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import MAX_ITER, SEED, TOL, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

STRENGTH = 4.0  # where the fit begins
LEAST, MOST = 0.1, 1e4  # of the strength
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


def bound(counts: Counts, crowd: Crowd, annotators: float, num_idle: int = 0) -> float:
    """The variational lower bound of the log probability of all annotations and known classes, nats.

    Args:
        counts: made with `crowd.params`.
        crowd: where the bound is taken.
        annotators: as in `update`.
        num_idle: how many of the counted tasks have neither annotations nor a known class; they are not data.
    """
    idle = num_idle * float(np.logaddexp.reduce(crowd.params.log_class_prior)) if num_idle else 0.0
    hyper = annotators * float((crowd.coin * np.log(crowd.common)).sum())
    return counts.log_likelihood - idle - crowd.divergence + hyper


@dataclass(frozen=True)
class HierarchicalDawidSkene(Incremental, Iterative):
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

    title: ClassVar[str] = "Hierarchical Dawid-Skene"

    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    annotators: float = setting(100.0, Number(1e-6, 1e9))
    seed: int = setting(0, SEED)

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None, prior: Prior = None
    ) -> Aggregation:
        """Finds truths, annotators and the common matrix together.

        Memory beyond the table of annotations: as `IBCC`.

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
            Posteriors under the last beliefs; where there are no annotations, the class prior. `confusions` are
            posterior means, and `log_likelihood` is that of the annotations (and known classes) under these means.
            `history` is the variational lower bound (see `bound`) at the start and after each iteration. Ties are
            drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold`, `initial` or `prior` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        annotations, history = with_prior(annotations, prior, self.title)
        blocks, first_posteriors = taken(annotations, self.title, gold, initial)
        num_idle = sum(int((~block.informed).sum()) for block in blocks)
        sizes = annotations.num_annotators, annotations.num_classes
        run = Run(start(history.added(first_counts(blocks, *sizes, first_posteriors))))
        while not run.done:
            params = run.params.params
            run = self.step(run, history.added(Counts.expected(blocks, params), params), num_idle)
        warn_unless_converged(self, run, len(annotations))
        posteriors, labels = posteriors_and_labels(annotations, blocks, run.params.params, self.seed)
        log_likelihood = Counts.expected(blocks, run.params.means).log_likelihood
        return history.noted(self.result(annotations, run, posteriors, labels, log_likelihood))

    def step(self, run: Run[Crowd], counts: Counts, num_idle: int) -> Run[Crowd]:
        """One iteration, given the counts of all blocks under `run.params`, and tasks without information."""
        lower_bound = bound(counts, run.params, self.annotators, num_idle)
        return self._advance(run, lower_bound, counts, partial(update, counts, run.params, self.annotators))

    def result(
        self, annotations: Annotations, run: Run[Crowd], posteriors: Any, labels: Any, log_likelihood: float
    ) -> Aggregation:
        """What `fit` gives back for a run, its posteriors [N, K], their labels [N], and its means' log-likelihood."""
        facts = run.facts | {"log_likelihood": log_likelihood}
        return Aggregation.of("hierarchical-dawid-skene", annotations, posteriors, labels, run.params.means, **facts)
