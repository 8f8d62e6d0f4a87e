"""Entries shared by CVAT and COCO: an image, its tags, and the shapes drawn on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.errors import Setting
from crowdzoo.reading.platforms.record import Marked, Record, id_text, label_text

LABEL = "label"
SKELETONS = "skeletons, whose points are read without their edges"
_USUAL = ("occluded", "rotation")  # attributes that tools add


def is_image_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is `{"image": name, "tags": [{"label": ..., "attributes": {...}}, ...], "shapes": number, ...}`.

    It has the `size` of the image; `marked`: annotator ("": that of the file) -> regions; `attributes`: number of
    attributes of shapes; `left_out`: other contents of shapes that are not read; and `of`, which distinguishes images
    of the same name, or "". A tag may have an `annotator`.
    """
    return {"image", "tags", "shapes", "of"} <= set(entry)


def image_questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label, and the attributes of all tags or of one label, which are read only if named."""
    for tag in entry["tags"]:
        yield LABEL, "class"
        for name in tag["attributes"]:
            yield from ((name, "other"), (f"{tag[LABEL]}.{name}", "other"))


def read_image(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    """Record of an image's labels; repeated labels count once."""
    record, empty = _record(entry), f"images without {'a tag' if question == LABEL else repr(question)}"
    record.left_out = ["boxes, polygons and other shapes"] * entry["shapes"]
    if question == LABEL:
        names = [f"{tag[LABEL]}.{name}" for tag in entry["tags"] for name in tag["attributes"] if name not in _USUAL]
        record.left_out += [f"attributes of tags, which are read with {Setting('field', name)}" for name in names]
    for who in entry["marked"]:
        labels = dict.fromkeys(_label(tag, question) for tag in entry["tags"] if tag.get("annotator", who) == who)
        record.add(who or file_annotator, [label for label in labels if label is not None], empty)
    return record


def _label(tag: Mapping[str, Any], question: str) -> str | None:
    attribute = question.removeprefix(f"{tag[LABEL]}.")
    return label_text(question, tag[LABEL] if question == LABEL else tag["attributes"].get(attribute))


def image_regions(entry: Mapping[str, Any], question: str) -> Marked:
    """Regions that annotators marked on an image."""
    record = _record(entry)
    num_unusual = sum(name not in _USUAL for tag in entry["tags"] for name in tag["attributes"])
    record.left_out = ["attributes"] * (entry["attributes"] + num_unusual) + entry["left_out"]
    return record, entry["size"], entry["marked"].items()


def _record(entry: Mapping[str, Any]) -> Record:
    image = id_text("image", entry["image"], "is missing. Export again, with the names of the images.")
    return Record(entry.get("task", image), {"image": image})


ON_IMAGES: dict[str, Any] = {"is_own": is_image_entry, "questions": image_questions, "read": read_image}
