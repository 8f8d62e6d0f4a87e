"""Label Studio: JSON, and JSON-MIN.

The format of JSON: https://labelstud.io/guide/task_format, of JSON-MIN: https://labelstud.io/guide/export. What a tag
writes into `value`: https://labelstud.io/tags.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from typing import Any

import numpy as np

from crowdzoo.data.orders import order_pairs
from crowdzoo.errors import BadRow, DataError, Setting
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record, as_list, id_text, label_texts
from crowdzoo.reading.platforms.shapes import box, brush_mask, ellipse, named, point_of, url_mask

# Type of a result -> sort of the question
_SORTS = {
    "choices": "class", "taxonomy": "class", "pairwise": "pair", "rating": "number", "number": "number",
    "labels": "spans", "hypertextlabels": "spans", "paragraphlabels": "spans", "textarea": "text", "ranker": "ranking",
}  # fmt: skip
_KEYS = {"pairwise": "selected", "textarea": "text"}  # key of the value, if different from the type
# Keys of values with positions in audio, a time series or a video, and with positions in an image
_IN_TIME, _IN_IMAGE = {"channel", "instant", "ranges", "sequence"}, {"x", "points", "rle", "imageDataURL", "vertices"}
_LINK = re.compile(r"[a-z0-9+.-]+://\S+|/\S+", re.IGNORECASE)
_SOUND = re.compile(r"\S+\.(aac|avi|flac|m4a|mkv|mov|mp3|mp4|ogg|opus|wav|webm)(\?\S*)?", re.IGNORECASE)
_AFTER = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")  # keys of JSON-MIN
_NO_USER = "is missing. Export again without 'Remove user details'."
_OFFSETS = "globalOffsets"
_NO_ID = "is missing. Each task of an export has one."
# Type of a region -> a key of its value; other types may also have it
_FORMS = {
    "rectanglelabels": "height", "polygonlabels": "points", "brushlabels": "rle", "ellipselabels": "radiusX",
    "bitmasklabels": "imageDataURL", "keypointlabels": "x",
}  # fmt: skip
_LABELS = ("labels", "hypertextlabels", "paragraphlabels", "choices", "taxonomy")


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield tasks with annotations; an annotation that contains its task, as in target storages, is converted."""
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
        for one in _min_questions(entry):
            yield one, _sort((_min_values(entry[one]) or [{}])[0], _min_data(entry))
        return
    for annotation in _dicts(entry.get("annotations", entry.get("completions"))):
        for result in _dicts(annotation.get("result")):
            if isinstance(name := result.get("from_name"), str):
                yield name, _sort(result, entry.get("data"))


def _sort(result: Mapping[str, Any], data: Any) -> str:
    """Sort of the question that a result answers; without a type, inferred from its value."""
    kind, value = result.get("type"), result.get("value")
    if not isinstance(value, dict):
        return _SORTS.get(str(kind), "other")
    if kind is None:
        kind = next((name for name in _SORTS if _KEYS.get(name, name) in value), "other")
    start = value.get("start")
    if _IN_TIME & value.keys() or "original_length" in result or type(start) is float:
        return "linked"
    if type(start) is int or _OFFSETS in value or "startOffset" in value:
        if "text" in value or not isinstance(data, dict):
            return "spans"
        texts = [text for text in data.values() if isinstance(text, str)]
        is_linked = any(map(_SOUND.fullmatch, texts)) or (texts and all(map(_LINK.fullmatch, texts)))
        return "linked" if is_linked else "spans"
    return "regions" if _IN_IMAGE & value.keys() else _SORTS.get(str(kind), "other")


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    record = _record(entry, question, _spans if spans else _labels)
    if spans:
        record.data = _shown(record)
    return record


def _pairs(entry: Mapping[str, Any], question: str, columns: Mapping[str, str]) -> Record:
    """Preferences of annotators: between two sides, or from a ranking, each item over all that follow it."""

    def pairs(key: str, value: Mapping[str, Any], record: Record) -> Iterator[tuple[str, str, str]]:
        if "ranker" in value:
            return _of_list(key, value["ranker"], record, columns.get("task"))
        left, right = (_side(record, side, columns) for side in ("left", "right"))
        return ((left, right, label) for label in _labels(key, value, record))

    return _record(entry, question, pairs)


def _record(
    entry: Mapping[str, Any], question: str, read_value: Callable[[str, Mapping[str, Any], Record], Iterable[Any]]
) -> Record:
    """Record of the answers to a question; `read_value` receives a value's key, the value, and the record with data."""
    record = Record(id_text("id", entry.get("id"), _NO_ID), {})
    empty = f"annotations without an answer to '{question}'"
    for where, results, who, about in _answers(record, entry, question):
        try:
            answer: list[Any] = []
            for place, result in enumerate(results):
                key, value = f"{where}[{place}].value", result.get("value")
                if not isinstance(value, dict):
                    raise BadValue(key, value, "is not an object.")
                answer += read_value(key, value, record)
            record.add(who, answer, empty, about.get("lead_time"), about.get("created_at"))
        except BadValue as bad:
            record.bad.append(bad)
    return record


