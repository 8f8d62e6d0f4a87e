"""region_record: what an entry of an export says of the regions of one image."""

from collections.abc import Mapping
from typing import Any

from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record


def region_record(
    platform: Platform, sizes: dict[str, Any], entry: Mapping[str, Any], question: str, spans: bool, annotator: str
) -> Record:
    """The regions of an image as text, one answer per annotator.

    Args:
        platform: of the export.
        sizes: of the images so far, by task, with an annotator; gets this one's.
        entry: of it.
        question: name of the question; "" where all regions are meant.
        spans: not for regions.
        annotator: who annotated the file.

    Returns:
        The record; what is `bad` in it are answers with a shape that cannot be, each with annotator, region and value.

    Raises:
        ConfigError: the platform has no regions.
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
