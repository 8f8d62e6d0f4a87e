"""Entries of CVAT and COCO alike: an image, its tags, and the shapes that were drawn on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.record import Marked, Record, id_text, label_text

LABEL = "label"
_USUAL = ("occluded", "rotation")  # attributes that tools add


def is_image_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is `{"image": name, "tags": [{"label": ..., "attributes": {...}}, ...], "shapes": number, ...}`.

    It has the `size` of the image, and `marked`: annotator ("": of the file) -> regions; `attributes`: how many of
    shapes there are; `who` annotated it and `of`, what tells images of one name apart, or "".
    """
    return {"image", "tags", "shapes", "of"} <= set(entry)


def image_questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The label, and the attributes, of all tags or of a label's, which are chosen only where they are named."""
    for tag in entry["tags"]:
        yield LABEL, "class"
        for name in tag["attributes"]:
            yield from ((name, "other"), (f"{tag[LABEL]}.{name}", "other"))


def read_image(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    """What an annotator says of an image; one label is counted once, however often it is there."""
    record, values = _record(entry), []
    record.left_out = ["boxes, polygons and other shapes"] * entry["shapes"]
    for tag in entry["tags"]:
        if question == LABEL:
            names = (f"{tag[LABEL]}.{name}" for name in tag["attributes"] if name not in _USUAL)
            record.left_out += [f"attributes of tags, which are read with field={name!r}" for name in names]
            values.append(tag[LABEL])
        else:
            values.append(tag["attributes"].get(question.removeprefix(f"{tag[LABEL]}.")))
    said = dict.fromkeys(text for one in values if (text := label_text(question, one)) is not None)
    record.add(
        entry["who"] or file_annotator, list(said), f"images without {'a tag' if question == LABEL else repr(question)}"
    )
    return record


def image_regions(entry: Mapping[str, Any], question: str) -> Marked:
    """What annotators marked on an image."""
    record = _record(entry)
    record.left_out = ["attributes of shapes"] * entry["attributes"]
    return record, entry["size"], entry["marked"].items()


def _record(entry: Mapping[str, Any]) -> Record:
    image = id_text("image", entry["image"], "is missing. Export again, with the names of the images.")
    return Record(entry.get("task", image), {"image": image})


ON_IMAGES: dict[str, Any] = {"is_own": is_image_entry, "questions": image_questions, "read": read_image}
