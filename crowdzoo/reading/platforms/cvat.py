"""CVAT: tags of images in its own XML, one file an annotator.

The format: https://docs.cvat.ai/docs/other/xml_format.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from xml.parsers import expat

from crowdzoo.errors import BadRow, DataError
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.image_entry import image_questions, is_image_entry, read_image
from crowdzoo.reading.platforms.platform import Platform

_BLOCK = 1 << 16
_MENU = (
    "Export each annotator's job as 'CVAT for images 1.1'; give a folder of the files, each named after its annotator."
)


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Images with the lines on which they begin."""
    images = _Images(file.name)
    with file.open() as stream:
        while block := stream.read(_BLOCK):
            yield from images.read(block)
        yield from images.read(b"", final=True)


class _Images:
    """Images of a document, which is parsed in blocks. A document type is refused, and with it every entity."""

    def __init__(self, name: str):
        self.name = name
        self.found: list[tuple[int, dict[str, Any] | BadRow]] = []
        self.image: dict[str, Any] | None = None
        self.tag: dict[str, Any] | None = None
        self.attribute: str | None = None
        self.text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.StartDoctypeDeclHandler = self.doctype

    def read(self, block: bytes, final: bool = False) -> list[tuple[int, dict[str, Any] | BadRow]]:
        """The images that end in a block."""
        self.found = []
        try:
            self.parser.Parse(block, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self.name}, row {error.lineno}: is not XML: {reason}. Export it again.") from None
        except (ValueError, LookupError) as error:  # an encoding that Python does not know
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
            self.image, self.tag = {"image": attributes.get("name"), "tags": [], "shapes": 0}, None
        elif self.image is None:
            return
        elif element == "tag":
            self.tag = {"label": attributes.get("label"), "attributes": {}}
            self.image["tags"].append(self.tag)
        elif element == "attribute":
            self.attribute = attributes.get("name")
        else:
            self.image["shapes"] += 1

    def end(self, element: str) -> None:
        if element == "attribute" and self.tag is not None and self.attribute is not None:
            self.tag["attributes"][self.attribute] = "".join(self.text).strip()
        elif element == "tag":
            self.tag = None
        elif element == "image" and self.image is not None:
            self.found.append((self.line, self.image))
            self.image = None


CVAT = Platform(
    name="cvat",
    title="CVAT",
    suffixes=(".xml",),
    menu=_MENU,
    records=_records,
    is_own=is_image_entry,
    questions=image_questions,
    read=read_image,
)
