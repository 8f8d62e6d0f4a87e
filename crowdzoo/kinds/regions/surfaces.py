"""surface_distances: how far the edges of regions lie apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, mask_tools


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
