"""CVAT: tags and regions of images in its XML, by the assignee of the job or the task, or one file per annotator.

The format: https://docs.cvat.ai/docs/other/xml_format.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from xml.parsers import expat

import numpy as np

from crowdzoo.errors import BadRow, CrowdzooError, DataError
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.image_entry import ON_IMAGES, SKELETONS, image_regions
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import Marked
from crowdzoo.reading.platforms.shapes import box, ellipse, named, point_of, rows_mask

_REGIONS = ("box", "polygon", "mask", "ellipse", "points")
_BLOCK = 1 << 16
_MENU = (
    "Export each annotator's job as 'CVAT for images 1.1'; give a folder of the files, each named after its annotator "
    "unless the job has an assignee."
)


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield images with the lines on which they start."""
    images = _Images(file)
    with file.open() if file.encoding is None else file.text() as stream:
        while block := stream.read(_BLOCK):
            yield from images.read(block)
        yield from images.read(b"", final=True)


class _Images:
    """Images of a document, which is parsed in blocks. Document types are rejected, and with them all entities."""

    def __init__(self, file: ExportFile):
        self.name = file.name
        self.found: list[tuple[int, dict[str, Any] | BadRow]] = []
        self.image: dict[str, Any] | None = None
        self.tag: dict[str, Any] | None = None
        self.attribute: str | None = None
        self.skeleton: str | None = None  # label of the open skeleton, around its points
        self.text: list[str] = []
        self.path = ["", ""]  # path of elements before the first image
        self.ids: dict[str, str] = {}  # ids of job and task
        self.people: dict[tuple[str, str], str] = {}  # element and id -> assignee
        self.parser = expat.ParserCreate(None if file.encoding is None else "utf-8")  # else that of the document
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.StartDoctypeDeclHandler = self.doctype

    def read(self, block: bytes, final: bool = False) -> list[tuple[int, dict[str, Any] | BadRow]]:
        """Images that end in a block."""
        self.found = []
        try:
            self.parser.Parse(block, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self.name}, row {error.lineno}: is not XML: {reason}. Export it again.") from None
        except CrowdzooError:  # may be a ValueError
            raise
        except (ValueError, LookupError) as error:  # an encoding unknown to Python
            raise DataError(f"{self.name}: cannot be decoded ({error}). Export it again.") from None
        return self.found

    def doctype(self, *_: Any) -> None:
        raise DataError(f"{self.name}: has a document type (<!DOCTYPE ...>), which no export of CVAT has.")

    def start(self, element: str, attributes: Mapping[str, str]) -> None:
        self.text.clear()
        if element == "track":
            raise DataError(f"{self.name}: holds tracks of a video. {_MENU}")
        if element == "image":
            self.line = self.parser.CurrentLineNumber
            size = [int(text) if (text := attributes.get(key, "")).isdecimal() else text for key in ("height", "width")]
            task = attributes.get("task_id", self.ids.get("task", ""))
            self.who = self.people.get(("job", self.ids.get("job", "")), self.people.get(("task", task), ""))
            self.image, self.tag = {"image": attributes.get("name"), "tags": [], "shapes": 0, "attributes": 0}, None
            self.image |= {"size": size, "marked": {self.who: []}, "of": task, "left_out": []}
        elif self.image is None:
            self.path.append(element)
        elif element == "tag":
            self.tag = {"label": attributes.get("label"), "attributes": {}}
            self.image["tags"].append(self.tag)
        elif element == "attribute":
            self.attribute = attributes.get("name")
            self.image["attributes"] += self.tag is None
        elif self.skeleton is not None:
            if attributes.get("outside") != "1":
                label = f"{self.skeleton}.{attributes.get('label')}"
                self.image["marked"][self.who].append((element, {**attributes, "label": label}))
        else:
            self.image["shapes"] += 1
            if element == "skeleton":
                self.skeleton = attributes.get("label")
                self.image["left_out"].append(SKELETONS)
            elif element in _REGIONS:
                self.image["marked"][self.who].append((element, attributes))
            else:
                self.image["left_out"].append(f"regions of type {element!r}, which are not read")

    def end(self, element: str) -> None:
        text = "".join(self.text).strip()
        if self.image is None:
            self.path.pop()
            if element == "id":
                self.ids[self.path[-1]] = text
            elif element == "username" and self.path[-1] == "assignee" and text:
                self.people[self.path[-2], self.ids.get(self.path[-2], "")] = text
        elif element == "attribute" and self.tag is not None and self.attribute is not None:
            self.tag["attributes"][self.attribute] = text
        elif element == "tag":
            self.tag = None
        elif element == "skeleton":
            self.skeleton = None
        elif element == "image":
            self.found.append((self.line, self.image))
            self.image = None


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    record, size, marked = image_regions(entry, question)
    return record, size, ((who, map(partial(_region, size), _drawn(shapes))) for who, shapes in marked)


def _drawn(shapes: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield shapes, with points that were drawn together as separate elements."""
    for element, has in shapes:
        if element == "points":
            yield from ((element, {**has, "points": point}) for point in has.get("points", "").split(";"))
        else:
            yield element, has


def _region(size: Sequence[int], shape: tuple[str, Mapping[str, str]]) -> dict[str, Any]:
    """Convert an element to a region; boxes and ellipses are rotated about their centres."""
    element, has = shape
    with named(has.get("label"), dict(has)):
        drawn: dict[str, Any]
        if element == "points":
            x, y = map(float, has["points"].split(","))
            return point_of(x, y, has.get("label"))
        if element == "polygon":
            points = has["points"].replace(";", ",").split(",")
            drawn = {"polygons": [[float(number) for number in points]]}
        elif element == "mask":
            place = [int(has[key]) for key in ("left", "top", "width", "height")]
            drawn = rows_mask([int(number) for number in has["rle"].split(",")], place, size)
        else:
            keys = ("cx", "cy", "rx", "ry") if element == "ellipse" else ("xtl", "ytl", "xbr", "ybr")
            first, last = np.array([float(has[key]) for key in keys]).reshape(2, 2)
            degrees = float(has.get("rotation", 0))
            is_box = element == "box"
            drawn = (
                box(first, last - first, size, degrees, (0.5, 0.5)) if is_box else ellipse(first, last, size, degrees)
            )
    return {"category": has.get("label"), **drawn}


CVAT = Platform(
    name="cvat",
    title="CVAT",
    suffixes=(".xml",),
    menu=_MENU,
    records=_records,
    **ON_IMAGES,
    regions=_regions,
)
