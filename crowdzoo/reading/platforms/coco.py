"""COCO: categories and regions of images, one file per annotator; or one file whose annotations have an `annotator`.

In one file, the field `annotators` of an image names those who saw it, even if they marked nothing. Keypoints are
points.

The format: https://cocodataset.org/#format-data, as written by CVAT:
https://docs.cvat.ai/docs/dataset_management/formats/format-coco/.
"""

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

from crowdzoo.errors import BadRow, DataError, DataWarning
from crowdzoo.files.text import shown
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.image_entry import ON_IMAGES, SKELETONS, image_regions
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.platform import Platform

_MENU = "Export each annotator's job as 'COCO 1.0'; give a folder of the files, each named after its annotator."
_PARTS = ("images", "annotations", "categories")


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield images with their positions in the list, each with its annotations."""
    entries = [entry for _, entry in islice(json_records(file), 2)]
    if not entries:
        raise DataError(f"{file.name}: holds no entries of COCO. {_MENU}")
    entry = entries[0]
    if not isinstance(entry, dict) or not all(isinstance(entry.get(part), list) for part in _PARTS):
        yield 1, entry  # from another platform, or none
        return
    if len(entries) > 1:
        raise DataError(f"{file.name}: holds more than one object. Write each export into a file of its own.")
    images = _by_id(file, "images", entry["images"], "file_name")
    names = _by_id(file, "categories", entry["categories"], "name")
    is_shared = any(isinstance(region, dict) and "annotator" in region for region in entry["annotations"])
    if is_shared and not all("annotators" in image for image in images.values()):
        warnings.warn(
            f"{file.name}: give each image 'annotators': all who saw it, also who marked nothing.", DataWarning, 2
        )
    images_by_id: dict[int, dict[str, Any]] = {
        key: {"image": image["file_name"], "tags": [], "shapes": 0, "size": [image.get("height"), image.get("width")],
              "attributes": 0, "left_out": [], "of": str(key), "image_id": key,
              "marked": {str(who): [] for who in image.get("annotators", () if is_shared else [""])}}
        for key, image in images.items()
    }  # fmt: skip
    for place, annotation in enumerate(entry["annotations"], start=1):
        where = annotation if isinstance(annotation, dict) else {}
        if is_shared and not where.get("annotator"):
            yield place, BadRow(file.name, place, "annotations.annotator", "", "is missing, and others have it.")
            continue
        for key, known in (("image_id", images), ("category_id", names)):
            if type(where.get(key)) is not int or where[key] not in known:
                reason = f"is the id of no {'image' if known is images else 'category'} of the file."
                yield place, BadRow(file.name, place, f"annotations.{key}", shown(where.get(key)), reason)
                if known is names:  # an unreadable region, so that its image does not count as empty
                    images_by_id[where["image_id"]]["marked"].setdefault(str(where.get("annotator", "")), []).append({})
                break
        else:
            attributes, who = where.get("attributes"), str(where.get("annotator", ""))
            tag = {
                "annotator": who,
                "label": names[where["category_id"]]["name"],
                "attributes": attributes if isinstance(attributes, dict) else {},
            }
            image, regions = images_by_id[where["image_id"]], regions_of(where, names[where["category_id"]])
            image["tags"].append(tag)
            image["marked"].setdefault(who, []).extend(regions)
            points, box = sum("point" in region for region in regions), where.get("bbox")
            image["left_out"] += [SKELETONS] * (points > 1)
            image["left_out"] += ["boxes of keypoints"] * (0 < points == len(regions) and _has_area(box))
            image["left_out"] += ["annotations without a marked keypoint"] * (not regions)
    yield from enumerate(images_by_id.values(), start=1)


def _by_id(file: ExportFile, part: str, values: list[Any], name: str) -> dict[int, Any]:
    for place, value in enumerate(values, start=1):
        seen_by = value.get("annotators", []) if isinstance(value, dict) else None
        if not isinstance(seen_by, list) or type(value.get("id")) is not int or name not in value:
            reason = f"is not an object with id (an integer) and {name}; annotators, if any, are a list."
            row = BadRow(file.name, place, part, shown(value), reason)
            raise DataError(f"{file.name}: {part} cannot be used.", [row])
    return {value["id"]: value for value in values}


def regions_of(annotation: dict[str, Any], category: dict[str, Any]) -> list[dict[str, Any]]:
    """Regions of an annotation: its keypoints, and its mask or polygons; or its box.

    A marked keypoint is a point of the class "category.name", or "category" if both are the same. Without marked
    keypoints and a box with an area, there is no region.
    """
    about = {"category": category["name"], "category_id": annotation["category_id"]}
    shape, label, points = annotation.get("segmentation"), category["name"], list[dict[str, Any]]()
    shape = None if shape == [[]] else shape  # written by some tools for a box
    keypoints, names = (
        each if isinstance(each := entry.get("keypoints"), list) else [] for entry in (annotation, category)
    )
    for place, start in enumerate(range(0, len(keypoints), 3)):
        x, y, seen = [*keypoints[start : start + 3], None, None][:3]
        name = names[place] if place < len(names) else place + 1
        if seen != 0:
            own = about if name == label else {"category": f"{label}.{name}"}
            points.append({**own, "point": [x, y]})
    if isinstance(shape, dict):
        return [*points, {**about, "counts": shape.get("counts"), "size": shape.get("size")}]
    if shape or not (points or (keypoints and not _has_area(annotation.get("bbox")))):
        return [*points, {**about, **({"polygons": shape} if shape else {"bbox": annotation.get("bbox")})}]
    return points


def _has_area(box: Any) -> bool:
    return isinstance(box, list) and len(box) == 4 and all(box[2:])


COCO = Platform(
    name="coco",
    title="COCO",
    suffixes=(".json",),
    menu=_MENU,
    records=_records,
    **ON_IMAGES,
    regions=image_regions,
)
