"""Zooniverse: the CSV file of a project's or a workflow's classifications, as written by its server Panoptes.

Its columns: https://help.zooniverse.org/next-steps/data-exports. How it writes the answers to each sort of task:
`lib/formatter/csv` of https://github.com/zooniverse/panoptes. What a mark of a drawing holds: `drawing-tools` of
https://github.com/zooniverse/Panoptes-Front-End and, of classifiers from 2.0 on, `drawingTools` of
https://github.com/zooniverse/front-end-monorepo.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crowdzoo.data.numbers import parse_number
from crowdzoo.data.regions import OUTSIDE, mask_tools
from crowdzoo.data.vocabulary import NOT_LOGGED_IN
from crowdzoo.reading.platforms import shapes
from crowdzoo.reading.platforms.csv_records import csv_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record, as_list, id_text, json_cell, label_texts

_NO_LABEL = (None, "", "unknown answer label")  # the last one if the workflow has no such answer (any more)
_EXPORT = "Request a new classification export."
_SUBJECT = {"subject_ids", "subject_data"}  # exports of 2015 have only the second
_FRAME = ".frame"  # between a drawing task and the number of a frame, except the first
_PLACES = ("x", "y", "x_center", "x1", "points", "pathX")  # each mark has one of these keys
# Form of a mark -> its keys; the first match counts. Points have none of `_NO_POINT`, which are keys of other tools
_FORMS = {
    "points": {"points"}, "path": {"pathX", "pathY"}, "rectangle": {"x", "y", "width", "height"},
    "ellipse": {"x", "y", "rx", "ry"}, "circle": {"x", "y", "r"}, "point": {"x", "y"},
}  # fmt: skip
_NO_POINT = {"width", "height", "radius", "spread", "rotation", "angle"}


def _is_own(entry: Mapping[str, Any]) -> bool:
    return {"user_name", "workflow_id", "annotations"} <= entry.keys() and bool(_SUBJECT & entry.keys())


def _group(entry: Mapping[str, Any]) -> str:
    """Workflow and its major version; minor versions only change wording."""
    return f"{entry.get('workflow_id', '')}.{entry.get('workflow_version', '').partition('.')[0]}"


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((question, sort) for question, sort, values in _answers(entry) if values)


def _answers(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield question, sort and values of each task of a row, except tasks about marks."""
    tasks = _parsed(entry, "annotations")
    if not isinstance(tasks, list):
        raise BadValue("annotations", entry["annotations"], f"is not a list of tasks. {_EXPORT}")
    for place, task in enumerate(tasks):
        if not isinstance(task, dict) or not isinstance(task.get("task"), str):
            raise BadValue(f"annotations[{place}]", task, f"is not an object with a task. {_EXPORT}")
        if "markIndex" not in task:
            yield from _of_task(task["task"], task.get("value"))


def _of_task(name: str, value: Any) -> Iterator[tuple[str, str, list[Any]]]:
    values = [each for each in as_list(value) if each is not None]
    objects = [each for each in values if isinstance(each, dict)]
    if len(objects) < len(values) or not values:
        is_number = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
        yield name, "number" if is_number else "class", values
    elif any("task" in each for each in objects):  # a combination
        for each in [each for each in objects if "task" in each]:
            yield from _of_task(str(each["task"]), each.get("value"))
    elif all("choice" in each for each in objects):  # a survey
        yield name, "class", [each["choice"] for each in objects]
        for each in objects:
            answers = each.get("answers")
            for question, answer in answers.items() if isinstance(answers, dict) else ():
                yield f"{name}.{each['choice']}.{question}", "other", as_list(answer)
    elif any({"select_label", "option"} & each.keys() for each in objects):  # menus
        for place, each in enumerate(objects):
            menu = name if len(objects) == 1 else f"{name}.{each.get('select_label') or place}"
            yield menu, "class", [each.get("value") if each.get("label") is None else each["label"]]
    elif any(key in each for each in objects for key in _PLACES):
        frames = dict[int, list[Any]]()
        for each in objects:
            frames.setdefault(each["frame"] if type(each.get("frame")) is int else 0, []).append(each)
        for frame, marks in frames.items():
            yield f"{name}{_FRAME}{frame}" if frame else name, "regions", marks
    else:
        yield name, "other", values


def _parsed(entry: Mapping[str, Any], column: str) -> Any:
    return json_cell(column, entry.get(column) or "{}", f" {_EXPORT}")


def _record(entry: Mapping[str, Any]) -> Record:
    """Record of the subject with its metadata; for several subjects, column names of later ones end in their number."""
    subjects = _parsed(entry, "subject_data")
    if not isinstance(subjects, dict) or not all(isinstance(about, dict) for about in subjects.values()):
        raise BadValue("subject_data", entry["subject_data"], f"is not an object for each subject. {_EXPORT}")
    data = {
        f"{name}{number}" if number > 1 else name: value
        for number, about in enumerate(subjects.values(), start=1)
        for name, value in about.items()
        if name != "retired"
    }
    ids = entry.get("subject_ids", ";".join(subjects))
    return Record(id_text("subject_ids", ids, f"is missing. {_EXPORT}"), data)


