"""consensus_results: labels of an aggregation in Label Studio's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, mask_tools
from crowdzoo.errors import DataError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.aggregating import DrawnText
from crowdzoo.reading.platforms.label_config import Control
from crowdzoo.reading.platforms.shapes import brush_rle

Item = dict[str, Any]


def consensus_results(control: Control, result: Any, crowd: Any = None) -> Iterator[tuple[object, list[Item], float]]:
    """Yields the consensus on each answered task, in Label Studio's format of answers.

    Args:
        control: the question.
        result: result of an aggregation of its answers.
        crowd: the aggregated answers; needed for spans.

    Yields:
        The name of the task, the results, and a score from 0 to 1, in hundredths: the probability of the class, or of
        the least certain of several labels; the mean probability of the tags of a text; the confidence of a text or of
        regions; for ratings, 1 minus the standard error over the standard deviation of the estimates of all tasks.

    Raises:
        DataError: Label Studio cannot show the consensus on this question.
    """
    tag, kind = control.tag.lower(), kind_of(result.kind)
    is_shown = tag in _SHAPES if kind.labels.has_regions else control.objects == ("Text",) or not kind.labels.has_tokens
    tasks = np.flatnonzero(kind.aggregation.answer_counts(result))
    answers = kind.aggregation.consensus(result, crowd, tasks) if is_shown else None
    if answers is None:
        tags = " on ".join(f"<{name}>" for name in (control.tag, *control.objects[:1]))
        raise DataError(f"question {control.name!r}: predictions for {tags} are not supported; leave them out.")
    head = {"from_name": control.name, "to_name": control.to_name[0], "type": tag}
    for task, (answer, score) in zip(tasks, answers, strict=True):
        items = enumerate(_values(answer, tag, control.limits))
        shown = [{**head, "id": f"crowdzoo-{number}", **item} for number, item in items]
        yield result.tasks[task], shown, round(float(np.clip(score, 0, 1)), 2)


def _values(answer: Any, tag: str, limits: tuple[float | None, float | None]) -> list[Item]:
    """An answer in Label Studio's format, see `Aggregating.consensus`."""
    if isinstance(answer, MarkedImage):
        sizes = {"original_width": answer.width, "original_height": answer.height, "image_rotation": 0}
        return [
            {**sizes, "score": round(region.score or 0.0, 2), "value": {**value, tag: [region.label]}}
            for region, mask, box in zip(answer.regions, answer.masks, answer.boxes, strict=True)
            for value in _SHAPES[tag](answer, mask, box)
        ]
    if isinstance(answer, str):
        return [{"value": {"text": [answer]}}]
    if tag in ("rating", "number"):
        low, high = np.array(limits, np.float64)  # NaN for no limit
        named = answer[0] if isinstance(answer, list) else answer  # a class may also be a number
        number = float(np.fmax(np.fmin(float(named), high), low))
        return [{"value": {tag: int(np.floor(number + 0.5)) if tag == "rating" else round(number, 3)}}]
    if any(isinstance(item, DrawnText) for item in answer):
        return [{"value": {**span.place, tag: [span.label]}} for span in answer]
    if tag == "pairwise":
        return [{"value": {"selected": answer[0]}}]
    if tag == "taxonomy":
        return [{"value": {tag: [label.split(" / ") for label in answer]}}]
    return [{"value": {"choices": answer}}] if answer else []


def _box(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    scale = [image.width, image.height] * 2
    left, top, width, height = (box / scale * 100).round(6).tolist()
    return [{"x": left, "y": top, "width": width, "height": height, "rotation": 0}]


def _point(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """A point, which Label Studio draws with a width in per cent of the image."""
    (value,) = _box(image, mask, box)
    return [{"x": value["x"], "y": value["y"], "width": 0.5}]


def _ellipse(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """The ellipse inscribed in the region's box."""
    (value,) = _box(image, mask, box)
    across, down = value["width"] / 2, value["height"] / 2
    return [{"x": value["x"] + across, "y": value["y"] + down, "radiusX": across, "radiusY": down, "rotation": 0}]


# Step to a neighbour outside, and the pixel's corners at which the edge to it starts and ends
_EDGES = (
    (-1, 0, (0, 0), (0, 1)),
    (0, 1, (0, 1), (1, 1)),
    (1, 0, (1, 1), (1, 0)),
    (0, -1, (1, 0), (0, 0)),
)


def _polygons(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """The outlines of the region's parts, along the edges of pixels; holes are filled."""
    inside = np.pad(mask_tools().decode(mask).astype(bool), 1)
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}  # along edges with the region on the right
    for down, across, begin, end in _EDGES:
        edges = inside & ~np.roll(inside, (-down, -across), (0, 1))
        for row, column in np.argwhere(edges).tolist():
            steps.setdefault((column + begin[1], row + begin[0]), []).append((column + end[1], row + end[0]))
    values = []
    while steps:
        point, outline = next(iter(steps)), []
        while point in steps:
            outline.append(point)
            point, *others = steps.pop(point)
            if others:
                steps[outline[-1]] = others
        corners = np.array(outline, np.float64) - 1
        turns = np.roll(corners, 1, 0) - corners != corners - np.roll(corners, -1, 0)
        corners = corners[turns.any(axis=1)]
        x, y = corners.T
        if (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0:  # holes have the opposite orientation
            points = corners / [image.width, image.height] * 100
            values.append({"points": points.round(6).tolist(), "closed": True})
    return values


def _brush(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    return [{"format": "rle", "rle": brush_rle(mask_tools().decode(mask).astype(bool)).tolist()}]


_SHAPES = {"rectanglelabels": _box, "ellipselabels": _ellipse, "polygonlabels": _polygons, "brushlabels": _brush}
_SHAPES["keypointlabels"] = _point
