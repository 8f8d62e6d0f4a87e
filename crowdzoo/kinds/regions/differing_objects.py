"""differing_objects: objects of an image on which a model and the aggregated regions differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from crowdzoo.data.regions import MarkedImage, mask_tools, radius_of

SAME_OBJECT, SAME_EXTENT = 0.2, 0.5  # overlaps from which regions are the same object, and have the same extent

Difference = tuple[str, str | None, str | None, float | None, float]


def differing_objects(labels: MarkedImage, model: MarkedImage, distance: float | None = None) -> list[Difference]:
    """Find objects, of any class, on which two sets of regions of an image differ.

    Regions are matched one to one: as many as possible of the same class, then by largest overlap. Objects on only one
    side, of another class and of another extent are the errors that ObjectLab looks for (Tkachenko, Thyagarajan and
    Mueller, ObjectLab: automated diagnosis of mislabeled images in object detection data, 2023).

    Args:
        labels: aggregated regions.
        model: regions of a model, for an image of the same size.
        distance: maximum distance of points of the same object, in pixels; None: see `radius_of`.

    Returns:
        For each such object, the difference, its class in `labels` and by the model (None: no region), the overlap of
        the two regions, and the certainty of the difference, from 0 to 1: the score of a region on only one side (1
        without a score), overlap times the model's score for another class, 1 - overlap for another extent.
    """
    overlaps = _overlaps(labels, model, distance)
    names = [np.array([region.label for region in image.regions], object) for image in (labels, model)]
    scores = [[1.0 if region.score is None else region.score for region in image.regions] for image in (labels, model)]
    is_same = names[0][:, None] == names[1]
    pairs = np.stack(linear_sum_assignment(-np.where(overlaps >= SAME_OBJECT, overlaps + is_same, 0)), axis=1)
    matched = [(row, column) for row, column in pairs.tolist() if overlaps[row, column] >= SAME_OBJECT]
    differences = list[Difference]()
    for row, column in matched:
        near, classes = float(overlaps[row, column]), (names[0][row], names[1][column])
        if not is_same[row, column]:
            differences.append(("other class", *classes, near, near * scores[1][column]))
        elif near < SAME_EXTENT:
            differences.append(("other place or extent", *classes, near, 1 - near))
    for row in sorted({*range(len(names[0]))} - {row for row, _ in matched}):
        differences.append(("missed by the model", names[0][row], None, None, scores[0][row]))
    for column in sorted({*range(len(names[1]))} - {column for _, column in matched}):
        differences.append(("by the model alone", None, names[1][column], None, scores[1][column]))
    return differences


def _overlaps(labels: MarkedImage, model: MarkedImage, distance: float | None) -> NDArray[np.float64]:
    """Intersection over union of regions with the model's, [n, m]; for points, 1 - distance / `distance`."""
    shape = len(labels.regions), len(model.regions)
    if not min(shape):
        return np.zeros(shape)
    are_points = [np.array([region.is_point for region in image.regions], bool) for image in (labels, model)]
    overlaps = np.array(mask_tools().iou(labels.masks, model.masks, [0] * shape[1]), np.float64).reshape(shape)
    overlaps[are_points[0][:, None] | are_points[1]] = 0
    near = 1 - cdist(labels.boxes[:, :2], model.boxes[:, :2]) / radius_of(labels, distance)
    both = are_points[0][:, None] & are_points[1]
    overlaps[both] = np.maximum(near, 0)[both]
    return overlaps
