"""Comparison of regions of images with gold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, dice, mask_tools, matched_points
from crowdzoo.kinds.scoring import Flags, Floats, Objects, Rows, Scores, Scoring, Sums


class RegionScoring(Scoring[Objects, Objects]):
    """Gold is `MarkedImage`, objects [N], None where unknown; answers are such images, [n].

    Args:
        radius: maximum distance between a point and its match in gold, in pixels; None: see `radius_of`.
    """

    metric, metric_title = "dice", "Dice coefficient"

    def __init__(self, radius: float | None = None):
        self.radius = radius

    def known(self, gold: Objects) -> Flags:
        """Images that are not None."""
        return gold.astype(bool)

    def sums(self, gold: Objects, answers: Objects) -> Sums:
        """Dice coefficients."""
        coefficients = [dice(*pair, self.radius) for pair in zip(gold, answers, strict=True)]
        return np.array(coefficients, float), np.ones(len(coefficients))

    def score(self, gold: Objects, answers: Objects) -> Scores:
        """Dice coefficient and intersection over union, averaged over images, 1 if both are empty; and distances.

        The mean distance of edges and the 95th percentile of the Hausdorff distance, in pixels, are averaged over
        classes of images that both have, and missing if there are none; see `surface_distances`. With points, there are
        also their precision, recall and F1 over all images, and the mean distance of correct points.
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
        """Numbers of correct, marked and true points per image, [n, 3]."""
        pairs = zip(gold, answers, strict=True)
        counts = [(len(matched_points(*pair, self.radius)), pair[1].num_points, pair[0].num_points) for pair in pairs]
        return np.array(counts, float).reshape(-1, 3)

    def rows(self, gold: Objects, answers: Objects, split: str = "") -> Rows:
        """Number of images with gold, and the scores; for a model, only the Dice coefficient."""
        if split:
            coefficient = self.sums(gold, answers)[0].mean()
            return [(f"{split} Dice against gold", f"{coefficient:.4f} (on {len(gold):,} images)")]
        of_gold = ((f"{name} against gold", f"{value:.4f}") for name, value in self.score(gold, answers).items())
        return [("tasks with gold", f"{len(gold):,}"), *of_gold]


def point_scores(matches: float, marked: float, true: float) -> Scores:
    """Precision, recall and F1 of points; 0 if no point is marked, or true."""
    names, wholes = ("precision", "recall", "F1"), (marked, true, (marked + true) / 2)
    return {name: float(matches / whole) if whole else 0.0 for name, whole in zip(names, wholes, strict=True)}


def intersection_over_union(coefficients: Floats) -> Floats:
    """Convert Dice coefficients to intersection over union."""
    return coefficients / (2 - coefficients)


SCORING = RegionScoring()


def surface_distances(one: MarkedImage, other: MarkedImage) -> dict[str, tuple[float, float]]:
    """Distances from each class's edge pixels to the nearest one at the other's edge, in pixels.

    A pixel is at the edge if one of its four neighbours has another class or is outside the image.

    Args:
        one: regions of an image.
        other: other regions, of an image of the same size.

    Returns:
        Common class -> mean distance over both directions, and the larger of the two 95th percentiles.

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
    """Coordinates of the edge pixels of a mask, [n, 2]."""
    from scipy.ndimage import binary_erosion

    pixels = mask_tools().decode(mask) > 0
    return np.argwhere(pixels & ~binary_erosion(pixels))
