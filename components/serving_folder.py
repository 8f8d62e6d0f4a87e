"""Which of the pushed models a new one is compared with."""

import hashlib
from pathlib import Path

from crowdzoo.files.served_model import BLESSING_FILE, DRIFT_FOLDER, ORIGIN_FILE
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.training.digest import digest_of


def fingerprint(model: str | Path) -> str:
    """Hash of names and contents of the files below a folder, equal for a model and its copies.

    The blessing, the statistics and the origin do not count.
    """
    digest, root = hashlib.sha256(), Path(model)
    own = (root / BLESSING_FILE, root / DRIFT_FOLDER, root / ORIGIN_FILE)
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not {path, *path.parents} & {*own}):
        digest.update(f"{path.relative_to(root).as_posix()}\0{digest_of(path)}\n".encode())
    return digest.hexdigest()[:32]


def baseline_of(candidate: str | Path, folder: str | Path) -> Path | None:
    """The pushed model that a candidate is compared with: the newest version that is not the candidate itself.

    That makes evaluation repeatable: after the candidate was pushed, its baseline is still the one before it.

    Args:
        candidate: folder of a SavedModel.
        folder: the serving folder.

    Returns:
        A version's folder, or None where nothing else was pushed.
    """
    digest = fingerprint(candidate)
    return next((path for path in reversed(complete_versions(folder)) if fingerprint(path) != digest), None)
