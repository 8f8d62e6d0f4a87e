"""WorkerClustering: annotators in few groups, one confusion matrix per group."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from crowdzoo import register
from crowdzoo.aggregation import Aggregation, Aggregator
from crowdzoo.checks import COUNT, MAX_ITER, TOL, Number, setting

TINY = 1e-300


@register("aggregator", "worker-clustering")
@dataclass(frozen=True)
class WorkerClustering(Aggregator):
    """Annotators in groups that share a confusion matrix, by variational EM; tasks and memberships are independent.

    Annotator r belongs to group c with probability g[r, c]; a member says l of a task of class k with probability
    pi[c, k, l]. EM starts from the shares of the votes, and from groups of equal size by agreement with them.

    Args:
        num_clusters: number of groups.
        max_iter: largest number of iterations.
        tol: stop when an iteration raises the bound by no more than this, in nats per annotation.
        prior: pseudo-count of every cell, class and group.

    Source:
        H. Imamura, I. Sato, M. Sugiyama: Analysis of Minimax Error Rate for Crowdsourcing and Its Application to Worker
        Clustering Model. ICML 2018.

    Needs:
        Few types of annotators.
    """

    whole_table = True

    num_clusters: int = setting(8, COUNT)
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    prior: float = setting(0.01, Number(1e-9, 1e9))

    def fit(self, annotations):
        """Estimates the classes, the groups and the memberships; `skills` are the annotators' accuracies."""
        task, annotator, label = annotations.task_ids, annotations.annotator_ids, annotations.labels
        shape = (annotations.num_annotators, annotations.num_classes, annotations.num_classes)
        votes = np.zeros((annotations.num_tasks, shape[1]))
        np.add.at(votes, (task, label), 1)
        informed, active = votes.any(axis=1), np.bincount(annotator, minlength=shape[0]) > 0
        posteriors = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
        history, rise, members = [], np.inf, None
        while rise > self.tol and len(history) <= self.max_iter:
            counts = np.zeros(shape)  # [annotator, said, true]
            np.add.at(counts, (annotator, label), posteriors[task])
            members = self._first_members(counts) if members is None else members
            cells = np.tensordot(members.T, counts, axes=1) + self.prior
            logs = np.log(cells / cells.sum(axis=1, keepdims=True))
            shares, classes = (
                np.log(total / total.sum()) for total in (active @ members + self.prior,
                                                          posteriors[informed].sum(axis=0) + self.prior)
            )  # fmt: skip
            members = softmax(np.tensordot(counts, logs, axes=([1, 2], [1, 2])) + shares, axis=1)
            joint = np.tile(classes, (len(votes), 1))
            np.add.at(joint, task, np.tensordot(members, logs, axes=1)[annotator, label])
            posteriors = softmax(joint, axis=1)
            of_members = (members * (np.log(np.maximum(members, TINY)) - shares))[active].sum()
            bound = logsumexp(joint[informed], axis=1).sum() - of_members
            history.append(float(bound + self.prior * (logs.sum() + shares.sum() + classes.sum())))
            rise = (history[-1] - history[-2]) / max(len(task), 1) if len(history) > 1 else np.inf
        confusions = np.tensordot(members, np.exp(logs), axes=1).transpose(0, 2, 1)
        return Aggregation.of(
            "worker-clustering", annotations, posteriors, confusions=confusions, class_prior=np.exp(classes),
            skills=np.einsum("rkk,k->r", confusions, np.exp(classes)), history=tuple(history),
            converged=rise <= self.tol, num_iterations=len(history) - 1,
        )  # fmt: skip

    def _first_members(self, counts):
        """Groups of annotators by how often they agree with the votes; equal agreement is in one group, [R, C]."""
        answers, agreeing = counts.sum(axis=(1, 2)), np.einsum("rkk->r", counts)
        mean = agreeing.sum() / max(answers.sum(), 1.0)
        agreement = np.round((agreeing + mean) / (answers + 1), 9)
        if not answers.any():
            return np.full((len(answers), self.num_clusters), 1 / self.num_clusters)
        ends = np.arange(1, self.num_clusters) / self.num_clusters
        borders = np.quantile(agreement[answers > 0], ends, method="higher")
        return np.eye(self.num_clusters)[np.searchsorted(borders, agreement, side="right")]
