"""Answers with a confidence as evidence about the label that an annotator has in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError, short_repr

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


def has_confidence(annotations: Annotations | None) -> bool:
    """Whether any annotation has a confidence."""
    return annotations is not None and annotations.confidence is not None and not np.isnan(annotations.confidence).all()


class SoftAnswers:
    """Each annotation as a distribution s over the K classes: its confidence for the label, the rest for the others.

    An annotator r has a label l in mind, drawn from `pi[r, k, :]` for truth k, and reports how probable each label is.
    The answer's likelihood is `sum_l s[l] pi[r, k, l]`, and given k the label is l with probability `~ s[l] pi[r, k,
    l]`. A certain answer is an ordinary annotation; one in which all classes are equally likely is uninformative.

    Args:
        annotations: A annotations of kind classification, K classes. A missing `confidence` (NaN) is taken as 1.
        method: name of the method, for messages.

    Attributes:
        tasks: codes, int [A].
        annotators: codes, int [A].
        shares: s, float64 [A, K], rows sum to one.

    Raises:
        DataError: no annotation has a confidence, or one is below 0 or above 1.

    Source:
        T. Denoeux: Maximum Likelihood Estimation from Uncertain Data in the Belief Function Framework. IEEE TKDE 25(1),
        2013 (EM on such evidence); here with Dawid and Skene's model.
    """

    def __init__(self, annotations: Annotations, method: str):
        confidence = annotations.confidence
        if confidence is None or not has_confidence(annotations):
            raise DataError(
                f"{method}: confidence=True needs annotations with a column `confidence`, which is missing. "
                "Add the column, or set confidence=False."
            )
        wrong = np.flatnonzero((confidence < 0) | (confidence > 1))
        if len(wrong):
            row = int(wrong[0])
            task = short_repr(annotations.tasks[annotations.task_ids[row]])
            annotator = short_repr(annotations.annotators[annotations.annotator_ids[row]])
            raise DataError(
                f"{method}: column 'confidence': {confidence[row]:g} by annotator {annotator} for task {task} is not a "
                f"probability from 0 to 1 ({len(wrong):,} such rows). Divide the column by the highest possible value."
            )
        num_classes = annotations.num_classes
        own = np.where(np.isnan(confidence) | (num_classes == 1), 1.0, confidence)
        self.tasks, self.annotators = annotations.task_ids, annotations.annotator_ids
        self.shares = np.repeat(((1 - own) / max(num_classes - 1, 1))[:, None], num_classes, axis=1)
        self.shares[np.arange(len(own)), annotations.labels] = own

    def mean(self, num_tasks: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Mean answer of each task, [N, K], zeros without answers; annotators may have weights [R]."""
        answer_weights = np.ones(len(self.tasks)) if weights is None else weights[self.annotators]
        total = np.bincount(self.tasks, answer_weights, num_tasks)
        columns = [np.bincount(self.tasks, answer_weights * share, num_tasks) for share in self.shares.T]
        return np.stack(columns, axis=1) / np.where(total > 0, total, 1)[:, None]

    def log_evidence(self, confusions: NDArray[np.float64], num_tasks: int) -> NDArray[np.float64]:
        """Log-likelihood of each task's answers by true class, nats, [N, K].

        Args:
            confusions: `[annotator, true, said]`, [R, K, K], all above 0.
            num_tasks: N.
        """
        columns = [
            np.bincount(self.tasks, np.log((self.shares * confusions[self.annotators, k]).sum(axis=1)), num_tasks)
            for k in range(self.shares.shape[1])
        ]
        return np.stack(columns, axis=1)

    def expected_counts(
        self, posteriors: NDArray[np.float64], num_annotators: int, confusions: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Expected number of times each annotator had each label in mind, `[annotator, true, said]`, [R, K, K].

        Args:
            posteriors: class probabilities of the tasks, [N, K].
            num_annotators: R.
            confusions: matrices to estimate the labels with, [R, K, K], all above 0; None: use only the answers.
        """
        num_classes = self.shares.shape[1]
        counts = np.empty((num_annotators, num_classes, num_classes))
        for k in range(num_classes):
            inner = self.shares if confusions is None else self.shares * confusions[self.annotators, k]
            inner = inner * (posteriors[self.tasks, k] / inner.sum(axis=1))[:, None]
            for label in range(num_classes):
                counts[:, k, label] = np.bincount(self.annotators, inner[:, label], num_annotators)
        return counts
