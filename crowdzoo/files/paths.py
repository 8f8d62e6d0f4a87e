"""paths: what a path may be, and whether a command may write there, asked before it starts to work."""

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
    """The scheme of a URL such as `gs://bucket/file`, in lower case, or None for a local path."""
    match = _SCHEME.match(os.fspath(path))
    return match[1].lower() if match else None


def local_path(path: str | os.PathLike[str], what: str = "path") -> Path:
    """A path of this machine's file system, made absolute; `~` is a name like any other, as shells expand it.

    Args:
        path: relative or absolute path.
        what: name of the argument or option, for the message.

    Returns:
        The absolute path. Links and `..` stay in it.

    Raises:
        ConfigError: the path is empty, a URL, has a NUL character, or cannot be encoded as a file name.
    """
    text = os.fspath(path)
    if not text:
        raise ConfigError(f"{what} is empty: name a file or a folder.")
    if "\0" in text:
        raise ConfigError(f"{what}: a path cannot hold a NUL character. Received: {text!r}.")
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
    """Refuses a place where a file cannot be written, or where writing it would destroy something else.

    A link is followed: the file that it points to is the one that is replaced. An empty file may always be replaced.

    Args:
        path: where the file will be written; its parents need not exist.
        what: name of the argument or option, for the message.
        inputs: files that are read, which the output must not replace; missing ones are passed over.
        is_own: whether a file that exists was written by the same command; None: any may be replaced.
        force: replace any regular file that is not an input.

    Raises:
        ConfigError: the place is a folder, a device or a dangling link, an input, a file that something else wrote, or
            cannot be written to.
    """
    place, named, mode = _look(path, what)
    if os.fspath(path).endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise ConfigError(f"{named}: is a folder. Name a file in it.")
    if mode is not None:
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{named}: is {_kind(mode)}, not a regular file. Name another place.")
        for source in inputs:
            if _is_same(place, source):
                raise ConfigError(f"{named}: is also an input ({os.fspath(source)}). Name another file than that.")
        if is_own is not None and not force and os.path.getsize(place) and not _recognized(is_own, place):
            raise ConfigError(
                f"{named}: exists and was not written by this command, or was edited since. Name another file, or "
                "replace it with --force."
            )
    _check_parent(Path(os.path.realpath(place)).parent, named)


def check_output_folder(
    path: str | os.PathLike[str], what: str, *, is_own: Callable[[Path], bool] | None = None, force: bool = False
) -> None:
    """Refuses a place where a folder cannot be made, or that holds something already.

    Args:
        path: where the folder will be made; its parents need not exist.
        what: name of the argument or option, for the message.
        is_own: whether a folder that is not empty holds an earlier output of the same command, and nothing else.
        force: replace such an earlier output. Other content is never replaced.

    Raises:
        ConfigError: the place is a file or a dangling link, holds something, is the working directory or a mount
            point (which cannot be replaced), or cannot be written to.
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
    """Refuses a place where no folder can be made, or written into; it may hold anything.

    Raises:
        ConfigError: the place is a file or a dangling link, or cannot be written to.
    """
    place, named, mode = _look(path, what)
    if mode is not None and not stat.S_ISDIR(mode):
        raise ConfigError(f"{named}: is {_kind(mode)}, not a folder. Name a folder.")
    _check_parent(Path(os.path.realpath(place)), named)


def check_apart(outputs: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Refuses two outputs of a command that are one place, or one inside the other.

    Args:
        outputs: option -> path, or None where the option is not given.

    Raises:
        ConfigError: two outputs share a place.
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
    """The absolute path, its name in messages, and the type of what it leads to; None where nothing is there yet."""
    place, named = local_path(path, what), f"{what} {os.fspath(path)}"
    try:
        return place, named, os.stat(place).st_mode
    except FileNotFoundError:
        if os.path.islink(place):
            target = os.readlink(place)
            raise ConfigError(f"{named}: is a link to {target}, which does not exist. Remove the link.") from None
        return place, named, None
    except NotADirectoryError:
        return place, named, None  # the parents' check names the one that is a file
    except OSError as error:
        raise ConfigError(f"{named}: {error.strerror}. Name another place.") from None


def _check_parent(parent: Path, named: str) -> None:
    """Refuses a folder that cannot be made or written to, by making a nameless file in it."""
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
    except Exception:  # a damaged archive, JSON nested too deep: nothing that was written whole
        return False


def _kind(mode: int) -> str:
    kinds = {stat.S_ISREG: "a file", stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")
