"""Annotators with known confusion matrices."""

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations


def simulate_annotations(gold: ArrayLike, confusions: ArrayLike, redundancy: int | ArrayLike, seed: int) -> Annotations:
    """Draws labels from annotators whose confusion matrices are known.

    Each task is given to `redundancy` different annotators, all equally likely; annotator r answers a task of class k
    with class l with probability `confusions[r, k, l]`, independently of everything else (the model of Dawid and Skene,
    "Maximum likelihood estimation of observer error-rates", Applied Statistics 28(1), 1979).

    Args:
        gold: true class codes, int [N].
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one.
        redundancy: annotations of every task, 0 to R; or one number a task, int [N].
        seed: seed of all draws.

    Returns:
        Annotations with tasks 0 ... N-1, annotators 0 ... R-1 and classes 0 ... K-1, ordered by task, then annotator.

    Raises:
        ValueError: shapes that do not fit, rows that are no distributions, a class code or redundancy out of range.
    """
    truth = np.asarray(gold)
    matrices = np.asarray(confusions, dtype=np.float64)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"confusions have the shape [annotators, classes, classes]. Received: {matrices.shape}")
    if (matrices < 0).any() or not np.allclose(matrices.sum(axis=2), 1):
        raise ValueError("every row of a confusion matrix is a distribution: not negative, and its sum is 1")
    num_annotators, num_classes, _ = matrices.shape
    if truth.ndim != 1 or (truth < 0).any() or (truth >= num_classes).any():
        raise ValueError(f"gold is a list of class codes, 0 to {num_classes - 1}")
    wanted = np.broadcast_to(np.asarray(redundancy), truth.shape)
    if (wanted < 0).any() or (wanted > num_annotators).any():
        raise ValueError(f"redundancy is 0 to {num_annotators}, the number of annotators. Received: {redundancy!r}")

    rng = np.random.default_rng(seed)
    # the annotators with a task's smallest random numbers get it: each subset of that size is equally likely
    rank = rng.random((len(truth), num_annotators)).argsort(axis=1).argsort(axis=1)
    task, annotator = np.nonzero(rank < wanted[:, None])
    cumulative = matrices[annotator, truth[task]].cumsum(axis=1)
    # the last class takes what rounding leaves between its cumulative sum and 1
    label = (rng.random(len(task))[:, None] >= cumulative[:, :-1]).sum(axis=1)
    classes = np.arange(num_classes)
    return Annotations(
        "classification", task, annotator, label, np.arange(len(truth)), np.arange(num_annotators), classes
    )
