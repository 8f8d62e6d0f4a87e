"""Area under the margin: tasks whose labels a network does not learn, with one or several labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.ranges import DENOMINATOR, MARGIN

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

# === The measures, on arrays ===


@checked(margin=MARGIN)
def label_margins(
    scores: ArrayLike, labels: ArrayLike, tasks: ArrayLike | None = None, margin: str = "top-2"
) -> Floats:
    """Margin of each label's score over the others of its task, [A].

    - "top-2": the label's score minus the second largest of **all** classes (0 if that is the label's own);
    - "pleiss": the label's score minus the largest of the **other** classes.

    They differ if the label is not the top class, by the lead of the top class over the second.

    Args:
        scores: logits or probabilities, [N, K], K at least 2.
        labels: class codes, int [A].
        tasks: row of `scores` for each label, int [A]; None: label i belongs to row i.
        margin: "top-2" or "pleiss".

    Raises:
        DataError: shapes do not match, or there are fewer than two classes.

    Source:
        "pleiss": G. Pleiss et al.: Identifying Mislabeled Data using the Area Under the Margin Ranking. NeurIPS 2020,
        equation 1. "top-2": F. Yang, S. Koyejo: On the Consistency of Top-k Surrogate Losses. ICML 2020, as used by
        T. Lefort et al. (see `crowdzoo.layers.WAUM`).
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise DataError(f"Margins need scores of shape [N, K] with K at least 2, got {list(scores.shape)}")
    rows = np.arange(len(scores)) if tasks is None else np.asarray(tasks)
    if labels.ndim != 1 or labels.shape != rows.shape:
        raise DataError(f"Margins need one label for every row, got labels {list(labels.shape)} for {list(rows.shape)}")
    score = scores[rows, labels].astype(np.float64)
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    if margin == "top-2":
        return score - second[rows]
    # the largest of the others is the second largest of all where the label is on top, or shares the top
    return score - np.where(score >= first[rows], second[rows], first[rows])


def label_trust(confusions: Floats, scores: Floats, tasks: Codes, annotators: Codes) -> Floats:
    """Trust in each annotation, [A], from 0 to 1: the annotator's expected accuracy under the network's probabilities.

    `s_r(x_i) = sum_k pi[r, k, k] sigma_k(x_i)`. It does not depend on the label.

    Args:
        confusions: `[annotator, true, said]`, [R, K, K], rows sum to one.
        scores: class probabilities of the tasks, [N, K].
        tasks: task codes, int [A].
        annotators: annotator codes, int [A].

    Source:
        See `crowdzoo.layers.WAUM`; section 3.
    """
    skills = np.diagonal(confusions, axis1=1, axis2=2)
    trust = np.zeros(len(tasks))
    for k in range(scores.shape[1]):  # one class at a time: nothing of size [A, K] is made
        trust += skills[annotators, k] * scores[tasks, k]
    return trust


@checked(denominator=DENOMINATOR)
def weighted_margins(aum: Floats, trust: Floats, tasks: Codes, num_tasks: int, denominator: str = "trust") -> Floats:
    """WAUM: each task's AUMs weighted by trust, [N]; NaN for tasks without labels.

    `sum_r s_r AUM_ir / sum_r s_r`, or for denominator "redundancy" `sum_r s_r AUM_ir / |R_i|`. If all trusts of a task
    are zero, "trust" weights them equally.

    Args:
        aum: AUM of the annotations, [A].
        trust: trust of the annotations, [A], not negative.
        tasks: task codes, int [A].
        num_tasks: N.
        denominator: "trust" (WAUM's paper and code) or "redundancy" (the text of peerannot's paper).

    Source:
        See `crowdzoo.layers.WAUM`; definition 3.1. "redundancy": T. Lefort et al.: Peerannot: classification for
        crowdsourced image datasets with Python. Computo, 2024.
    """
    counts = np.bincount(tasks, minlength=num_tasks)
    weight = np.bincount(tasks, trust, num_tasks)
    total = np.bincount(tasks, trust * aum, num_tasks)
    if denominator == "trust":
        nobody = weight <= 0
        total = np.where(nobody, np.bincount(tasks, aum, num_tasks), total)
        divisor = np.where(nobody, counts, weight)
    else:
        divisor = counts
    return np.where(counts > 0, total / np.where(counts > 0, divisor, 1), np.nan)


