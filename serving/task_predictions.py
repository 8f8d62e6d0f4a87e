"""TaskPredictions: a model's predictions for Label Studio tasks, in the form of the labelling configuration.

The format is described at https://labelstud.io/guide/predictions, and the `value` of tags at https://labelstud.io/tags.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdzoo.data.tags import spans_of
from crowdzoo.errors import CrowdzooError, DataError, short_repr
from crowdzoo.files.served_model import served_name
from crowdzoo.reading.instances.upright_image import upright_image
from crowdzoo.reading.platforms.label_config import Control, read_label_config
from crowdzoo.reading.platforms.shapes import brush_rle
from crowdzoo.serving.json_tensors import read_columns
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.request_error import RequestError

# Output that identifies a model -> kind of the control that it answers, and the control's tags
_ANSWERS = {
    "tags": ("sequence", ("Labels",)),
    "classes": ("region", ("BrushLabels",)),
    "class": ("classification", ("Choices", "Taxonomy")),
    "value": ("regression", ("Rating", "Number")),
}
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_MOST_REFUSED = 100  # tasks that the model rejects, each of which costs several calls
_RLE_BYTES = 5  # bytes of a number of a mask and of its text


class _Task(NamedTuple):
    """A task: position in the request, id, the model's inputs, and its text, or width and height of its image."""

    place: int
    number: str
    inputs: Mapping[str, Any]
    text: bytes = b""
    size: tuple[int, int] = (0, 0)


