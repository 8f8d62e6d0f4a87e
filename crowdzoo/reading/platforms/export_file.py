"""ExportFile: a file of an export, possibly inside an archive."""

import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO

from crowdzoo.errors import DataError
from crowdzoo.files.regular import check_growth, check_regular, open_regular, zip_archive
from crowdzoo.files.utf8_blocks import utf8_file


@dataclass(frozen=True)
class ExportFile:
    """A file of an export.

    Attributes:
        path: path of the file, or of its zip archive.
        member: name in the archive, or None.
        encoding: encoding of its text; None: UTF-8, or that of a byte order mark.
        separator: separator of values in CSV; None: determined from the header.
        annotator: annotator to use if the export does not name one: the part of the file's name that differs from those
            of the other files.
        archive: the open archive, shared by all its files, or None.
    """

    path: Path
    member: str | None = None
    encoding: str | None = None
    separator: str | None = None
    annotator: str = ""
    archive: zipfile.ZipFile | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return os.fspath(self.path) if self.member is None else f"{self.path}/{self.member}"

    def sibling(self, suffix: str) -> "ExportFile":
        """The file next to it, also in an archive, with the same name and another suffix."""
        if self.member is None:
            return replace(self, path=self.path.with_suffix(suffix))
        return replace(self, member=str(PurePosixPath(self.member).with_suffix(suffix)))

    @contextmanager
    def text(self) -> Iterator[IO[bytes]]:
        """The file's bytes as UTF-8 without a byte order mark; for errors see `open` and `utf8_blocks`."""
        with self.open() as stream:
            yield utf8_file(stream, self.name, self.encoding)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file's bytes, unpacked.

        Raises:
            DataError: see `open_regular`; or a damaged or encrypted archive, or one without the file.
        """
        if self.member is None or self.archive is None:
            with open_regular(self.path, unzip=False) as stream:
                yield stream
            return
        try:
            entry = self.archive.getinfo(self.member)
        except KeyError:
            raise DataError(f"{self.name} does not exist.") from None
        with _archive_errors(self.path), self.archive.open(entry) as member:
            yield member


def export_files(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> list[ExportFile]:
    """Find the files of an export.

    Args:
        path: a file, a zip archive, or a folder of these, which is searched with its subfolders.
        suffixes: suffixes of files to find, without .gz.

    Returns:
        Files in the order of their names; empty if there are none with these suffixes.

    Raises:
        DataError: no such file, or a damaged archive.
    """
    path = Path(path)
    if path.is_dir():
        files = [
            file
            for place in sorted(place for place in path.rglob("*") if place.is_file())
            if not any(part.startswith((".", "__")) for part in place.relative_to(path).parts)
            for file in _files(place, suffixes)
        ]
        parts = [_parts(file, path) for file in files]
    else:
        check_regular(path)
        files = _files(path, suffixes)
        parts = [_parts(file, path.parent) for file in files]
    return [replace(file, annotator=name) for file, name in zip(files, _differences(parts), strict=True)]


def _files(path: Path, suffixes: tuple[str, ...]) -> list[ExportFile]:
    if path.suffix.lower() == ".zip":
        check_regular(path)
        with _archive_errors(path):
            archive = zip_archive(path, str(path))
        names = sorted(name for name in archive.namelist() if not name.startswith(("__", ".")))
        names = [name for name in names if PurePosixPath(name).suffix.lower() in suffixes]
        check_growth(str(path), path.stat().st_size, sum(archive.getinfo(name).file_size for name in names))
        return [ExportFile(path, name, archive=archive) for name in names]
    return [ExportFile(path)] if Path(path.name.removesuffix(".gz")).suffix.lower() in suffixes else []


@contextmanager
def _archive_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{path}: not a sound zip archive ({error}). Download it again.") from None
    except (NotImplementedError, RuntimeError) as error:  # unsupported compression, or a password
        raise DataError(f"{path}: the archive cannot be unpacked ({error}). Unpack it into a folder.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _parts(file: ExportFile, root: Path) -> list[str]:
    """Parts of a file's path below a folder, without suffixes; archives count as folders."""
    place = PurePosixPath(*file.path.relative_to(root).parts)
    if file.member is None:
        place = place.with_name(place.name.removesuffix(".gz"))
    else:
        place = place.with_suffix("") / file.member.lstrip("/")
    return [*place.parts[:-1], place.stem]


def _differences(parts: list[list[str]]) -> list[str]:
    """Names of files: their parts without common ones at either end."""
    if len(parts) < 2:
        return [path[-1] for path in parts]
    shortest = min(map(len, parts))
    begin = next((at for at in range(shortest) if len({path[at] for path in parts}) > 1), shortest)
    end = next((at for at in range(shortest) if len({path[-1 - at] for path in parts}) > 1), shortest)
    names = ["/".join(path[begin : len(path) - end]) for path in parts]
    return names if all(names) else ["/".join(path) for path in parts]
