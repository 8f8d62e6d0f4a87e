"""Which image of TensorFlow Serving reads a model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.served_model import MODEL_CARD_FILE

__all__ = ["image_for", "installed_tensorflow", "tensorflow_of"]

# TensorFlow -> the last release of TensorFlow Serving with that TensorFlow, as PyPI has its `tensorflow-serving-api`
_RELEASES = {
    "2.16": "2.16.1", "2.17": "2.17.1", "2.18": "2.18.1", "2.19": "2.19.1", "2.20": "2.20.0", "2.21": "2.21.0",
}  # fmt: skip
_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos")


def image_for(versions: Iterable[str], *, gpu: bool = False) -> str:
    """The image that reads models of these versions of TensorFlow: that of the newest among them.

    Args:
        versions: versions of TensorFlow that the models were exported with, such as "2.16.2".
        gpu: the image with CUDA.

    Returns:
        Name and tag, such as "tensorflow/serving:2.16.1".

    Raises:
        ConfigError: no version, or no release of TensorFlow Serving is known for one.
    """
    numbers = sorted((_minor(version) for version in versions), key=lambda minor: [int(n) for n in minor.split(".")])
    if not numbers:
        raise ConfigError("the TensorFlow that the models were exported with is not known: name it, or an image.")
    if numbers[-1] not in _RELEASES:
        raise ConfigError(
            f"no release of TensorFlow Serving is known here for TensorFlow {numbers[-1]}: name an image that is not "
            "older than it."
        )
    return f"tensorflow/serving:{_RELEASES[numbers[-1]]}{'-gpu' if gpu else ''}"


def tensorflow_of(version_folder: Path) -> str | None:
    """The version of TensorFlow that a model's card names; None where there is no card that does."""
    try:
        card = json.loads((version_folder / MODEL_CARD_FILE).read_text("utf-8"))
        found = card["software"]["tensorflow"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # another exporter's model
        return None
    return found if isinstance(found, str) else None


def installed_tensorflow() -> str | None:
    """The version of TensorFlow that is installed here, found without importing it."""
    for package in _PACKAGES:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _minor(version: str) -> str:
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdecimal() and len(part) < 5 for part in parts[:2]):
        raise ConfigError(f"TensorFlow {short_repr(version)}: is not a version such as 2.16.2.")
    return f"{int(parts[0])}.{int(parts[1])}"