def _side(record: Record, side: str, columns: Mapping[str, str]) -> str:
    """Name of a side: its value in the given data column, or task and side, unique to this task."""
    if not columns:
        return f"{record.task}/{side}"
    column = columns.get(side, side)
    sides = Setting("columns", {"left": "FIRST", "right": "SECOND"})
    return id_text(f"data.{column}", record.data.get(column), f"is missing. Name the columns: {sides}.")


def _of_list(key: str, ranker: Any, record: Record, named: str | None) -> Iterator[tuple[str, str, str]]:
    """Pairs from a ranking, best first."""
    lists = [*ranker.values()] if isinstance(ranker, dict) else []
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise BadValue(key, ranker, "is not one list in order. Buckets are not read as preferences.")
    items = {str(item.get("id")): item for each in record.data.values() for item in _dicts(each)}
    names = [id_text(key, each, "is missing.") for each in lists[0]]
    if named is not None:
        names = [id_text(f"{key} {name}.{named}", items.get(name, {}).get(named), "is missing.") for name in names]
    else:
        names = [f"{record.task}/{name}" for name in names]
    return order_pairs([[name] for name in names])


def _answers(
    record: Record, entry: Mapping[str, Any], question: str
) -> Iterator[tuple[str, list[Any], str | None, Mapping[str, Any]]]:
    """Yield an answer's key, results, annotator and annotation; sets the record's data."""
    if "annotation_id" in entry:
        record.data = _min_data(entry)
        yield question, _min_values(entry.get(question)), _annotator("annotator", entry.get("annotator")), entry
        return
    for where, annotation, who in _annotations(record, entry):
        results = [one for one in annotation["result"] if isinstance(one, dict) and one.get("from_name") == question]
        record.left_out += ["relations"] * sum(one.get("type") == "relation" for one in _dicts(annotation["result"]))
        yield f"{where}.result", results, who, annotation


def _shown(record: Record) -> dict[str, Any]:
    """The data with the text of paragraphs or pages, if offsets of spans refer to it."""
    marked, data = {span["of"] for _, said in record.answers for span in said}, record.data
    if "paragraphs" in marked or not any(isinstance(text, str) for text in data.values()):
        return {name: "\n".join(texts) for name, value in data.items() if (texts := _paragraphs(value))} or data
    if any("</" in str(text) for text in data.values()) and (not marked or "page" in marked):
        return {name: _Page(text).text if isinstance(text, str) else text for name, text in data.items()}
    return data


def _paragraphs(value: Any) -> list[str]:
    """Texts of paragraphs; empty for other values."""
    texts = [each.get("text") for each in _dicts(value)]
    return [str(text) for text in texts] if all(isinstance(text, str) for text in texts) else []


class _Page(HTMLParser):
    """Text of a page as counted by HyperText, with a line break as one character."""

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
    """Yield keys of annotations, annotations and annotators (None: gold); sets the record's data and `left_out`."""
    if not isinstance(entry.get("data"), dict):
        raise BadValue("data", entry.get("data"), "is not an object. Choose the export format JSON.")
    record.data = entry["data"]
    key = "annotations" if "annotations" in entry else "completions"
    if not isinstance(entry.get(key), list):
        raise BadValue(key, entry.get(key), "is not a list. Choose the export format JSON.")
    for place, annotation in enumerate(entry[key]):
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
            reason = "is not an annotation with a list 'result'. Choose the export format JSON."
            raise BadValue(f"{key}[{place}]", annotation, reason)
    # of several annotations by an annotator, the one changed last comes last, not the one started last
    for place, annotation in sorted(enumerate(entry[key]), key=lambda each: str(each[1].get("updated_at") or "")):
        where = f"{key}[{place}]"
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
    """Regions that annotators marked; images without regions are left out, since their size is unknown."""
    record, sizes, marked = Record(id_text("id", entry.get("id"), _NO_ID), {}), list[list[Any]](), []
    unread = list[str]()
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
                is_place = is_asked and question in ("", result.get("from_name"))
                is_place = is_place and _sort(result, record.data) in ("regions", "linked")
                unread += [f"regions of type {kind!r}, which are not read"] * is_place
                continue
            sizes.append([result.get("original_height"), result.get("original_width")])
            if question and result.get("from_name") != question:
                continue
            if (is_asked or question) and isinstance(labels, list) and labels:
                shapes += [(str(label), form, result) for label in labels]
                ids.add(str(result.get("id")))
            else:  # another result may have the label
                others.append(str(result.get("id")))
        record.left_out += ["regions without a label"] * len({*others} - ids)
        marked.append((who, shapes, annotation.get("lead_time"), annotation.get("created_at")))
    record.left_out += unread
    if not sizes:
        no_size = bool(marked) and not unread
        record.left_out += ["images without regions, whose size Label Studio does not say"] * no_size
        return record, (), ()
    if any(size != sizes[0] for size in sizes):
        raise BadValue(None, record.task, f"has regions of images of the sizes {sizes[0]} and others. Correct them.")
    return record, sizes[0], ((who, map(partial(_region, sizes[0]), shapes), *more) for who, shapes, *more in marked)


