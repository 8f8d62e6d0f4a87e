"""Worker clustering: annotators in few groups, one confusion matrix a group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from crowdzoo.aggregation.classes.initial import Initial, first_counts, taken
from crowdzoo.aggregation.classes.iterative import Iterative
from crowdzoo.aggregation.engine import bayes
from crowdzoo.aggregation.engine.class_frequencies import shares_of
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.kernels import normalised_logs
from crowdzoo.aggregation.engine.params import TINY, Params
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.checks.constraints import COUNT, MAX_ITER, PRIOR, SEED, TOL, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

SMOOTHING = 1.0  # answers at the crowd's mean agreement that each annotator's agreement begins with
DECIMALS = 9  # of agreement: what differs by less came from another order of addition


@dataclass(frozen=True, eq=False)
class ClusterParams:
    """What the model knows between two steps; with R annotators, C clusters and K classes.

    Attributes:
        members: probability that an annotator belongs to a cluster, [R, C], rows sum to one.
        log_table: log P(a member says l | truth k), `[cluster, said, true]`, [C, K, K].
        log_shares: log share of each cluster among the annotators, [C].
        log_class_prior: log P(truth k), [K].
    """

    members: NDArray[np.float64]
    log_table: NDArray[np.float64]
    log_shares: NDArray[np.float64]
    log_class_prior: NDArray[np.float64]

    @property
    def expected(self) -> Params:
        """E[log pi] of each annotator over its clusters, which stands where Dawid-Skene has the annotator's own."""
        logs = np.tensordot(self.members, self.log_table, axes=1)
        return Params(logs.transpose(0, 2, 1), self.log_class_prior)

    @property
    def means(self) -> Params:
        """Each annotator's expected confusion matrix, and the class prior."""
        confusions = np.tensordot(self.members, np.exp(self.log_table), axes=1).transpose(0, 2, 1)
        confusions /= confusions.sum(axis=2, keepdims=True)
        return Params.from_probabilities(confusions, np.exp(self.log_class_prior))


def first_members(counts: Counts, num_clusters: int) -> NDArray[np.float64]:
    """Clusters to begin with: annotators sorted by how often they agree with the counts' posteriors, [R, C].

    The borders are quantiles of agreement over annotators that have annotations, so that clusters begin about equally
    large; who agrees equally often is in the same cluster. Neither names nor the order of rows matter.

    Args:
        counts: such as under vote shares.
        num_clusters: C.
    """
    answers = counts.table.sum(axis=(1, 2))
    agreeing = np.einsum("rkk->r", counts.table)
    mean = agreeing.sum() / max(answers.sum(), 1.0)
    agreement = np.round((agreeing + SMOOTHING * mean) / (answers + SMOOTHING), DECIMALS)
    known = agreement[answers > 0]
    if not known.size:
        return np.full((len(answers), num_clusters), 1 / num_clusters)
    borders = np.quantile(known, np.arange(1, num_clusters) / num_clusters, method="higher")
    return np.eye(num_clusters)[np.searchsorted(borders, agreement, side="right")]


def update(counts: Counts, members: NDArray[np.float64], prior: float = 0.01, diagonal: float = 0.0) -> ClusterParams:
    """M-step of the clusters, and then who belongs to which.

    Args:
        counts: counts of all annotations, under the tasks' posteriors.
        members: probability that an annotator belongs to a cluster, [R, C]; only the M-step takes them.
        prior: pseudo-count of each cell, class and cluster.
        diagonal: further pseudo-count of each diagonal cell.
    """
    active = counts.table.any(axis=(1, 2))
    table = np.tensordot(members.T, counts.table, axes=1)
    log_table = normalised_logs(table, prior + diagonal * np.eye(table.shape[1]), least=TINY)
    log_shares = _log_shares(active @ members + prior)
    num_cells = counts.num_classes**2
    log_members = counts.table.reshape(-1, num_cells) @ log_table.reshape(-1, num_cells).T + log_shares
    return ClusterParams(softmax(log_members, axis=-1), log_table, log_shares, _log_shares(counts.classes + prior))


def bound(counts: Counts, params: ClusterParams, prior: float = 0.01, diagonal: float = 0.0) -> float:
    """What no iteration lets fall: the lower bound of the log-likelihood plus log prior density (up to a constant).

    Args:
        counts: made with `params.expected`.
        params: where the bound is taken.
        prior: as in `update`.
        diagonal: as in `update`.
    """
    total = counts.log_likelihood - _divergence(counts, params)
    if prior:
        total += prior * float(params.log_table.sum() + params.log_shares.sum() + params.log_class_prior.sum())
    if diagonal:
        total += diagonal * float(np.trace(params.log_table, axis1=1, axis2=2).sum())
    return total


