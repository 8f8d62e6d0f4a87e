"""BWA: a Bayesian weighted average of the votes, class by class."""

from dataclasses import dataclass

import numpy as np

from crowdzoo import register
from crowdzoo.aggregation import Aggregation, Aggregator
from crowdzoo.checks import MAX_ITER, TOL, Number, setting

LEAST_VARIANCE = 1e-6  # of the prior: keeps precisions finite where all votes agree


@register("aggregator", "bwa")
@dataclass(frozen=True)
class BWA(Aggregator):
    """Bayesian weighted average of the votes, for each class against the others.

    Task i has a score `z_i ~ Normal(mu, 1 / strength)`, a vote is `y_ir ~ Normal(z_i, 1 / v_r)`, and the precision of
    an annotator `v_r ~ Gamma((a + 2) / 2, b / 2)`, where b is a times the variance of the votes about their tasks'
    shares, times 4 (1 - 1 / K) as in the authors' code. The most probable values are found in turns, from the shares of
    the votes. The posteriors are the scores of the classes, normalized.

    Args:
        annotator_prior: a, the annotations that the prior of a precision is worth.
        strength: precision of the scores around their mean.
        max_iter: largest number of iterations.
        tol: a class has converged when no score moves by more than this.

    Source:
        Y. Li, B. Rubinstein, T. Cohn: Truth Inference at Scale. WWW 2019.

    Needs:
        Annotators who are not biased.
    """

    whole_table = True

    annotator_prior: float = setting(15.0, Number(1e-3, 1e9))
    strength: float = setting(1.0, Number(1e-9, 1e9))
    max_iter: int = setting(500, MAX_ITER)
    tol: float = setting(1e-4, TOL)

    def fit(self, annotations):
        """Estimates scores and precisions; `skills` are one over the mean variance of the annotators' votes."""
        task, annotator, classes = annotations.task_ids, annotations.annotator_ids, annotations.num_classes
        votes, shape = np.eye(classes)[annotations.labels], (annotations.num_tasks, classes)
        number = np.bincount(annotator, minlength=annotations.num_annotators)[:, None]
        informed = annotations.redundancy > 0
        scores = _sums(task, votes, shape[0]) / np.maximum(annotations.redundancy, 1)[:, None]
        variance = np.square(votes - scores[task]).sum(axis=0) / max(len(task), 1) * 4 * (1 - 1 / classes)
        rate = self.annotator_prior * np.maximum(variance, LEAST_VARIANCE)
        moving, iterations = np.ones(classes, bool), 0
        while True:
            mean = scores[informed].mean(axis=0) if informed.any() else np.full(classes, 1 / classes)
            scores[~informed] = mean
            spread = rate + _sums(annotator, np.square(votes - scores[task]), len(number))
            precisions = (self.annotator_prior + number) / spread
            if not moving.any() or iterations == self.max_iter:
                break
            weights, iterations = precisions[annotator], iterations + 1
            voted = self.strength * mean + _sums(task, weights * votes, shape[0])
            moved = voted / (self.strength + _sums(task, weights, shape[0]))
            moved = np.where(informed[:, None] & moving, moved, scores)
            moving = np.abs(moved - scores).max(axis=0, initial=0) > self.tol
            scores = moved
        return Aggregation.of(
            "bwa", annotations, scores / scores.sum(axis=1, keepdims=True), skills=1 / np.mean(1 / precisions, axis=1),
            converged=not moving.any(), num_iterations=iterations,
        )  # fmt: skip


def _sums(codes, values, size):
    """Sums of the rows of values [A, K] by code, [size, K]."""
    return np.stack([np.bincount(codes, column, size) for column in values.T], axis=1)
