"""The folder of a served model: one subfolder per version, named by a number; the largest number is served."""

import os
import shlex
from pathlib import Path

from crowdzoo.errors import ServingError

MAX_VERSION = 2**63 - 1  # TF Serving's versions are int64
WITHDRAWN = "withdrawn"  # subfolder of withdrawn versions, which servers ignore
_MODEL = "saved_model.pb"


def version_number(name: str) -> int | None:
    """The version of a folder with this name, as TensorFlow Serving reads it; None for any other name."""
    if not (name.isascii() and name.isdecimal()):
        return None
    digits = name.lstrip("0") or "0"
    # Python does not convert text of more than 4,300 digits
    return int(digits) if len(digits) < 20 and int(digits) <= MAX_VERSION else None


def version_folders(folder: str | os.PathLike[str]) -> tuple[dict[int, Path], list[str]]:
    """Returns the subfolders named by a version number, complete or not.

    Returns:
        The folders by version, and names that are numbers but not versions: above `MAX_VERSION`, with other digits than
        0 to 9, or other spellings of an existing version ("007" next to "7").

    Raises:
        OSError: the folder cannot be read.
    """
    folders: dict[int, Path] = {}
    refused: list[str] = []
    for child in sorted(Path(folder).iterdir()):
        if not (child.name.isdecimal() and child.is_dir()):
            continue
        version = version_number(child.name)
        if version is None:
            refused.append(child.name)
        elif version in folders:
            refused.append(max(child.name, folders[version].name, key=len))
            folders[version] = min(child, folders[version], key=lambda path: len(path.name))
        else:
            folders[version] = child
    return folders, refused


def complete_versions(folder: str | os.PathLike[str]) -> list[Path]:
    """Returns the versions with a `saved_model.pb`, oldest first; none if the folder does not exist."""
    if not Path(folder).is_dir():
        return []
    folders, _ = version_folders(folder)
    return [path for _, path in sorted(folders.items()) if (path / _MODEL).is_file()]


def newest_version(path: str | os.PathLike[str]) -> Path:
    """Returns the folder of the SavedModel at `path`: `path` itself, or its subfolder with the highest number.

    Raises:
        ServingError: no version.
    """
    path = Path(path)
    if (path / _MODEL).is_file():
        return path
    if path.is_file() and path.suffix == ".keras":
        raise ServingError(
            f"{path}: a saved model, not an exported one. Run `crowdzoo export {shlex.quote(str(path))} FOLDER`, and "
            "use that folder."
        )
    if path.is_file():
        raise ServingError(f"{path}: a file, not the folder of an exported model")
    if not path.exists():
        raise ServingError(f"{path}: the folder does not exist")
    versions = complete_versions(path)
    if not versions:
        raise ServingError(f"{path}: holds no model, neither {_MODEL} nor <version>/{_MODEL}")
    return versions[-1]


def next_version(folder: str | os.PathLike[str]) -> int:
    """Returns the next version, above all versions, complete, withdrawn or not, and all files with such a name."""
    paths = (*Path(folder).glob("*"), *Path(folder, WITHDRAWN).glob("*"))
    numbers = [number for path in paths if (number := version_number(path.name)) is not None]
    return max(numbers, default=0) + 1