@dataclass(frozen=True)
class WorkerClustering(Iterative):
    """Annotators in C clusters, one confusion matrix a cluster (Imamura, Sato and Sugiyama, ICML 2018).

    The truth of task i is class k with probability rho[k]; annotator r belongs to cluster c with probability tau[c];
    a member of c then says l with probability pi[c, k, l]. With few labels an annotator, C matrices can be learnt where
    R cannot. One cluster: everybody is alike; as many as annotators: near Dawid-Skene.

    Fitted by variational EM, tasks and memberships taken as independent:

    - Tasks: q[i, k] ~ rho[k] * exp(sum over the task's annotations of sum over c of g[r, c] log pi[c, k, said]).
    - Clusters: pi[c, k, l] ~ sum over r of g[r, c] n[r, k, l], plus the prior, with n[r, k, l] the sum of q[i, k] over
      the tasks where r said l; tau[c] ~ sum over r of g[r, c], rho[k] ~ sum over i of q[i, k], plus the prior.
    - Members: g[r, c] ~ tau[c] * exp(sum over k, l of n[r, k, l] log pi[c, k, l]).

    Starts from vote shares, and from clusters by agreement with them (see `first_members`): no draw, so names do not
    matter. Kinds of annotators that agree equally often begin in one cluster and may stay there; more clusters than
    there are kinds separate them and cost little accuracy. Cost per iteration as `DawidSkene`, and R C K**2.

    `clusters` of the result is each annotator's most probable cluster; cluster 0 is right most often, the last least.
    `confusions` are the clusters' matrices, weighted by the annotator's memberships.

    Args:
        num_clusters: C. Of 2 to 20, 8 did well on all of the nine real sets that the project measures; with 3, an
            inclination to one class cannot be told from little skill (trec .670, with 8 .696).
        max_iter: most iterations.
        tol: it has converged when an iteration raises the bound by no more than this, in nats per annotation.
        prior: pseudo-count of every cell of a confusion matrix, of every class and of every cluster.
        diagonal: further pseudo-count of the diagonal: the belief that annotators are right more often than not.
        seed: seed of random ties.

    Raises:
        ConfigError: a setting that is out of range.

    Needs:
        Few types of annotators.

    Source:
        H. Imamura, I. Sato, M. Sugiyama: Analysis of Minimax Error Rate for Crowdsourcing and Its Application to Worker
        Clustering Model. ICML 2018.
    """

    title: ClassVar[str] = "Worker clustering"

    num_clusters: int = setting(8, COUNT)
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    prior: float = setting(0.01, PRIOR)
    diagonal: float = setting(0.0, PRIOR)
    seed: int = setting(0, SEED)

    def fit(self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None) -> Aggregation:
        """Finds truths, clusters and memberships together.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the bound
                counts it.
            initial: starting point instead of vote shares: posteriors [N, K], or an earlier `Aggregation` of the
                same tasks and classes, whose posteriors count.

        Returns:
            Posteriors under the last parameters, `clusters`, and `history`: the bound (see `bound`) at the start and
            after each iteration. `log_likelihood` is its part that is due to annotations and known classes, a lower
            bound. An annotator without annotations is in the largest cluster. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold` or `initial` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        blocks, given = taken(annotations, self.title, gold, initial)
        counts = first_counts(blocks, annotations.num_annotators, annotations.num_classes, given)
        members = first_members(counts, self.num_clusters)
        run = Run(update(counts, members, self.prior, self.diagonal))
        while not run.done:
            counts = Counts.expected(blocks, run.params.expected)
            run = self.advance(
                run,
                bound(counts, run.params, self.prior, self.diagonal),
                replace(counts, log_likelihood=counts.log_likelihood - _divergence(counts, run.params)),
                partial(update, counts, run.params.members, self.prior, self.diagonal),
            )
        self.warn_unless_converged(run, len(annotations))
        params = run.params
        found, labels, _ = bayes.answers(annotations, blocks, params.expected, self.seed)
        accuracy = np.einsum("ckk,k->c", np.exp(params.log_table), np.exp(params.log_class_prior))
        best_first = np.argsort(-accuracy, kind="stable")
        return Aggregation.of(
            "worker-clustering",
            annotations,
            found,
            labels,
            params.means,
            **run.facts,
            clusters=params.members[:, best_first].argmax(axis=1).astype(np.int64),
        )


def _divergence(counts: Counts, params: ClusterParams) -> float:
    """KL(members || shares) in nats, over the annotators that have annotations."""
    members = params.members[counts.table.any(axis=(1, 2))]
    logs = np.log(np.maximum(members, TINY))
    return float((members * (logs - params.log_shares)).sum())


def _log_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of shares; equal shares where all counts are zero."""
    return np.log(np.maximum(shares_of(counts), TINY))
