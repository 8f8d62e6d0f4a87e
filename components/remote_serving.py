"""A serving folder in an object store: its baseline, and adding a version.

A store has no rename and no lock. So the file that makes a folder a version, `saved_model.pb`, is written last, and
users must not start two pushes at the same time.
"""

import tempfile
import time
from pathlib import Path

from crowdzoo.components.remote_files import fetch, remote_files, upload
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.errors import PipelineError
from crowdzoo.files.version_folders import MAX_VERSION, version_number

_MODEL = "saved_model.pb"


def remote_versions(uri: str) -> list[str]:
    """URIs of the complete versions in a serving folder, oldest first.

    Raises:
        DataError: the store cannot be accessed.
    """
    return [version for _, version in sorted(_version_uris(uri, f"*/{_MODEL}").items())]


def _version_uris(uri: str, pattern: str) -> dict[int, str]:
    """URIs of the folders of versions that have a file matching the pattern, by version number."""
    folder = uri.rstrip("/")
    names = {file.removeprefix(f"{folder}/").split("/")[0] for file in remote_files(f"{folder}/{pattern}")}
    return {number: f"{folder}/{name}" for name in names if (number := version_number(name)) is not None}


def remote_baseline(candidate: str | Path, uri: str, place: str | Path) -> str | None:
    """Copies the baseline of a candidate (see `baseline_of`) to this machine.

    Args:
        candidate: folder of a SavedModel.
        uri: the serving folder.
        place: an empty folder, which receives the version under its name.

    Returns:
        The path of the copy, or None where nothing else was pushed.
    """
    digest = fingerprint(candidate)
    for version in reversed(remote_versions(uri)):
        copy = Path(place, version.rsplit("/", 1)[1])
        fetch(version, copy)
        if fingerprint(copy) != digest:
            return str(copy)
    return None


def push_remote_version(model: str | Path, uri: str) -> str:
    """Copies a model into a serving folder as its newest version.

    Args:
        model: folder of a SavedModel.
        uri: the serving folder.

    Returns:
        URI of the version's folder. A model that already is the newest version is not copied again.

    Raises:
        DataError: the store cannot be accessed.
        PipelineError: the store cannot be written to, or no version number is left.
    """
    versions = remote_versions(uri)
    if versions:
        with tempfile.TemporaryDirectory() as folder:
            fetch(versions[-1], Path(folder, "newest"))
            if fingerprint(Path(folder, "newest")) == fingerprint(model):
                return versions[-1]
    # also above incomplete versions of interrupted pushes
    number = max(int(time.time()), max(_version_uris(uri, "**"), default=0) + 1)
    if number > MAX_VERSION:
        raise PipelineError(f"{uri}: no version number is left above {number - 1}. Remove that version.")
    version = f"{uri.rstrip('/')}/{number}"
    upload(model, version, last=_MODEL)
    return version