def trusted_votes(
    confusions: Floats, tasks: Codes, annotators: Codes, labels: Codes, num_tasks: int
) -> NDArray[np.float32]:
    """Soft labels from votes weighted by the annotator's accuracy on the voted class, float32 [N, K].

    `sum_r pi[r, k, k] 1[y_ir = k]`, normalised; rows of zeros for tasks without labels (or without weight).

    Args:
        confusions: `[annotator, true, said]`, [R, K, K].
        tasks: task codes, int [A].
        annotators: annotator codes, int [A].
        labels: class codes, int [A].
        num_tasks: N.

    Source:
        See `crowdzoo.layers.WAUM`; the soft labels that the paper trains on after pruning.
    """
    num_classes = confusions.shape[1]
    cells = np.asarray(tasks, np.int64) * num_classes + labels
    votes = np.bincount(cells, confusions[annotators, labels, labels], num_tasks * num_classes)
    votes = votes.reshape(num_tasks, num_classes)
    totals = votes.sum(axis=1, keepdims=True)
    return (votes / np.where(totals > 0, totals, 1)).astype(np.float32)


# === The result ===


@dataclass(frozen=True, eq=False)
class Waum:
    """How well tasks and their labels match what a network learned from all of them.

    Attributes:
        waum: WAUM of the tasks, float64 [N], -1 to 1; low for ambiguous or mislabelled tasks, NaN without labels.
        aum: AUM of the annotations, float64 [A], in the order of the rows.
        trust: trust of the annotations, float64 [A], 0 to 1.
        annotations: N tasks, A annotations.
    """

    waum: Floats
    aum: Floats
    trust: Floats
    annotations: Annotations

    def __repr__(self) -> str:
        return f"<Waum: {len(self.waum):,} tasks, {len(self.aum):,} annotations>"

    @classmethod
    def of(cls, annotations: Annotations, aum: Floats, trust: Floats, denominator: str = "trust") -> Waum:
        """Creates the result for annotations with these AUM and trust, both [A]; see `weighted_margins`."""
        scores = weighted_margins(aum, trust, annotations.task_ids, annotations.num_tasks, denominator)
        return cls(scores, aum, trust, annotations)

    @checked(fraction=Number(0, 1))
    def worst(self, fraction: float) -> Codes:
        """Returns the codes of the tasks with the lowest WAUM, the lowest first; ties go to the lower code.

        Args:
            fraction: share of the annotated tasks, 0 to 1; rounded to a whole number of tasks.

        Raises:
            ConfigError: an invalid fraction.
        """
        labelled = int(np.isfinite(self.waum).sum())
        order = np.argsort(self.waum, kind="stable")  # NaN comes last
        return order[: round(fraction * labelled)]

    @checked(quantile=Number(0, 1, below=True))
    def prunable(self, quantile: float) -> NDArray[np.bool_]:
        """Marks tasks with a WAUM up to this quantile of all annotated ones, bool [N].

        No task for quantile 0, or if all of them would be marked because of ties.

        Args:
            quantile: 0 or more, below 1.

        Raises:
            ConfigError: an invalid quantile.
        """
        labelled = np.isfinite(self.waum)
        if quantile == 0 or not labelled.any():
            return np.zeros(len(self.waum), bool)
        mask = labelled & (self.waum <= np.quantile(self.waum[labelled], quantile))
        return mask if mask.sum() < labelled.sum() else np.zeros_like(mask)
