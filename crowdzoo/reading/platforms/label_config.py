"""read_label_config: reads the questions of a labelling configuration of Label Studio."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

from crowdzoo.data.numbers import parse_number
from crowdzoo.errors import DataError

_KINDS = {
    **dict.fromkeys(("choices", "taxonomy"), "classification"), **dict.fromkeys(("rating", "number"), "regression"),
    **dict.fromkeys(("pairwise", "ranker"), "preference"), "textarea": "free-text",
    **dict.fromkeys(("labels", "hypertextlabels", "paragraphlabels"), "sequence"),
}  # fmt: skip
TEXTS = {"text", "hypertext", "paragraphs"}  # tags of objects, in lower case
_SHAPES = ("rectangle", "polygon", "ellipse", "brush", "bitmask", "keypoint")
_MARKING = ("choices", "taxonomy", "labels")  # their kind depends on what they mark
_CLASSES = ("choice", "label", "bucket")
_KEY = re.compile(r"\$([\w\[\].{}]+)")  # a key in the data of a task
_FIX = "Copy it again from Settings, Labeling Interface, Code."


@dataclass(frozen=True)
class Control:
    """A control tag of a labelling configuration: one question to annotators.

    Attributes:
        name: name of the question, `from_name` in its results.
        tag: tag in the configuration, such as "Choices".
        kind: kind of its labels, as for `--kind`; None if crowdzoo does not read them.
        classes: values as stored in results: aliases replace values, paths of a taxonomy are "a / b" ("a/b" if it
            labels spans), and buckets have their names; empty if answers are free or come from the data of tasks.
        to_name: names of its objects.
        objects: tags of its objects, such as "Text".
        data_keys: keys of the data of a task that its objects show: "text" for `$text`.
        multiple: whether an answer may have several classes.
        limits: lowest and highest number, None without a limit.
    """

    name: str
    tag: str
    kind: str | None
    classes: tuple[str, ...]
    to_name: tuple[str, ...]
    objects: tuple[str, ...]
    data_keys: tuple[str, ...]
    multiple: bool
    limits: tuple[float | None, float | None]


def read_label_config(xml: str) -> tuple[Control, ...]:
    """Read the controls of a labelling configuration, in its order.

    Args:
        xml: the configuration, which is `label_config` of a project.

    Raises:
        DataError: not XML, or with a document type, which allows entities.

    Source:
        https://labelstud.io/tags.

    Example:
        >>> from crowdzoo.reading.platforms.label_config import read_label_config
        >>> stars = '<View><Text name="t" value="$text"/><Rating name="stars" toName="t" maxRating="4"/></View>'
        >>> read_label_config(stars)[0].limits
        (1.0, 4.0)
    """
    config = _Config()
    try:
        config.parser.Parse(xml, True)
    except expat.ExpatError as error:
        reason = f", row {error.lineno}: is not XML: {expat.ErrorString(error.code)}"
    except UnicodeEncodeError:
        reason = ": holds half a character"
    else:
        return tuple(map(config.control, config.controls))
    raise DataError(f"labelling configuration{reason}. {_FIX}")


class _Config:
    """Elements of a configuration; Label Studio ignores the case of names and attributes."""

    def __init__(self) -> None:
        self.controls: list[tuple[str, Mapping[str, str]]] = []
        self.objects: dict[str, tuple[str, str]] = {}  # name -> tag and value
        self.classes: dict[str, dict[str, bool]] = {}  # control -> class -> whether it has subclasses
        self.path: list[tuple[str, Mapping[str, str]]] = []  # of open elements
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = lambda _: self.path.pop()
        self.parser.StartDoctypeDeclHandler = self.doctype

    def doctype(self, *_: object) -> None:
        raise DataError(f"labelling configuration: has a document type (<!DOCTYPE ...>). Leave it out. {_FIX}")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        own = {name.lower(): value for name, value in attributes.items()}
        self.path.append((tag, own))
        if tag.lower() in _CLASSES:
            self.add_class()
        elif own.get("name") and own.get("toname") and tag.lower() != "filter":
            self.controls.append((tag, own))
        elif own.get("name"):
            self.objects[own["name"]] = (tag, own.get("value") or own.get("valuelist") or "")

    def add_class(self) -> None:
        """Add the class of the open element to the control around it."""
        names: list[str] = []
        for tag, own in reversed(self.path):
            if tag.lower() in _CLASSES:
                names.append(own.get("alias") or own.get("value") or own.get("name") or "")
            elif own.get("name") and own.get("toname"):
                is_tree = tag.lower() == "taxonomy" or own.get("allownested") == "true"
                joint = "/" if own.get("labeling") == "true" else " / "  # labels of spans have no white space
                paths = [joint.join(names[place:][::-1]) for place in range(len(names) if is_tree else 1)]
                if all(names):
                    self.classes.setdefault(own["name"], {}).update(dict.fromkeys(paths[1:], True))
                    self.classes[own["name"]].setdefault(paths[0], False)
                return

    def control(self, element: tuple[str, Mapping[str, str]]) -> Control:
        tag, own = element
        name, word = own["name"], tag.lower()
        to_name = tuple(each.strip() for each in own["toname"].split(","))
        shown = [self.objects[each] for each in to_name if each in self.objects]
        per_region = own.get("perregion") == "true" or own.get("labeling") == "true"
        kind = "region" if word.removesuffix("labels") in _SHAPES and word.endswith("labels") else _KINDS.get(word)
        if word == "labels" or (per_region and word in _MARKING):
            kind = self.marked(to_name, [each.lower() for each, _ in shown])
        elif per_region or own.get("peritem") == "true" or (word == "ranker" and name in self.classes):
            kind = None
        only_leaves = own.get("leafsonly") == "true" or (word == "choices" and own.get("allownested") == "true")
        classes = [each for each, more in self.classes.get(name, {}).items() if not (only_leaves and more)]
        low, high = ("1", own.get("maxrating") or "5") if word == "rating" else (own.get("min"), own.get("max"))
        return Control(
            name, tag, kind, ("left", "right") if word == "pairwise" else tuple(classes), to_name,
            objects=tuple(each for each, _ in shown),
            data_keys=tuple(key for _, value in shown for key in _KEY.findall(value)),
            multiple=own.get("choice") == "multiple" or (word == "taxonomy" and own.get("maxusages") != "1"),
            limits=(parse_number("label", low or ""), parse_number("label", high or "")),
        )  # fmt: skip

    def marked(self, to_name: tuple[str, ...], objects: list[str]) -> str | None:
        """Kind of marks on objects: spans of texts, regions of images, or None for others."""
        if objects and {*objects} <= TEXTS:
            return "sequence"
        shapes = [tag.lower().removesuffix("labels") for tag, own in self.controls if own["toname"] in to_name]
        return "region" if objects == ["image"] and {*shapes} & {*_SHAPES} else None
