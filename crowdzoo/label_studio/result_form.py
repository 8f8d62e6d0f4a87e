"""consensus_results: the labels of an aggregation as results of Label Studio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.regions import MarkedImage, mask_tools
from crowdzoo.errors import DataError
from crowdzoo.reading.platforms.brush_rle import brush_rle

Item = dict[str, Any]
Answers = Iterator[tuple[int, list[Item], Any]]


def consensus_results(control: Any, result: Any, sequences: Any = None) -> Iterator[tuple[Any, list[Item], float]]:
    """The consensus on each answered task, as Label Studio stores the answer of an annotator.

    Args:
        control: the question, a `Control` of the labelling configuration.
        result: of an aggregation of its answers.
        sequences: the `CrowdSequences` that were aggregated, where spans are marked.

    Yields:
        The name of the task, the results, and a score from 0 to 1, in hundredths: the probability of the class, or of
        the least sure of several labels; the mean probability of the tags of a text; the confidence of a text or of
        regions; for ratings, 1 minus the standard error over the standard deviation of the estimates of all tasks.

    Raises:
        DataError: Label Studio cannot show the consensus on this question.
    """
    tag = control.tag.lower()
    form = _regions if result.kind == "region" and tag in _SHAPES else _FORMS.get(result.kind)
    if form is None or (result.kind == "sequence" and control.objects != ("Text",)):
        tags = " on ".join(f"<{name}>" for name in (control.tag, *control.objects[:1]))
        raise DataError(f"question {control.name!r}: predictions for {tags} are not supported; leave them out.")
    for place, items, score in form(control, result, sequences):
        head = {"from_name": control.name, "to_name": control.to_name[0], "type": tag}
        shown = [{**head, "id": f"crowdzoo-{number}", **item} for number, item in enumerate(items)]
        yield result.tasks[place], shown, round(float(np.clip(score, 0, 1)), 2)


def _value(tag: str, labels: list[str]) -> list[Item]:
    """Classes as the control stores them."""
    if tag == "pairwise":
        return [{"value": {"selected": labels[0]}}]
    if tag == "taxonomy":
        return [{"value": {"taxonomy": [label.split(" / ") for label in labels]}}]
    if tag in ("rating", "number"):
        return [{"value": {tag: int(labels[0]) if tag == "rating" else float(labels[0])}}]
    return [{"value": {"choices": labels}}] if labels else []


def answer_counts(result: Any) -> NDArray[np.int64]:
    """Answers of each task, [N]."""
    return np.asarray(result.annotators_per_task if result.kind == "sequence" else result.annotations_per_task)


def _answered(result: Any) -> list[int]:
    return [int(place) for place in np.flatnonzero(answer_counts(result))]


def _classes(control: Any, result: Any, _: Any) -> Answers:
    for place in _answered(result):
        code = result.labels[place]
        yield place, _value(control.tag.lower(), [str(result.classes[code])]), result.posteriors[place, code]


def _several(control: Any, result: Any, _: Any) -> Answers:
    sure, sets = np.maximum(result.probabilities, 1 - result.probabilities).min(axis=1, initial=1), result.label_sets
    for place in _answered(result):
        yield place, _value(control.tag.lower(), [str(name) for name in sets[place]]), sure[place]


def _numbers(control: Any, result: Any, _: Any) -> Answers:
    places, tag = _answered(result), control.tag.lower()
    low, high = np.array(control.limits, np.float64)  # NaN for no limit
    numbers = np.fmax(np.fmin(result.estimates, high), low)
    spread = max(result.estimates[places].std(), 1e-9) if places else 1.0
    for place in places:
        number = float(numbers[place])
        shown = int(np.floor(number + 0.5)) if tag == "rating" else round(number, 3)
        yield place, [{"value": {tag: shown}}], 1 - result.standard_errors[place] / spread


def _texts(control: Any, result: Any, _: Any) -> Answers:
    for place in _answered(result):
        yield place, [{"value": {"text": [str(result.texts[place])]}}], result.confidence[place]


def _spans(control: Any, result: Any, sequences: Any) -> Answers:
    drawn, tag = result.drawn(sequences), control.tag.lower()
    sure = result.posteriors[np.arange(len(result.labels)), result.labels]
    for place in _answered(result):
        edges, items = sequences.edges(place), []
        for span in drawn[place]:
            start, end = edges[span.start][0], edges[span.end - 1][1]
            items.append(
                {"value": {"start": start, "end": end, "text": sequences.texts[place][start:end], tag: [span.label]}}
            )
        yield place, items, sure[result.starts[place] : result.starts[place + 1]].mean()


def _regions(control: Any, result: Any, _: Any) -> Answers:
    tag = control.tag.lower()
    for place in _answered(result):
        image: MarkedImage = result.marked[place]
        sizes = {"original_width": image.width, "original_height": image.height, "image_rotation": 0}
        items = []
        for region, mask, box in zip(image.regions, image.masks, image.boxes, strict=True):
            for value in _SHAPES[tag](image, mask, box):
                items.append({**sizes, "score": round(region.score or 0.0, 2), "value": {**value, tag: [region.label]}})
        yield place, items, result.confidence[place]


def _box(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    scale = [image.width, image.height] * 2
    left, top, width, height = (box / scale * 100).round(6).tolist()
    return [{"x": left, "y": top, "width": width, "height": height, "rotation": 0}]


def _point(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """A point; Label Studio draws it as wide as the value says, in per cent of the image."""
    (value,) = _box(image, mask, box)
    return [{"x": value["x"], "y": value["y"], "width": 0.5}]


def _ellipse(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """The ellipse in the region's box."""
    (value,) = _box(image, mask, box)
    across, down = value["width"] / 2, value["height"] / 2
    return [{"x": value["x"] + across, "y": value["y"] + down, "radiusX": across, "radiusY": down, "rotation": 0}]


def _polygons(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    """The outlines of the region's parts, along the edges of pixels; holes are filled."""
    inside = np.pad(mask_tools().decode(mask).astype(bool), 1)
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}  # along edges with the region on the right
    for down, across, begin, end in ((-1, 0, (0, 0), (0, 1)), (0, 1, (0, 1), (1, 1)), (1, 0, (1, 1), (1, 0)),
                                     (0, -1, (1, 0), (0, 0))):  # fmt: skip
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
        if (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0:  # a hole is walked around the other way
            points = corners / [image.width, image.height] * 100
            values.append({"points": points.round(6).tolist(), "closed": True})
    return values


def _brush(image: MarkedImage, mask: Any, box: NDArray[np.float64]) -> list[Item]:
    return [{"format": "rle", "rle": brush_rle(mask_tools().decode(mask).astype(bool)).tolist()}]


Form = Callable[[Any, Any, Any], Answers]
_FORMS: dict[str, Form] = {
    "classification": _classes,
    "multi-label": _several,
    "regression": _numbers,
    "free-text": _texts,
    "sequence": _spans,
}
_SHAPES = {
    "rectanglelabels": _box, "ellipselabels": _ellipse, "polygonlabels": _polygons, "brushlabels": _brush,
    "keypointlabels": _point,
}  # fmt: skip
