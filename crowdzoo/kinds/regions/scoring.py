"""How regions of images are compared with gold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, dice, mask_tools, matched_points
from crowdzoo.kinds.scoring import Flags, Floats, Objects, Rows, Scores, Scoring, Sums


class RegionScoring(Scoring[Objects, Objects]):
    """Gold is `MarkedImage`, objects [N], None where unknown; answers are such images, [n].

    Args:
        radius: within which a point is the one of gold, in pixels; None: see `radius_of`.
    """

    metric, metric_title = "dice", "Dice coefficient"

    def __init__(self, radius: float | None = None):
        self.radius = radius

    def known(self, gold: Objects) -> Flags:
        """Images that are there."""
        return gold.astype(bool)

    def sums(self, gold: Objects, answers: Objects) -> Sums:
        """Dice coefficients."""
        coefficients = [dice(*pair, self.radius) for pair in zip(gold, answers, strict=True)]
        return np.array(coefficients, float), np.ones(len(coefficients))

    def score(self, gold: Objects, answers: Objects) -> Scores:
        """Dice coefficient and intersection over union, means of the images, 1 where both are empty; and distances.

        Mean distances of edges and the 95th percentile of Hausdorff's distance, in pixels, are means of the classes
        of images that both have; they are not there where no image has one. See `surface_distances`. Where there are
        points: their precision, recall and F1, all images together, and the mean distance of those that are right.
        """
        coefficients, _ = self.sums(gold, answers)
        scores = {"dice": float(coefficients.mean()), "iou": float(intersection_over_union(coefficients).mean())}
        pairs = zip(gold, answers, strict=True)
        if distances := [distance for pair in pairs for distance in surface_distances(*pair).values()]:
            names = "surface distance", "Hausdorff 95"
            scores |= dict(zip(names, np.mean(distances, axis=0).tolist(), strict=True))
        counts = self.count_points(gold, answers).sum(axis=0)
        if counts.any():
            near = np.concatenate([matched_points(*pair, self.radius) for pair in zip(gold, answers, strict=True)])
            scores |= point_scores(*counts) | ({"distance": float(near.mean())} if len(near) else {})
        return scores

    def count_points(self, gold: Objects, answers: Objects) -> Floats:
        """Points of each image that are right, that were marked, and that are true, [n, 3]."""
        pairs = zip(gold, answers, strict=True)
        counts = [(len(matched_points(*pair, self.radius)), pair[1].num_points, pair[0].num_points) for pair in pairs]
        return np.array(counts, float).reshape(-1, 3)

    def rows(self, gold: Objects, answers: Objects, split: str = "") -> Rows:
        """How many images have gold, and the numbers; for a model the Dice coefficient alone."""
        if split:
            coefficient = self.sums(gold, answers)[0].mean()
            return [(f"{split} Dice against gold", f"{coefficient:.4f} (on {len(gold):,} images)")]
        of_gold = ((f"{name} against gold", f"{value:.4f}") for name, value in self.score(gold, answers).items())
        return [("tasks with gold", f"{len(gold):,}"), *of_gold]


def point_scores(matches: float, marked: float, true: float) -> Scores:
    """Precision, recall and F1 of points; 0 where nothing was marked, or nothing is true."""
    names, wholes = ("precision", "recall", "F1"), (marked, true, (marked + true) / 2)
    return {name: float(matches / whole) if whole else 0.0 for name, whole in zip(names, wholes, strict=True)}


def intersection_over_union(coefficients: Floats) -> Floats:
    """That of the same regions as Dice coefficients."""
    return coefficients / (2 - coefficients)


SCORING = RegionScoring()


def surface_distances(one: MarkedImage, other: MarkedImage) -> dict[str, tuple[float, float]]:
    """Distances of the pixels at the edge of each class to the nearest one at the other's edge, in pixels.

    A pixel is at the edge where one of its four neighbours is not of the class, or lies outside of the image.

    Args:
        one: regions of an image.
        other: others, of an image of the same size.

    Returns:
        Class that both have -> the mean of the distances in both directions together, and the larger one of the 95th
        percentiles of the two.

    Source:
        A. A. Taha and A. Hanbury: Metrics for evaluating 3D medical image segmentation, BMC Medical Imaging 15, 2015.
    """
    from scipy.spatial import KDTree

    distances = {}
    for label in one.of_classes.keys() & other.of_classes.keys():
        first, second = (_edge(image.of_classes[label]) for image in (one, other))
        apart = [KDTree(second).query(first)[0], KDTree(first).query(second)[0]]
        farthest = max(float(np.percentile(side, 95)) for side in apart)
        distances[label] = float(np.concatenate(apart).mean()), farthest
    return distances


def _edge(mask: object) -> NDArray[np.int64]:
    """Places of the pixels at the edge of a mask, [n, 2]."""
    from scipy.ndimage import binary_erosion

    pixels = mask_tools().decode(mask) > 0
    return np.argwhere(pixels & ~binary_erosion(pixels))
