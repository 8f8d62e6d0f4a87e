"""The folder of pushed models: one subfolder a version, named by a number; the largest number is served."""

import hashlib
from pathlib import Path

__all__ = ["MAX_VERSION", "baseline_of", "fingerprint", "version_number", "versions"]

MAX_VERSION = 2**63 - 1


def version_number(name: str) -> int | None:
    """The version that a folder of this name is, as TensorFlow Serving reads it; None for any other name."""
    if not (name.isascii() and name.isdecimal()):
        return None
    number = int(name)
    return number if number <= MAX_VERSION else None


def versions(folder: str | Path) -> list[Path]:
    """Complete versions in a serving folder, oldest first.

    Args:
        folder: as TensorFlow Serving reads it: `<folder>/<version>/saved_model.pb`. Need not exist.
    """
    found = (path.parent for path in Path(folder).glob("*/saved_model.pb"))
    numbered = ((version_number(path.name), path) for path in found)
    return [path for _, path in sorted((number, path) for number, path in numbered if number is not None)]


def fingerprint(model: str | Path) -> str:
    """Hash of the names and contents of all files below a folder: equal for a model and its copies."""
    digest = hashlib.sha256()
    root = Path(model)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        content = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                content.update(block)
        digest.update(f"{path.relative_to(root).as_posix()}\0{content.hexdigest()}\n".encode())
    return digest.hexdigest()[:32]


def baseline_of(candidate: str | Path, folder: str | Path) -> Path | None:
    """The pushed model that a candidate has to stand up to: the newest version that is not the candidate itself.

    That makes evaluation repeatable: after the candidate was pushed, its baseline is still the one before it.

    Args:
        candidate: folder of a SavedModel.
        folder: the serving folder.

    Returns:
        A version's folder, or None where nothing else was pushed.
    """
    own = fingerprint(candidate)
    return next((path for path in reversed(versions(folder)) if fingerprint(path) != own), None)
