"""region_record: reads the regions of an image from an entry of an export."""

from collections.abc import Mapping
from typing import Any

from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record


def region_record(
    platform: Platform, sizes: dict[str, Any], entry: Mapping[str, Any], question: str, spans: bool, annotator: str
) -> Record:
    """Read the regions of an image as text, one answer per annotator.

    Args:
        platform: platform of the export.
        sizes: sizes of previous images by task, each with an annotator; updated with this image.
        entry: entry of the export.
        question: name of the question; "" for all regions.
        spans: not used.
        annotator: annotator of the file.

    Returns:
        The record; its attribute `bad` contains answers with invalid shapes, with annotator, region and value.

    Raises:
        ConfigError: regions are not supported for the platform.
    """
    if platform.regions is None:
        fix = "Write them as a table (docs/platforms.md has code), or as files of COCO, for"
        coco = Setting("platform", "coco")
        raise ConfigError(f"crowdzoo does not read regions of {platform.title}. {fix} {coco}.", fix=coco)
    record, size, marked = platform.regions(entry, question)
    for name, regions, *seconds in marked:
        who = annotator if name == "" else name
        try:
            image = MarkedImage.of(size, regions, entry.get("image_id"))
            first, first_annotator = sizes.setdefault(record.task, (size, who))
            if [*first] != [*size]:
                raise DataError(
                    f"has {size[0]} x {size[1]} pixels, {first[0]} x {first[1]} by {first_annotator!r}. Correct one."
                )
            record.add(who, [image.text], "", *seconds)
            record.images.append(image)
        except DataError as error:
            record.bad.append(BadValue(None, record.task, f"of annotator {who or 'gold'!r}: {error}"))
    return record
