"""Crowds of whom all is known, for tests of several layers."""

import sys
from pathlib import Path

import numpy as np

from crowdzoo import Annotations

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reproduce"))
from simulated_crowds import simulate_annotations as simulate_annotations

sys.path.pop(0)

# anchors: the classes lie apart; experts: annotators 0 and 1; annotator 3 has two classes the wrong way round
TRUE = np.array(
    [
        [[0.97, 0.02, 0.01], [0.02, 0.97, 0.01], [0.01, 0.01, 0.98]],
        [[0.9, 0.1, 0], [0, 0.95, 0.05], [0.1, 0, 0.9]],
        [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.15, 0.6]],
        [[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
        [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]],
    ]
)


def a_crowd(num_tasks, seed=0):
    """Features close to those of the class, gold, and labels of everybody, drawn from the rows of `TRUE`."""
    rng, num_classes = np.random.default_rng(seed), TRUE.shape[1]
    gold = rng.integers(num_classes, size=num_tasks)
    x = (np.eye(num_classes)[gold] + rng.normal(scale=0.1, size=(num_tasks, num_classes))).astype("float32")
    labels = np.array([[rng.choice(num_classes, p=rows[true]) for rows in TRUE] for true in gold])
    return x, gold, Annotations.from_dense(labels, classes=range(num_classes))


def labels_of(truth, confusions, redundancy, num_annotators, rng):
    """Dense labels `[N, R]`: every task asks so many of the annotators who have a matrix; the others label nothing."""
    dense = np.full((len(truth), num_annotators), -1)
    for i, k in enumerate(truth):
        for r in rng.permutation(len(confusions))[:redundancy]:
            dense[i, r] = rng.choice(len(confusions[r]), p=confusions[r][k])
    return dense
