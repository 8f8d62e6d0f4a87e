"""Entries of CVAT and COCO alike: an image, its tags, and the shapes that were drawn on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.record import Marked, Record, id_text, label_text

LABEL = "label"


def is_image_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is `{"image": name, "tags": [{"label": ..., "attributes": {...}}, ...], "shapes": number}`.

    That of a platform with regions has the `size` of the image, and `marked`: annotator ("": of the file) -> regions.
    """
    return {"image", "tags", "shapes"} <= set(entry)


def image_questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The label, and the attributes, which are chosen only where they are named."""
    for tag in entry["tags"]:
        yield LABEL, "class"
        yield from ((name, "other") for name in tag["attributes"])


def read_image(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    """What the annotator of a file says of an image; one label is counted once, however often it is there."""
    record = _record(entry)
    record.left_out = ["boxes, polygons and other shapes"] * entry["shapes"]
    values = [tag[LABEL] if question == LABEL else tag["attributes"].get(question) for tag in entry["tags"]]
    said = dict.fromkeys(text for one in values if (text := label_text(question, one)) is not None)
    record.add(file_annotator, list(said), f"images without {'a tag' if question == LABEL else repr(question)}")
    return record


def image_regions(entry: Mapping[str, Any], question: str) -> Marked:
    """What annotators marked on an image."""
    return _record(entry), entry["size"], entry["marked"].items()


def _record(entry: Mapping[str, Any]) -> Record:
    image = id_text("image", entry["image"], "is missing. Export again, with the names of the images.")
    return Record(image, {"image": image})


ON_IMAGES: dict[str, Any] = {"is_own": is_image_entry, "questions": image_questions, "read": read_image}