class TaskPredictions:
    """Predictions for the tasks of one request, from their data only: nothing is fetched.

    Args:
        model: model that predicts.
        label_config: labelling configuration of the project. Predictions are for its first control that fits the model
            and has all its classes.
        limits: limits of requests.

    Raises:
        RequestError: no control fits, or the kind of model is not supported.

    Attributes:
        refused: reasons why tasks have no predictions, one sentence each.
    """

    def __init__(self, model: LoadedModel, label_config: Any, limits: Limits):
        self._model, self._signature, self._limits = model, model.signature(""), limits
        self.refused: list[str] = []
        self._refusals_left, self._rle_left = _MOST_REFUSED, limits.request_memory // _RLE_BYTES
        outputs = self._signature.outputs if model.card else []
        self._answer = next((name for name in _ANSWERS if name in outputs), "")
        if not self._answer or (self._answer == "tags" and "spans" not in model.signatures):
            raise RequestError("the model is not one of crowdzoo for classes, spans, ratings or masks")
        if self._answer == "classes" and model.card.get("images", {}).get("fit") != "stretch":
            raise RequestError("the model must take whole images: export it with ImagePixels(..., fit='stretch')")
        self._control = self._choose_control(label_config)

    def results(self, tasks: object, version: str) -> list[Any]:
        """Returns one prediction per task, as Label Studio stores it; an empty list for tasks without one.

        Args:
            tasks: list of `{"id", "data"}`.
            version: `model_version` of the predictions.

        Raises:
            RequestError: there are no tasks, or none can be predicted.
        """
        if not isinstance(tasks, list) or not tasks:
            raise RequestError("'tasks' must be a list of at least one task")
        readable = []
        for place, task in enumerate(tasks):
            task = task if isinstance(task, dict) else {}
            number = short_repr(task.get("id"))
            try:
                readable.append(self._task(place, number, task.get("data")))
            except (RequestError, CrowdzooError, ValueError) as error:
                self.refused.append(f"task {number}: {error}")
        predictions = dict(self._predictions(readable))
        if not predictions:
            raise RequestError(self.refused[0])
        return [{**predictions[i], "model_version": version} if i in predictions else [] for i in range(len(tasks))]

    def _choose_control(self, label_config: Any) -> Control:
        (kind, tags), classes = _ANSWERS[self._answer], self._model.card.get("classes") or []
        if self._answer == "tags":
            classes = sorted({name[2:] for name in classes} - {""})
        elif self._answer == "classes":
            classes = classes[1:]  # the first is the background
        try:
            controls = read_label_config(label_config if isinstance(label_config, str) else "")
        except DataError as error:
            raise RequestError(str(error)) from None
        for control in controls:
            is_kind = control.kind == kind and control.tag.lower() in map(str.lower, tags)
            is_text = {name.lower() for name in control.objects} == {"text"}  # others count characters differently
            has_classes = not control.classes or {*classes} <= {*control.classes}
            if is_kind and has_classes and control.data_keys and (is_text or self._answer != "tags"):
                return control
        tags_text = f"{' or '.join(tags)}{' of a Text' if self._answer == 'tags' else ''}"
        named = f" with the classes {', '.join(map(short_repr, classes))}" if classes else ""
        raise RequestError(f"labelling configuration: has no {tags_text}{named}, which the model answers")

    def _task(self, place: int, number: str, data: Any) -> _Task:
        """Reads inputs by their names in the data; a single missing one from the data of the control's object."""
        if not isinstance(data, dict):
            raise RequestError("has no object 'data'")
        specs, key = self._signature.inputs, self._control.data_keys[0]
        if len(specs) > 1:  # columns of a table, in which missing values are empty
            cells = {served_name(name): value for name, value in data.items() if value not in (None, "")}
            missing = {name: "" if spec.dtype == "string" else np.nan for name, spec in specs.items()}
            return _Task(place, number, {name: cells.get(name, missing[name]) for name in specs})
        ((name, spec),) = specs.items()
        value = data.get(name, data.get(key))
        if spec.dtype != "string":
            return _Task(place, number, {name: value})
        if not isinstance(value, str):
            raise RequestError(f"{key!r} of its data is not a text")
        if "images" not in self._model.card:
            if _ADDRESS.fullmatch(value):
                raise RequestError(f"{key!r} is an address, and this server fetches nothing: import the text itself")
            return _Task(place, number, {name: value}, value.encode())
        kind, _, content = value.partition(";base64,")
        if not kind.startswith("data:image/"):
            raise RequestError(f"{key!r} is not 'data:image/...;base64,...', and this server fetches nothing")
        image = upright_image(base64.b64decode(content, validate=True), whole=False)
        return _Task(place, number, {name: {"b64": base64.b64encode(image.content).decode()}}, b"", image.size)

    def _predictions(self, tasks: Sequence[_Task]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and prediction of each task; if the model rejects some, batches are halved until these are found."""
        if not tasks:
            return
        try:
            columns = {name: [task.inputs[name] for task in tasks] for name in self._signature.inputs}
            outputs = self._signature(read_columns(columns, self._signature), self._limits)
        except RequestError as error:
            if len(tasks) > 1:
                yield from self._predictions(tasks[: len(tasks) // 2])
                yield from self._predictions(tasks[len(tasks) // 2 :])
                return
            self.refused.append(f"task {tasks[0].number}: {error}")
            self._refusals_left -= 1
            if not self._refusals_left:
                raise RequestError(f"{_MOST_REFUSED} tasks are refused; {self.refused[-1]}") from None
            return
        control = self._control
        about = {"from_name": control.name, "to_name": control.to_name[0], "type": control.tag.lower()}
        for row, task in enumerate(tasks):
            values, score = self._values({name: array[row] for name, array in outputs.items()}, task)
            result = [{"id": f"crowdzoo-{number}", **about, **value} for number, value in enumerate(values)]
            yield task.place, {"result": result, **({} if score is None else {"score": float(score)})}

    def _values(self, outputs: Mapping[str, Any], task: _Task) -> tuple[list[dict[str, Any]], Any]:
        """The `value` of each result, and the score of the prediction."""
        tag = self._control.tag.lower()
        if self._answer == "tags":
            return _spans(outputs, task.text)
        if self._answer == "classes":
            masks = _masks(outputs, task.size)
            self._rle_left -= sum(len(mask["value"]["rle"]) for mask in masks)
            if self._rle_left < 0:
                raise RequestError("the masks take more memory than one request may; choose fewer tasks", "TOO_LARGE")
            return masks, outputs["probabilities"].max(axis=-1).mean()
        if self._answer == "class":
            label = outputs["class"].decode()
            value = {"taxonomy": [label.split(" / ")]} if tag == "taxonomy" else {"choices": [label]}
            return [{"value": value}], outputs["probabilities"].max()
        low, high = np.array(self._control.limits, np.float64)  # NaN for no limit
        number = float(np.fmax(np.fmin(outputs["value"], high), low))
        return [{"value": {tag: round(number) if tag == "rating" else number}}], None


def _spans(outputs: Mapping[str, Any], text: bytes) -> tuple[list[dict[str, Any]], Any]:
    """Spans in characters, with the mean score of their tokens, and the lowest score of all tokens."""
    tags, scores = (outputs[name][: outputs["lengths"]].tolist() for name in ("tags", "scores"))
    # number of characters before each byte of UTF-8; continuation bytes begin with the bits 10
    characters = np.cumsum(np.append(0, np.frombuffer(text, np.uint8) & 0xC0 != 0x80))
    results = []
    for label, first, end in spans_of([tag.decode() for tag in tags], "IOBES"):
        place = slice(int(outputs["starts"][first]), int(outputs["ends"][end - 1]))
        start, stop = characters[[place.start, place.stop]].tolist()
        value = {"start": start, "end": stop, "text": text[place].decode(), "labels": [label]}
        results.append({"value": value, "score": float(np.mean(scores[first:end]))})
    return results, min(scores, default=1.0)


def _masks(outputs: Mapping[str, Any], size: tuple[int, int]) -> list[dict[str, Any]]:
    """A mask for each class but the background, in the size of the image."""
    codes, sides = outputs["label"], size[::-1]
    places = [((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(sides, codes.shape, strict=True)]
    about = {"original_width": size[0], "original_height": size[1], "image_rotation": 0}
    labels = {code: name.decode() for code, name in enumerate(outputs["classes"]) if code and (codes == code).any()}
    masks = {code: brush_rle((codes == code)[np.ix_(*places)]) for code in labels}
    values = ({"format": "rle", "rle": masks[code], "brushlabels": [label]} for code, label in labels.items())
    return [{**about, "value": value} for value in values]
