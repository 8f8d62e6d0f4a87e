"""The pipeline's input files: hashes of their content, and private copies for a run."""

import contextlib
import csv
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from crowdzoo.components.remote_files import fetch, is_remote, last_part
from crowdzoo.data.instance_kinds import IMAGE
from crowdzoo.errors import BadRow, DataError
from crowdzoo.files.regular import check_regular
from crowdzoo.reading.instances.images import holds_images, image_paths, read_image_table
from crowdzoo.reading.tables.layout import Layout

_BLOCK = 1 << 20
Texts = Mapping[str, str]  # paths, hashes or types, by name


def content_hashes(
    files: Mapping[str, str | Path | None], layout: Layout | None = None, inputs: Texts | None = None
) -> dict[str, str]:
    """SHA-256 of the content of files, and of the images that a folder or a table names; None is skipped.

    Args:
        files: paths by key.
        layout: layout of the file of instances.
        inputs: types of columns of a table, some of which may be paths of images.

    Raises:
        DataError: a file does not exist, is not a regular file, or cannot be read.
    """
    return {
        key: _image_hash(path, layout, inputs) if _names_images(key, path, layout, inputs) else _hash(path)
        for key, path in files.items()
        if path
    }


@contextlib.contextmanager
def own_copies(
    files: Texts, hashes: Texts | None, folder: str | Path, layout: Layout | None = None, inputs: Texts | None = None
) -> Iterator[dict[str, str]]:
    """Yields copies of files with the hashed content, even if the files change; they are removed at the end.

    Errors raised in the block name the file and not its copy. Local images are not copied, and their paths in a table
    are relative to the table: for a folder or a table of images, the original path is used after its hash was compared.
    From a URI everything is copied, including a folder of images.

    Args:
        files: paths or URIs by key.
        hashes: result of `content_hashes`, by key; None accepts any content.
        folder: folder for the copies, in a hidden subfolder.
        layout: layout of the file of instances.
        inputs: as for `content_hashes`.

    Yields:
        Paths of the copies by key.

    Raises:
        DataError: a file does not have the hashed content, no longer exists, or cannot be read; or a table at a URI has
            paths of images.
    """
    hidden = Path(folder, ".inputs")
    # each in its own folder, because readers depend on names and two files may have the same name
    copies = dict(files)
    for key, path in files.items():
        if is_remote(path) or not _names_images(key, path, layout, inputs):
            copies[key] = str(hidden / key / last_part(path))
    try:
        for key, path in files.items():
            if is_remote(path):
                fetch(path, copies[key])
                if _names_images(key, copies[key], layout, inputs) and not Path(copies[key]).is_dir():
                    raise DataError(
                        f"{path}: names images by their paths, which only a table on this machine can do. Give the "
                        "folder of the images."
                    )
                digest = None if hashes is None else content_hashes({key: copies[key]}, layout, inputs)[key]
            elif copies[key] == path:
                digest = _image_hash(path, layout, inputs)
            else:
                digest = _hash(path, copies[key])
            if hashes is not None and digest != hashes[key]:
                raise DataError(
                    f"{path}: its content changed after the run began, so nothing was made from it. Run again once "
                    "the file is complete."
                )
        yield copies
    except DataError as error:
        for key, copy in copies.items():
            _rename(error, copy, files[key])
        raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def rename_in_rejects(rejects: str | Path, copy: str, path: str) -> None:
    """Replaces the name of a copy by that of its file in a CSV file of rejected rows."""
    scratch = Path(f"{rejects}.part")
    with open(rejects, encoding="utf-8", newline="") as old, open(scratch, "w", encoding="utf-8", newline="") as new:
        csv.writer(new).writerows((path if row[0] == copy else row[0], *row[1:]) for row in csv.reader(old))
    scratch.replace(rejects)


def _hash(path: str | Path, copy: str | None = None) -> str:
    """Hash of a file's content, or of the files in a folder; the hashed content is written to `copy`."""
    if os.path.isdir(path):
        names = sorted(str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file())
        hashes = [_hash(Path(path, name), copy and f"{copy}/{name}") for name in names]
        return hashlib.sha256(repr([names, hashes]).encode()).hexdigest()
    check_regular(path)
    if copy is not None:
        Path(copy).parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file, open(os.devnull if copy is None else copy, "wb") as written:
            while block := file.read(_BLOCK):
                digest.update(block)
                written.write(block)
    except OSError as error:
        raise DataError(f"{error.filename or path}: cannot be read or copied ({error.strerror}).") from error
    return digest.hexdigest()


def _names_images(key: str, path: str | Path, layout: Layout | None, inputs: Texts | None) -> bool:
    return key == "instances" and (IMAGE in (inputs or {}).values() or holds_images(path, layout))


def _image_hash(path: str | Path, layout: Layout | None, inputs: Texts | None) -> str:
    """Hash of a folder or a table of images, and of their content; the reader reports files that cannot be read."""
    columns = [name for name, kind in (inputs or {}).items() if kind == IMAGE]
    layouts = [layout]
    if columns:
        table_layout = Layout() if layout is None else layout
        layouts = [replace(table_layout, columns={**table_layout.columns, "image": name}) for name in columns]
    hashes = (_one_column_hash(path, column_layout) for column_layout in layouts)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _one_column_hash(path: str | Path, layout: Layout | None) -> str:
    table = read_image_table(path, layout)
    digest = hashlib.sha256(b"" if Path(path).is_dir() else _hash(path).encode())
    for name, image in zip(table.names("image"), image_paths(table), strict=True):
        try:
            digest.update(f"{name}\0{_hash(image)}\n".encode())
        except DataError:
            digest.update(f"{name}\n".encode())
    return digest.hexdigest()


def _rename(error: DataError, copy: str, path: str) -> None:
    """Replaces the name of a copy by that of its file."""
    error.args = (str(error).replace(copy, path),)
    error.rows = tuple(
        BadRow(row.file.replace(copy, path), row.row, row.column, row.value, row.reason) for row in error.rows
    )
