"""Options with which an export of a labelling platform is read beside a folder of images."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def named_by_image(options: Mapping[str, Any], instances: str | Path) -> dict[str, Any]:
    """Has tasks of an export named after their images where the instances are a folder of these.

    Args:
        options: of `crowdzoo.Annotations.read`.
        instances: path of the instances.

    Returns:
        The options, with `image` where it is needed.
    """
    if options.get("platform") is None or not Path(instances).is_dir():
        return dict(options)
    return {**options, "image": options.get("image") or True}
