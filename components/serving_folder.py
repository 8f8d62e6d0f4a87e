"""A serving folder: the baseline of a new model, copies of models, and adding a version.

Several processes may add versions at the same time.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from crowdzoo.errors import PipelineError
from crowdzoo.files.served_model import BLESSING_FILE, DRIFT_FOLDER, ORIGIN_FILE
from crowdzoo.files.version_folders import MAX_VERSION, complete_versions, next_version
from crowdzoo.files.writing import hidden_folder
from crowdzoo.training.digest import digest_of


def fingerprint(model: str | Path) -> str:
    """Hash of names and contents of the files in a folder, equal for a model and its copies.

    The blessing, the statistics and the origin are ignored.
    """
    digest, root = hashlib.sha256(), Path(model)
    own = (root / BLESSING_FILE, root / DRIFT_FOLDER, root / ORIGIN_FILE)
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not {path, *path.parents} & {*own}):
        digest.update(f"{path.relative_to(root).as_posix()}\0{digest_of(path)}\n".encode())
    return digest.hexdigest()[:32]


def baseline_of(candidate: str | Path, folder: str | Path) -> Path | None:
    """The baseline of a candidate: the newest pushed version that is not the candidate itself.

    This makes evaluation repeatable: after the candidate was pushed, its baseline is still the previous version.

    Args:
        candidate: folder of a SavedModel.
        folder: the serving folder.

    Returns:
        A version's folder, or None if no other model was pushed.
    """
    digest = fingerprint(candidate)
    return next((path for path in reversed(complete_versions(folder)) if fingerprint(path) != digest), None)


def push_version(model: str | Path, folder: str | Path) -> Path:
    """Copies a model into a serving folder as its newest version, atomically.

    Each push copies into its own hidden folder, which is then renamed; a rename never replaces another version. If the
    file system supports `flock`, the number of the version is chosen while the serving folder is locked, and hidden
    folders of interrupted pushes are removed. Otherwise two pushes may choose the same number; the later one then uses
    the next.

    Args:
        model: folder of a SavedModel.
        folder: the serving folder, created if it does not exist.

    Returns:
        The version's folder. A model that already is the newest version, because a push was interrupted before it was
        recorded, is not copied again.

    Raises:
        PipelineError: the folder cannot be written, for example because the disk is full.
    """
    model, folder = Path(model), Path(folder)
    with _copying(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return _push(model, folder)


def copy_model(model: str | Path, folder: str | Path) -> None:
    """Copies a model into a folder, which may exist.

    Raises:
        PipelineError: the folder cannot be written, for example because the disk is full.
    """
    with _copying(Path(folder)):
        shutil.copytree(model, folder, dirs_exist_ok=True)


@contextlib.contextmanager
def _copying(folder: Path) -> Iterator[None]:
    """Turns errors of the file system into one line that names the folder and a file."""
    try:
        yield
    except shutil.Error as error:  # has (source, target, reason) for each file
        problems = error.args[0]
        _, target, reason = problems[0]
        further = f" ({len(problems) - 1:,} more files likewise)" if len(problems) > 1 else ""
        reason = str(reason).removesuffix(f": {target!r}")
        raise PipelineError(f"{folder}: the model cannot be copied there: {target}: {reason}{further}") from error
    except OSError as error:
        name = error.filename2 or error.filename
        raise PipelineError(f"{folder}: the model cannot be copied there: {name}: {error.strerror}") from error


def _push(model: Path, folder: Path) -> Path:
    digest = fingerprint(model)
    newest = _newest(folder)
    if newest is not None and fingerprint(newest) == digest:
        return newest
    with hidden_folder(folder / "model") as hidden:
        shutil.copytree(model, hidden, dirs_exist_ok=True)
        with lock_folder(folder):
            now = _newest(folder)
            if now is not None and now != newest and fingerprint(now) == digest:
                return now  # pushed by another process in the meantime
            return _rename(hidden, folder)


def _newest(folder: Path) -> Path | None:
    return next(reversed(complete_versions(folder)), None)


def _rename(copy: Path, folder: Path) -> Path:
    """Renames the copy to a number above all others."""
    # if the clock was set back, the new model must still be the newest version
    number = max(int(time.time()), next_version(folder))
    while True:
        if number > MAX_VERSION:
            raise PipelineError(f"{folder}: no version number is left above {number - 1}. Remove that version.")
        version = folder / str(number)
        try:
            if not os.path.lexists(version):
                copy.rename(version)
                return version
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
        number += 1


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Locks a folder against other pushes, if its file system supports it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a network file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # which also unlocks
