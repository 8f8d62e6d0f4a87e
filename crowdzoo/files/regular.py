"""Opening of regular files: checks before reading, and errors while reading."""

import gzip
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crowdzoo.errors import DataError, did_you_mean

# a zip archive that expands by more than this, to more than this, is a bomb; tables expand by 5 to 50 times
_MOST_GROWTH, _BOMB_BYTES = 200, 64 << 20

_KINDS = {
    stat.S_IFDIR: "a folder. Name a file in it",
    stat.S_IFIFO: "a pipe. Give the path of a file",
    stat.S_IFSOCK: "a socket. Give the path of a file",
    stat.S_IFCHR: "a device. Give the path of a file",
    stat.S_IFBLK: "a device. Give the path of a file",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raises an error for anything but a regular file or a link to one.

    Pipes and devices are refused because files are read more than once, and may never end.

    Raises:
        DataError: no such file (with the nearest name in its folder), a folder, a pipe, a device, no permission.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        parent = Path(path).parent
        try:
            siblings = [entry.name for entry in parent.iterdir()] if parent.is_dir() else []
        except OSError:
            siblings = []
        raise DataError(f"{name} does not exist.{did_you_mean(Path(path).name, siblings)}") from None
    except (OSError, ValueError) as error:  # no permission, a name that is too long, a NUL in it
        raise DataError(f"{name!r} cannot be read: {_reason(error)}.") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{name} is {_KINDS.get(stat.S_IFMT(mode), 'not a regular file. Give the path of one')}.")


@contextmanager
def open_regular(path: str | os.PathLike[str], *, unzip: bool = True) -> Iterator[IO[bytes]]:
    """Opens a regular file for reading bytes, decompressed if the name ends in .gz or .zip.

    Args:
        path: path of the file.
        unzip: whether to decompress zip archives; False for archives of several files.

    Raises:
        DataError: as `check_regular`; or, while reading: a truncated or damaged gzip file, a zip archive that is a
            bomb, damaged or does not contain exactly one file; a disk error.
    """
    check_regular(path)
    name = os.fspath(path)
    what = "zip archive" if name.endswith(".zip") else "gzip file"
    try:
        if unzip and name.endswith(".zip"):
            with zip_archive(path, name) as archive, archive.open(_only_member(name, archive)) as stream:
                yield stream
            return
        with gzip.open(path, "rb") if name.endswith(".gz") else open(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    except EOFError:
        raise DataError(f"{name}: the {what} is cut off; copy or download it again.") from None
    except (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError) as error:
        raise DataError(f"{name}: not a sound {what} ({error}). Copy it again, or correct its name.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {_reason(error)}.") from None


def plain_name(path: str | os.PathLike[str]) -> str:
    """The name of a file without .gz; for a .zip the name of the file in it.

    Raises:
        DataError: a zip archive that cannot be opened or does not contain exactly one file.
    """
    name = Path(path).name
    if not name.endswith(".zip"):
        return name.removesuffix(".gz")
    with open_regular(path) as stream:
        return Path(stream.name).name


class _Archive(zipfile.ZipFile):
    def open(self, *args: Any, **kwargs: Any) -> IO[bytes]:
        try:
            return super().open(*args, **kwargs)
        except UnicodeDecodeError:  # in the name before the content, which may differ from that in the directory
            raise zipfile.BadZipFile("a name in it is not UTF-8") from None


def zip_archive(file: str | os.PathLike[str] | IO[bytes], name: str) -> zipfile.ZipFile:
    """Opens a zip archive, and checks the names in it.

    Raises:
        DataError: not a zip archive; a name in it that is empty or wrongly encoded.
    """
    try:
        archive = _Archive(file)
    except OSError:
        raise
    except Exception as error:  # zipfile raises a dozen types for damaged archives
        what = "workbook of Excel" if name.endswith(".xlsx") else "zip archive"
        raise DataError(f"{name}: not a sound {what} ({error}). Copy it again, or correct its name.") from None
    if not all(archive.namelist()):
        archive.close()
        raise DataError(f"{name}: a file in the zip archive has no name. Make the archive again.")
    return archive


def _only_member(name: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The only file of an archive, without those added by macOS."""
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/") and ".DS_Store" not in member.filename
    ]
    if len(members) != 1:
        raise DataError(f"{name}: the zip archive holds {len(members):,} files; leave one, or unpack it.")
    (member,) = members
    if member.flag_bits & 1:
        raise DataError(f"{name}: the zip archive has a password; unpack it.")
    check_growth(name, member.compress_size, member.file_size)
    return member


def check_growth(name: str, packed: int, unpacked: int) -> None:
    """Raises an error for a zip archive, or a file in it, that expands too much.

    Args:
        name: name of the archive, for the message.
        packed: compressed size in bytes.
        unpacked: size in bytes after decompression.

    Raises:
        DataError: it expands too much.
    """
    if unpacked > max(_BOMB_BYTES, _MOST_GROWTH * packed):
        raise DataError(
            f"{name}: {packed:,} bytes would become {unpacked:,}, as in a zip bomb. If that is right, unpack it."
        )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
