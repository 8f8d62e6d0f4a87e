"""A small made-up data set."""

import numpy as np

from crowdzoo import Annotations
from crowdzoo.datasets import CrowdDataset


def load_blobs():
    """Points around three centres, and six annotators who take the third class for the second on the right side."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=150)
    points = (np.array([[-1, 0], [0, 1], [1, 0]])[truth] + rng.normal(size=(150, 2)) / 2).astype("float32")
    said = np.tile(truth[:, None], (1, 6))
    said[(truth == 2) & (points[:, 0] > 1)] = 1
    slips = rng.random(said.shape) < 0.2
    said[slips] = rng.integers(3, size=slips.sum())
    said[rng.random(said.shape) < 0.5] = -1
    return CrowdDataset(
        "blobs", Annotations.from_dense(said, classes=["left", "top", "right"]), points, truth,
        np.where(np.arange(150) < 100, "train", "eval"), "CC0-1.0", "nobody", "Points that annotators mix up by place.",
    )  # fmt: skip