def _about(entry: Mapping[str, Any]) -> tuple[str | None, float | None, str | None, Sequence[Any]]:
    """Annotator (None: gold), duration in seconds, time, and sizes of the images."""
    who, address, about = entry.get("user_name"), entry.get("user_ip"), _parsed(entry, "metadata")
    if who in (None, "", NOT_LOGGED_IN):
        who = f"{NOT_LOGGED_IN}-{address}" if address else None
    annotator = id_text("user_name", who, "is missing, and so is user_ip. Keep one of these columns.")
    about = about if isinstance(about, dict) else {}
    start, end = (parse_number("timestamp", str(about.get(key))) for key in ("started_at", "finished_at"))
    seconds = end - start if start is not None and end is not None and end >= start else None
    sizes = about.get("subject_dimensions")
    is_gold = entry.get("gold_standard", "").casefold() in ("true", "t")
    return (None if is_gold else annotator), seconds, entry.get("created_at"), sizes if isinstance(sizes, list) else ()


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    record, (who, seconds, time, _) = _record(entry), _about(entry)
    answers = [values for name, _, values in _answers(entry) if name == question]
    if not answers:
        record.left_out.append(f"classifications that were not asked '{question}'")
        return record
    values = [value for values in answers for value in values if value not in _NO_LABEL]
    labels = label_texts(f"annotations.{question}", values)
    record.add(who, labels, f"classifications without an answer to '{question}'", seconds, time)
    return record


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    """Regions that a volunteer drew on one frame of a subject; empty if the task was asked and has no marks."""
    record, (who, seconds, time, sizes) = _record(entry), _about(entry)
    task, _, frame = question.partition(_FRAME)
    answers = [(name, values) for name, _, values in _answers(entry) if name.partition(_FRAME)[0] == task]
    marks = [mark for name, values in answers if name == question for mark in values]
    size = sizes[int(frame or 0)] if int(frame or 0) < len(sizes) else None
    if not answers:
        record.left_out.append(f"classifications that were not asked '{task}'")
        return record, (), ()
    if not isinstance(size, dict) or not all(size.get(key) for key in ("naturalHeight", "naturalWidth")):
        record.left_out.append("drawings on images whose size the export does not say")
        return record, (), ()
    if not all(isinstance(mark, dict) for mark in marks):
        raise BadValue(f"annotations.{question}", marks, "is not a drawing. Choose a drawing task.")
    pixels = [size["naturalHeight"], size["naturalWidth"]]
    drawn = [mark for mark in marks if _form(mark)]
    record.left_out += ["lines and other marks that are not regions"] * (len(marks) - len(drawn))
    record.left_out += ["answers about marks"] * sum(bool(mark.get("details")) for mark in drawn)
    return record, pixels, [(who, _drawn(record, pixels, drawn), seconds, time)]


def _drawn(record: Record, size: Sequence[int], marks: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield regions of marks, except those that cover nothing of the image, such as accidental clicks."""
    for mark in marks:
        region = _region(size, mark)
        if "counts" in region:
            is_empty = not mask_tools().area({"size": [*size], "counts": region["counts"].encode()})
        else:
            x, y, *sides = region.get("point") or region["bbox"]
            near = -OUTSIDE <= x <= size[1] + OUTSIDE and -OUTSIDE <= y <= size[0] + OUTSIDE
            is_empty = min(sides) <= 0 if sides else not near
        if is_empty:
            record.left_out.append("marks that cover nothing of the image")
        else:
            yield region


def _form(mark: Mapping[str, Any]) -> str:
    """Form of a mark, a key of `_FORMS`; "" if it is not a region."""
    keys = {key.removesuffix("_center") for key, value in mark.items() if value is not None}
    path = mark.get("points", mark.get("pathX"))
    if "displayTime" in mark or mark.get("closed") is False or (isinstance(path, list) and len(path) < 3):
        return ""
    form = next((form for form, needed in _FORMS.items() if needed <= keys), "")
    return "" if form == "point" and keys & _NO_POINT else form


def _region(size: Sequence[int], mark: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a mark to a region in pixels, clipped to the image."""
    tool = next((mark[key] for key in ("toolIndex", "tool_index", "tool") if key in mark), None)
    form, is_new = _form(mark), "tool" not in mark  # classifiers from 2.0
    label = str(mark.get("tool_label") or f"tool {tool}")
    if form == "point":
        return dict(shapes.point_of(mark["x"], mark["y"], label))
    with shapes.named(label, mark):
        drawn: dict[str, Any]
        if form in ("points", "path"):
            points = [(point["x"], point["y"]) for point in mark.get("points", ())]
            path = np.array(points or [*zip(mark["pathX"], mark["pathY"], strict=True)], np.float64)
            return {"category": label, **shapes._turned(path, path[0], 0.0, size)}
        place = np.array([mark[f"{key}_center"] if f"{key}_center" in mark else mark[key] for key in "xy"], np.float64)
        angle = float(mark.get("angle") or 0)
        if form == "rectangle":
            sides = np.array([mark["width"], mark["height"]], np.float64)
            place -= sides / 2 if "x_center" in mark else 0
            if angle % 360 == 0:
                place, last = np.clip([place, place + sides], 0, size[::-1])
                sides = last - place
            drawn = shapes.box(place, sides, size, angle, (0.5, 0.5))
        else:
            radii = [mark["rx"], mark["ry"]] if form == "ellipse" else [mark["r"]] * 2
            drawn = shapes.ellipse(place, radii, size, angle if is_new else -angle)  # old: counter-clockwise
    return {"category": label, **drawn}


PANOPTES = Platform(
    name="panoptes",
    title="Zooniverse",
    suffixes=(".csv",),
    menu="On the page Data Exports of the project's Lab request a classification or workflow export.",
    records=csv_records,
    is_own=_is_own,
    questions=_questions,
    read=_read,
    columns={"task": "subject_ids", "annotator": "user_name"},
    regions=_regions,
    group=_group,
    groups="workflow",
)
