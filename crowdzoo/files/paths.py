"""Checks of paths, and of whether a command may write there, before it starts to work."""

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from crowdzoo.errors import ConfigError

# Path("gs://bucket") is "gs:/bucket"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")


def scheme_of(path: str | os.PathLike[str]) -> str | None:
    """The scheme of a URL such as `gs://bucket/file`, in lower case; None for a local path."""
    match = _SCHEME.match(os.fspath(path))
    return match[1].lower() if match else None


def local_path(path: str | os.PathLike[str], what: str = "path") -> Path:
    """Converts a path of the local file system to an absolute one; `~` is an ordinary name, as shells expand it.

    Args:
        path: relative or absolute path.
        what: name of the argument or option, for the message.

    Returns:
        The absolute path. Links and `..` are not resolved.

    Raises:
        ConfigError: the path is empty, a URL, contains a NUL character, or cannot be encoded as a file name.
    """
    text = os.fspath(path)
    if not text:
        raise ConfigError(f"{what} is empty: name a file or a folder.")
    if "\0" in text:
        raise ConfigError(f"{what}: a path cannot contain a NUL character. Received: {text!r}.")
    scheme = scheme_of(text)
    if scheme is not None:
        raise ConfigError(
            f"{what} {text}: {scheme}:// paths are not supported here. Copy the file, or mount the file system, and "
            "give the local path."
        )
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ConfigError(f"{what}: {text!r} cannot be encoded as a file name.") from None
    return Path(text).absolute()


def check_output_file(
    path: str | os.PathLike[str],
    what: str,
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    is_own: Callable[[Path], bool] | None = None,
    force: bool = False,
) -> None:
    """Raises an error if a file cannot be written at a path, or would replace something else.

    Links are followed: the file they point to is replaced. Empty files may always be replaced.

    Args:
        path: path of the new file; its parents need not exist.
        what: name of the argument or option, for the message.
        inputs: files that are read, which the output must not replace; missing ones are ignored.
        is_own: function that checks if an existing file was written by the same command; None: any may be replaced.
        force: whether to replace any regular file that is not an input.

    Raises:
        ConfigError: the path is a folder, a device or a dangling link, an input, a file written by something else, or
            not writeable.
    """
    place, named, mode = _look(path, what)
    if os.fspath(path).endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise ConfigError(f"{named}: is a folder. Name a file in it.")
    if mode is not None:
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{named}: is {_kind(mode)}, not a regular file. Name another place.")
        for source in inputs:
            if _is_same(place, source):
                raise ConfigError(f"{named}: is also an input ({os.fspath(source)}). Name another file.")
        if is_own is not None and not force and os.path.getsize(place) and not _recognized(is_own, place):
            raise ConfigError(
                f"{named}: exists and was not written by this command, or was edited since. Name another file, or "
                "replace it with --force."
            )
    _check_parent(Path(os.path.realpath(place)).parent, named)


def check_output_folder(
    path: str | os.PathLike[str], what: str, *, is_own: Callable[[Path], bool] | None = None, force: bool = False
) -> None:
    """Raises an error if a folder cannot be created at a path, or has other content.

    Args:
        path: path of the new folder; its parents need not exist.
        what: name of the argument or option, for the message.
        is_own: function that checks if a folder only has earlier output of the same command.
        force: whether to replace such output. Other content is never replaced.

    Raises:
        ConfigError: the path is a file or a dangling link, a folder that is not empty, the working directory or a mount
            point (which cannot be replaced), or not writeable.
    """
    place, named, mode = _look(path, what)
    if mode is not None:
        if not stat.S_ISDIR(mode):
            raise ConfigError(f"{named}: is {_kind(mode)}, not a folder. Name a new folder.")
        real = Path(os.path.realpath(place))
        here = Path(os.path.realpath(os.curdir))
        if real == here or real in here.parents:
            raise ConfigError(f"{named}: is the working directory or above it. Name a new folder in it.")
        if os.path.ismount(real):
            raise ConfigError(f"{named}: is a mount point. Name a new folder in it.")
        try:
            with os.scandir(place) as entries:
                filled = any(entries)
        except OSError as error:
            raise ConfigError(f"{named}: {error.strerror}. Name another place.") from None
        if filled:
            own = is_own is not None and _recognized(is_own, place)
            if own and not force:
                raise ConfigError(
                    f"{named}: exists and is not empty. Name a new folder, or replace the earlier result with --force."
                )
            if not own:
                raise ConfigError(f"{named}: exists and is not empty. Name a new folder.")
    _check_parent(Path(os.path.realpath(place)).parent, named)


def check_folder(path: str | os.PathLike[str], what: str) -> None:
    """Raises an error if a folder cannot be created at a path, or written to; it may have any content.

    Raises:
        ConfigError: the path is a file or a dangling link, or not writeable.
    """
    place, named, mode = _look(path, what)
    if mode is not None and not stat.S_ISDIR(mode):
        raise ConfigError(f"{named}: is {_kind(mode)}, not a folder. Name a folder.")
    _check_parent(Path(os.path.realpath(place)), named)


def check_apart(outputs: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raises an error if two outputs of a command are the same path, or one is inside the other.

    Args:
        outputs: option -> path, or None if the option is not given.

    Raises:
        ConfigError: two outputs overlap.
    """
    places = {
        what: Path(os.path.realpath(local_path(path, what))) for what, path in outputs.items() if path is not None
    }
    for what, place in places.items():
        for other, folder in places.items():
            if what != other and (place == folder or folder in place.parents):
                where = "the same place as" if place == folder else "inside"
                raise ConfigError(f"{what} {outputs[what]}: is {where} {other} {outputs[other]}. Name another place.")


def _look(path: str | os.PathLike[str], what: str) -> tuple[Path, str, int | None]:
    """The absolute path, its name in messages, and the type of its target; None if it does not exist."""
    place, named = local_path(path, what), f"{what} {os.fspath(path)}"
    try:
        return place, named, os.stat(place).st_mode
    except FileNotFoundError:
        if os.path.islink(place):
            target = os.readlink(place)
            raise ConfigError(f"{named}: is a link to {target}, which does not exist. Remove the link.") from None
        return place, named, None
    except NotADirectoryError:
        return place, named, None  # the check of the parents names the file
    except OSError as error:
        raise ConfigError(f"{named}: {error.strerror}. Name another place.") from None


def _check_parent(parent: Path, named: str) -> None:
    """Raises an error for a folder that cannot be created or written to; creates a nameless file in it."""
    while not os.path.lexists(parent) and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise ConfigError(f"{named}: {parent} is a file, not a folder. Name another place.")
    try:
        tempfile.TemporaryFile(dir=parent).close()
    except OSError as error:
        raise ConfigError(f"{named}: {parent} cannot be written to ({error.strerror}). Name another place.") from None


def _is_same(place: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samefile(place, source)
    except (OSError, ValueError):
        return False


def _recognized(is_own: Callable[[Path], bool], place: Path) -> bool:
    try:
        return is_own(place)
    except Exception:  # a damaged archive or deeply nested JSON was not written by this command
        return False


def _kind(mode: int) -> str:
    kinds = {stat.S_ISREG: "a file", stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")
