"""Label Studio: JSON, and JSON-MIN.

The format of JSON: https://labelstud.io/guide/task_format, of JSON-MIN: https://labelstud.io/guide/export. What a tag
writes into `value`: https://labelstud.io/tags.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from typing import Any

import numpy as np

from crowdzoo.errors import BadRow, DataError
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record, id_text, label_text
from crowdzoo.reading.platforms.shapes import box, brush_mask, ellipse, named

# Type of a result -> sort of the question
_SORTS = {
    "choices": "class", "taxonomy": "class", "pairwise": "class", "rating": "number", "number": "number",
    "labels": "spans", "hypertextlabels": "spans", "textarea": "other",
}  # fmt: skip
_AFTER = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")  # keys of JSON-MIN
_NO_USER = "is missing. Export again without 'Remove user details'."
_OFFSETS = "globalOffsets"
_NO_ID = "is missing. Each task of an export has one."
# Type of a region -> a key that its value has; other types may have them as well
_FORMS = {"rectanglelabels": "height", "polygonlabels": "points", "brushlabels": "rle", "ellipselabels": "radiusX"}


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Tasks with their annotations; an annotation with its task inside, as in target storages, becomes one."""
    for number, entry in json_records(file):
        if isinstance(entry, dict) and isinstance(entry.get("task"), dict) and "result" in entry:
            entry = {**entry["task"], "annotations": [entry]}
        yield number, entry


def _is_own(entry: Mapping[str, Any]) -> bool:
    return ("data" in entry and ("annotations" in entry or "completions" in entry)) or (
        "annotation_id" in entry and "annotator" in entry
    )


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "annotation_id" in entry:
        yield from ((one, _SORTS.get(_min_type(entry[one]), "other")) for one in _min_questions(entry))
        return
    for annotation in _dicts(entry.get("annotations", entry.get("completions"))):
        for result in _dicts(annotation.get("result")):
            name = result.get("from_name")
            if isinstance(name, str):
                value = result.get("value")
                of_text = isinstance(value, dict) and (type(value.get("start")) is int or _OFFSETS in value)
                yield name, "spans" if of_text else _SORTS.get(str(result.get("type")), "other")


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    record = Record(id_text("id", entry.get("id"), _NO_ID), {})
    if "annotation_id" in entry:
        names = [*_min_questions(entry), "id", *_AFTER]
        record.data = {name: value for name, value in entry.items() if name not in names}
        results = [{"value": value} for value in _min_values(entry.get(question))]
        _add(record, results, _annotator("annotator", entry.get("annotator")), question, spans, question,
             entry)  # fmt: skip
        return record
    for where, annotation, who in _annotations(record, entry):
        results = [one for one in annotation["result"] if isinstance(one, dict) and one.get("from_name") == question]
        record.left_out += ["relations"] * sum(one.get("type") == "relation" for one in _dicts(annotation["result"]))
        try:
            _add(record, results, who, question, spans, f"{where}.result", annotation)
        except BadValue as bad:
            record.bad.append(bad)
    if spans and any("</" in str(text) for text in record.data.values()):
        marked = [span for _, said in record.answers for span in said]
        if not marked or any(span["html"] for span in marked):
            record.data = {
                name: _Page(text).text if isinstance(text, str) else text for name, text in record.data.items()
            }
    return record


