"""Which image of TensorFlow Serving reads a model."""

from __future__ import annotations

import json
import re
from pathlib import Path

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.served_model import MODEL_CARD_FILE

# TensorFlow -> the last release of TensorFlow Serving with that TensorFlow, as PyPI has its `tensorflow-serving-api`
_RELEASES = {
    "2.16": "2.16.1", "2.17": "2.17.1", "2.18": "2.18.1", "2.19": "2.19.1", "2.20": "2.20.0", "2.21": "2.21.0",
}  # fmt: skip


def image_for(version: str) -> str:
    """The image that reads models of this version of TensorFlow.

    Args:
        version: such as "2.16.2".

    Returns:
        Name and tag, such as "tensorflow/serving:2.16.1".

    Raises:
        ConfigError: no version, or no release of TensorFlow Serving is known for it.
    """
    found = re.match(r"(\d{1,4}\.\d{1,4})(\.|$)", version, re.ASCII)
    if found is None:
        raise ConfigError(f"TensorFlow {short_repr(version)}: is not a version such as 2.16.2.")
    if found[1] not in _RELEASES:
        raise ConfigError(
            f"no release of TensorFlow Serving is known here for TensorFlow {found[1]}: name an image that is not "
            "older than it."
        )
    return f"tensorflow/serving:{_RELEASES[found[1]]}"


def tensorflow_of(version_folder: Path) -> str | None:
    """The version of TensorFlow that a model's card names; None where there is no card that does."""
    try:
        card = json.loads((version_folder / MODEL_CARD_FILE).read_text("utf-8"))
        found = card["software"]["tensorflow"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # another exporter's model
        return None
    return found if isinstance(found, str) else None
