"""MMCE: annotators and tasks both have tables of confusion."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax

from crowdzoo import register
from crowdzoo.aggregation import Aggregation, Aggregator
from crowdzoo.checks import COUNT, MAX_ITER, TOL, Choice, Number, setting

MOST = 0.34  # largest change of a cell in a Newton step: curvature less than doubles on the way, so no step overshoots


@register("aggregator", "mmce")
@dataclass(frozen=True)
class MMCE(Aggregator):
    """Regularized minimax conditional entropy, by EM from the shares of the votes.

    Where the truth of task i is k, annotator r says l with the probability `softmax_l(A_i[k, l] + B_r[k, l])`. The
    posteriors are proportional to the product of these probabilities over the annotations of the task. The M-step
    maximizes the expected log-likelihood less `alpha / 2 * sum B^2 + beta / 2 * sum A^2`, where `alpha` is
    `gamma * K^2` and `beta` is `alpha * (labels per annotator) / (labels per task)`.

    Args:
        gamma: strength of the ridge penalty, at least 1e-6.
        ridge: "table" counts the penalty once per table, as in the paper. "label" counts it once per label of the
            table's annotator or task, as the code of Platanios et al. (2020) does.
        max_iter: largest number of EM iterations.
        tol: stop when an iteration raises the objective by no more than this, in nats per annotation.
        newton_steps: Newton steps of an M-step, each of them for all annotators and then for all tasks.

    Raises:
        ConfigError: a setting that is out of range.

    Source:
        D. Zhou, S. Basu, Y. Mao, J. Platt: Learning from the Wisdom of Crowds by Minimax Entropy. NIPS 2012. D. Zhou,
        Q. Liu, J. Platt, C. Meek, N. Shah: Regularized Minimax Conditional Entropy for Crowdsourcing. arXiv:1503.07240,
        2015.

    Needs:
        More than three annotations per task, and few classes: the work arrays hold A K^3 numbers.
    """

    whole_table = True

    gamma: float = setting(0.25, Number(1e-6, 1e6))
    ridge: str = setting("table", Choice(("table", "label")))
    max_iter: int = setting(200, MAX_ITER)
    tol: float = setting(1e-6, TOL)
    newton_steps: int = setting(10, COUNT)

    @property
    def unanimous_probability(self):
        """For `check_aggregator`: the penalty per label leaves little of what annotators show."""
        return 0.99 if self.ridge == "table" else 0.33

    def fit(self, annotations):
        """Estimates the classes and both sets of tables; `skills` are the mean diagonals of softmax(B)."""
        labels, classes = annotations.labels, annotations.num_classes
        size = len(labels)
        codes = {"annotators": annotations.annotator_ids, "tasks": annotations.task_ids}
        number = {"annotators": annotations.num_annotators, "tasks": annotations.num_tasks}
        owners = {name: csr_matrix((np.ones(size), (codes[name], np.arange(size))), (number[name], size))
                  for name in codes}  # fmt: skip
        counts = {name: np.bincount(codes[name], minlength=number[name]) for name in codes}
        per_owner = {name: max(size, 1) / max((count > 0).sum(), 1) for name, count in counts.items()}
        ratio = {"annotators": 1.0, "tasks": per_owner["annotators"] / per_owner["tasks"]}
        ridges = {name: self.gamma * classes**2 * ratio[name]
                  * np.maximum(counts[name] if self.ridge == "label" else 1.0, 1.0)[..., None, None]
                  * np.ones((number[name], 1, 1)) for name in codes}  # fmt: skip
        tables = {name: np.zeros((number[name], classes, classes)) for name in codes}
        votes = owners["tasks"] @ np.eye(classes)[labels]
        posteriors = np.where(votes.sum(axis=1, keepdims=True) > 0, votes, 1.0)
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        history, rise = [], np.inf
        while rise > self.tol and len(history) <= self.max_iter:
            weights = posteriors[codes["tasks"]]
            for _ in range(self.newton_steps):
                for name in codes:
                    said = softmax(tables["annotators"][codes["annotators"]] + tables["tasks"][codes["tasks"]], axis=2)
                    move = _newton(weights, said, labels, owners[name], tables[name], ridges[name])
                    tables[name] += np.clip(move, -MOST, MOST)
            logs = log_softmax(tables["annotators"][codes["annotators"]] + tables["tasks"][codes["tasks"]], axis=2)
            joint = owners["tasks"] @ logs[np.arange(size), :, labels] - np.log(classes)
            top = joint.max(axis=1, keepdims=True)
            odds = np.exp(joint - top)
            posteriors = odds / odds.sum(axis=1, keepdims=True)
            likelihood = (top[:, 0] + np.log(odds.sum(axis=1)))[counts["tasks"] > 0].sum()
            penalty = sum((ridges[name] * np.square(tables[name])).sum() for name in tables) / 2
            history.append(float(likelihood - penalty))
            rise = (history[-1] - history[-2]) / max(size, 1) if len(history) > 1 else np.inf
        confusions = softmax(tables["annotators"], axis=2)
        return Aggregation.of(
            "mmce", annotations, posteriors, confusions=confusions, class_prior=np.full(classes, 1 / classes),
            skills=np.trace(confusions, axis1=1, axis2=2) / classes, history=tuple(history),
            converged=rise <= self.tol, num_iterations=len(history) - 1,
        )  # fmt: skip


def _newton(weights, said, labels, owners, tables, ridge):
    """Newton's step of each row of the tables [O, K, K], given the probabilities `said` [A, K, K] of all labels."""
    size, classes = weights.shape
    shape = (len(tables), classes, classes)
    gradient = weights[:, :, None] * (np.eye(classes)[labels][:, None, :] - said)
    gradient = (owners @ gradient.reshape(size, classes**2)).reshape(shape) - ridge * tables
    identity = np.eye(classes)
    curvature = said[..., None] * (identity - said[..., None, :]) * weights[:, :, None, None]
    curvature = (owners @ curvature.reshape(size, classes**3)).reshape(*shape, classes) + ridge[..., None] * identity
    return np.linalg.solve(curvature, gradient[..., None])[..., 0]