class _Page(HTMLParser):
    """What a page shows, as HyperText counts it: text, and a line break as one character."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += "\n" if tag == "br" else ""


def _annotations(record: Record, entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
    """Where annotations stand, and their annotators, None for gold; the record gets the data, and what is left out."""
    if not isinstance(entry.get("data"), dict):
        raise BadValue("data", entry.get("data"), "is not an object. Choose the export format JSON.")
    record.data = entry["data"]
    key = "annotations" if "annotations" in entry else "completions"
    if not isinstance(entry.get(key), list):
        raise BadValue(key, entry.get(key), "is not a list. Choose the export format JSON.")
    for place, annotation in enumerate(entry[key]):
        where = f"{key}[{place}]"
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
            raise BadValue(
                where, annotation, "is not an annotation with a list 'result'. Choose the export format JSON."
            )
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            record.left_out.append("cancelled annotations")
            continue
        reviews = sorted(_dicts(annotation.get("reviews")), key=lambda review: str(review.get("created_at")))
        if reviews and reviews[-1].get("accepted") is False:
            record.left_out.append("annotations that a review rejected")
            continue
        who = None
        if not annotation.get("ground_truth"):
            who = _annotator(f"{where}.completed_by", annotation.get("completed_by"))
        yield where, annotation, who


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    """What annotators marked; an image without any region is left out, as nothing says its size."""
    record, sizes, marked = Record(id_text("id", entry.get("id"), _NO_ID), {}), list[list[Any]](), []
    if "annotation_id" in entry:
        raise BadValue("annotation_id", entry["annotation_id"], "is of JSON-MIN. Choose the export format JSON.")
    for _, annotation, who in _annotations(record, entry):
        results = [each for each in _dicts(annotation["result"]) if isinstance(each.get("value"), dict)]
        shapes, ids, others = list[tuple[str, str, Any]](), set[Any](), list[Any]()
        for result in results:
            kind, value = str(result.get("type")), result["value"]
            form = _FORMS.get(kind) or next((key for key in _FORMS.values() if key in value), None)
            labels, is_asked = value.get(kind), kind.endswith("labels")
            if form is None:
                record.left_out += ["keypoints and other shapes"] * (is_asked and kind != "labels")
                continue
            sizes.append([result.get("original_height"), result.get("original_width")])
            if question and result.get("from_name") != question:
                continue
            if (is_asked or question) and isinstance(labels, list) and labels:
                shapes += [(str(label), form, result) for label in labels]
                ids.add(str(result.get("id")))
            else:  # the label may be in another result
                others.append(str(result.get("id")))
        record.left_out += ["regions without a label"] * len({*others} - ids)
        marked.append((who, shapes, annotation.get("lead_time"), annotation.get("created_at")))
    if not sizes:
        record.left_out += ["images without regions, whose size Label Studio does not say"] * bool(marked)
        return record, (), ()
    if any(size != sizes[0] for size in sizes):
        raise BadValue(None, record.task, f"has regions of images of the sizes {sizes[0]} and others. Correct them.")
    return record, sizes[0], ((who, map(partial(_region, sizes[0]), shapes), *more) for who, shapes, *more in marked)


def _region(size: list[int], shape: tuple[str, str, Mapping[str, Any]]) -> dict[str, Any]:
    """A region in pixels; in the export it is in per cent of the image."""
    label, form, result = shape
    value, scale = result["value"], np.array(size[::-1]) / 100
    with named(label, value):
        for key in ("image_rotation", "item_index"):
            if result.get(key):
                raise DataError(f"has {key} {result[key]}, and one image that is not turned is read. Leave it out.")
        drawn: dict[str, Any]
        if form == "rle":
            drawn = brush_mask(value["rle"], size)
        elif form == "points":
            drawn = {"polygons": [(np.array(value["points"], np.float64) * scale).ravel().tolist()]}
        else:
            names = ("width", "height") if form == "height" else ("radiusX", "radiusY")
            place, sides = (np.array([value[key] for key in keys], np.float64) * scale for keys in (("x", "y"), names))
            degrees = float(value.get("rotation") or 0)
            is_box = form == "height"
            drawn = box(place, sides, size, degrees, (0, 0)) if is_box else ellipse(place, sides, size, degrees)
    return {"category": label, **drawn}


def _add(record: Record, results: list[Any], who: str | None, question: str, spans: bool, key: str, about: Any) -> None:
    """Adds what one annotator said; `about` has how long it took, and when it was said."""
    said: list[Any] = []
    for place, result in enumerate(results):
        where, value = f"{key}[{place}].value", result.get("value")
        if not isinstance(value, dict):
            raise BadValue(where, value, "is not an object.")
        said += _spans(where, value) if spans else _labels(where, value)
    if spans:
        record.answers.append((who, said))
    else:
        empty = f"annotations without an answer to '{question}'"
        record.add(who, said, empty, about.get("lead_time"), about.get("created_at"))


def _annotator(key: str, value: Any) -> str:
    if isinstance(value, dict):  # a user's id, email, first_name and last_name
        value = value.get("email") or value.get("id")
    return id_text(key, value, _NO_USER)


def _labels(key: str, value: Mapping[str, Any]) -> list[str]:
    found: list[Any] = []
    for name in ("choices", "text", "rating", "number", "selected"):
        if name in value:
            found = value[name] if isinstance(value[name], list) else [value[name]]
            break
    else:
        paths = value.get("taxonomy")
        if not isinstance(paths, list):
            raise BadValue(key, value, "is no choice, rating or number, which crowdzoo reads as labels.")
        found = [" / ".join(map(str, path)) if isinstance(path, list) else path for path in paths]
    return [text for one in found if (text := label_text(key, one)) is not None]


def _spans(key: str, value: Mapping[str, Any]) -> list[dict[str, Any]]:
    labels = next((value[name] for name in ("labels", "hypertextlabels", "choices") if name in value), None)
    ends = value.get(_OFFSETS)  # of HyperText, whose start and end are paths of elements
    start, end = ((ends if isinstance(ends, dict) else value).get(name) for name in ("start", "end"))
    if isinstance(start, str):
        raise BadValue(key, value, f"has no {_OFFSETS}. Export again from a newer Label Studio.")
    if not isinstance(labels, list) or type(start) is not int or type(end) is not int:
        raise BadValue(key, value, "is no span of a text with start, end and labels.")
    about = {"text": value.get("text"), "place": f"{key}.text", "html": ends is not None}
    return [{"start": start, "end": end, "label": label, **about} for label in labels]


def _min_questions(entry: Mapping[str, Any]) -> list[str]:
    """Questions of an entry of JSON-MIN: the keys between the task's id and the annotator."""
    keys = list(entry)
    begin = keys.index("id") + 1 if "id" in entry else 0
    end = keys.index("annotator") if "annotator" in entry else len(keys)
    return keys[begin:end]


def _min_values(value: Any) -> list[Any]:
    """What JSON-MIN shortened, as objects again: one choice is its name alone."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [{"choices": [one]} if isinstance(one, (str, int, float)) else one for one in values]


def _min_type(value: Any) -> str:
    values = _min_values(value)
    first = values[0] if values and isinstance(values[0], dict) else {}
    return next((name for name in ("choices", "taxonomy", "rating", "number", "labels") if name in first), "other")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


LABEL_STUDIO = Platform(
    name="label-studio",
    title="Label Studio",
    suffixes=(".json",),
    menu="In the project choose Export, then JSON.",
    records=_records,
    is_own=_is_own,
    questions=_questions,
    read=_read,
    regions=_regions,
)