def _region(size: list[int], shape: tuple[str, str, Mapping[str, Any]]) -> dict[str, Any]:
    """Convert a region from percentages of the image to pixels."""
    label, form, result = shape
    value, scale = result["value"], np.array(size[::-1]) / 100
    with named(label, value):
        for key in ("image_rotation", "item_index"):
            if result.get(key):
                raise DataError(f"has {key} {result[key]}, and one image that is not turned is read. Leave it out.")
        drawn: dict[str, Any]
        if form == "x":
            x, y = np.array([value["x"], value["y"]], np.float64) * scale
            return point_of(x, y, label)
        if form in ("rle", "imageDataURL"):
            drawn = (brush_mask if form == "rle" else url_mask)(value[form], size)
        elif form == "points":
            drawn = {"polygons": [(np.array(value["points"], np.float64) * scale).ravel().tolist()]}
        else:
            names = ("width", "height") if form == "height" else ("radiusX", "radiusY")
            place, sides = (np.array([value[key] for key in keys], np.float64) * scale for keys in (("x", "y"), names))
            degrees = float(value.get("rotation") or 0)
            is_box = form == "height"
            drawn = box(place, sides, size, degrees, (0, 0)) if is_box else ellipse(place, sides, size, degrees)
    return {"category": label, **drawn}


def _annotator(key: str, value: Any) -> str:
    if isinstance(value, dict):  # a user's id, email, first_name and last_name
        value = value.get("email") or value.get("id")
    return id_text(key, value, _NO_USER)


def _labels(key: str, value: Mapping[str, Any], record: Record) -> list[str]:
    for name in ("choices", "text", "rating", "number", "selected", "taxonomy"):
        if name in value:
            return label_texts(key, _paths(as_list(value[name])))
    raise BadValue(key, value, "is not a choice, rating or number, which crowdzoo reads as labels.")


def _paths(labels: list[Any], joint: str = " / ") -> list[Any]:
    """Labels as text; labels of a tree are lists of names."""
    return [joint.join(map(str, label)) if isinstance(label, list) else label for label in labels]


def _spans(key: str, value: Mapping[str, Any], record: Record) -> list[dict[str, Any]]:
    labels = next((value[name] for name in _LABELS if name in value), None)
    ends = value.get(_OFFSETS)  # for HyperText, whose start and end are paths of elements
    start, end = ((ends if isinstance(ends, dict) else value).get(name) for name in ("start", "end"))
    of = "text" if ends is None else "page"
    if "startOffset" in value and ends is None and str(start).isdecimal():
        start, end, of = *_in_paragraphs(key, value, record.data), "paragraphs"
    if isinstance(start, str):
        raise BadValue(key, value, f"has no {_OFFSETS}. Export again from a newer Label Studio.")
    if not isinstance(labels, list) or type(start) is not int or type(end) is not int:
        raise BadValue(key, value, "is not a span of a text with start, end and labels.")
    about = {"text": value.get("text"), "place": f"{key}.text", "of": of}
    return [{"start": start, "end": end, "label": label, **about} for label in _paths(labels, "/")]


def _in_paragraphs(key: str, value: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[int, int]:
    """Start and end in the text of paragraphs joined by line breaks; offsets within a paragraph are in UTF-16."""
    paragraphs = [texts for each in data.values() if (texts := _paragraphs(each))]
    if len(paragraphs) != 1:
        reason = f"is in paragraphs, and the task has {len(paragraphs)} lists of objects with a 'text'. Keep one."
        raise BadValue(key, value, reason)
    ends = []
    for side in ("start", "end"):
        number, offset = str(value.get(side)), value.get(f"{side}Offset")
        if not number.isdecimal() or int(number) >= len(paragraphs[0]) or type(offset) is not int or offset < 0:
            raise BadValue(key, value, f"is outside of the {len(paragraphs[0])} paragraphs of the task.")
        before, inside = paragraphs[0][: int(number)], paragraphs[0][int(number)].encode("utf-16-le", "surrogatepass")
        ends.append(sum(map(len, before)) + len(before) + len(inside[: 2 * offset].decode("utf-16-le", "replace")))
    return ends[0], ends[1]


def _min_questions(entry: Mapping[str, Any]) -> list[str]:
    """Questions of a JSON-MIN entry: the keys between the task's id and the annotator."""
    keys = list(entry)
    begin = keys.index("id") + 1 if "id" in entry else 0
    end = keys.index("annotator") if "annotator" in entry else len(keys)
    return keys[begin:end]


def _min_data(entry: Mapping[str, Any]) -> dict[str, Any]:
    names = [*_min_questions(entry), "id", *_AFTER]
    return {name: value for name, value in entry.items() if name not in names}


def _min_values(value: Any) -> list[Any]:
    """Expand shortened values of JSON-MIN to objects: a single choice is only its name."""
    return [{"value": {"choices": [one]} if isinstance(one, (str, int, float)) else one} for one in as_list(value)]


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
    pairs=_pairs,
)
