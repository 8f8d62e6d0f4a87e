"""Images: a folder of files, or a table with a column of their paths."""

import dataclasses
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from crowdzoo.data.instance_kinds import IMAGES
from crowdzoo.errors import DataError, ServingError, Setting, short_repr
from crowdzoo.reading.instances.table import BESIDE, InstanceReader, Table, check_ending, read_table, shown_names
from crowdzoo.reading.instances.upright_image import FORMATS, read_image
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.suffixes import column_names

COLUMNS = ("image", "path", "file", "filename")
ENDINGS = tuple(dict.fromkeys(ending for endings in FORMATS.values() for ending in endings))
# Images that TensorFlow does not decode; unlike other files in a folder, they are not ignored silently
_OTHER_ENDINGS = (".webp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".svg", ".jp2", ".jxl")
_URL = (
    "is a URL. Download the images, and give the paths of the files; next to an export of a labelling platform give "
    "their folder, as in crowdzoo train EXPORT FOLDER --platform NAME."
)
NO_PATH = "is empty. Give the path of an image."
MOST_PASSED = 50_000  # files checked for at least one image in a hundred


def read_image_table(path: str | Path, layout: Layout | None = None) -> Table:
    """Read names and paths of images, without opening them.

    Args:
        path: a folder, whose images (also in subfolders) are found by suffix, without hidden files; or a .csv, .csv.gz
            or .parquet file with a column of paths (`image`, `path`, `file` or `filename`), relative to the file's
            folder and inside it (unless the layout has `outside_images`), and optional `task`, `gold` and `split`.
        layout: names of the columns in the file.

    Returns:
        A table with the columns `task` and `image`, and `gold` and `split` if present. Without a column `task`, the
        name of a task is the image's path as given (for a folder, relative to it), without its suffix.

    Raises:
        DataError: no such file, folder or column, no images or few among many other files, an image of another format,
            or an empty path.
    """
    path = Path(path)
    table = _folder_table(path) if path.is_dir() else _file_table(path, layout)
    names = table.names("image")
    table.refuse("image", names == "", NO_PATH)
    table.refuse("image", ["://" in name for name in names], _URL)
    if "task" not in table.columns:
        table.columns["task"] = pa.array([os.path.splitext(name)[0] for name in names], pa.large_string())
    return table


def holds_images(path: str | Path, layout: Layout | None = None) -> bool:
    """Whether instances are images: a folder, or a table with a column of image paths.

    Raises:
        DataError: the file does not exist, or is not a table.
    """
    path = Path(path)
    if path.is_dir() or (layout is not None and "image" in layout.columns):
        return True
    check_ending(path)
    return _looks_like(path, column_names(path, layout), layout)


def image_paths(table: Table) -> np.ndarray:
    """Paths of the images of a table (from `read_image_table`): N objects of type `Path`.

    Raises:
        DataError: paths that lead out of the table's folder, also by a link, if the table does not allow that.
    """
    home, names = Path(table.name), table.names("image")
    if home.is_dir():
        return np.array([home / name for name in names], object)
    paths = np.array([home.parent / name for name in names], object)
    if not table.outside_images:
        root = os.path.realpath(home.parent)
        real = [root if "\0" in name else os.path.realpath(path) for name, path in zip(names, paths, strict=True)]
        outside = [os.path.commonpath((root, path)) != root for path in real]
        fix = f"Move the image into it, or allow such paths: {Setting('outside_images', True)}."
        table.refuse("image", outside, f"leads out of the table's folder. {fix}")
    return paths


def checked_images(table: Table, most: int | None = None) -> np.ndarray:
    """See `image_paths`; opens and decodes the images to check them.

    Args:
        table: result of `read_image_table`.
        most: maximum number of images to open, spread over the table; None opens all.

    Returns:
        N paths, objects of type `Path`.

    Raises:
        DataError: images that are missing, damaged, too large or of another format, with their number, and file, row,
            column, path and reason of the first ten.

    Warns:
        UserWarning: number of images that are changed when stored and sent; see `upright_image`.
    """
    changes: Counter[str] = Counter()
    bad: dict[int, str] = {}
    names, paths = table.names("image"), image_paths(table)
    places = range(len(paths)) if most is None else np.unique(np.linspace(0, len(paths) - 1, most).astype(int)).tolist()
    for place in places:
        path = paths[place]
        try:
            changes.update(read_image(path, whole=True).changes)
        except DataError as error:
            bad[place] = _reason(error, path)
    reasons = {names[place]: reason for place, reason in bad.items()}
    table.refuse("image", [*bad], lambda name: reasons[name])
    if changes:
        counted = "; ".join(f"{count:,} {change}" for change, count in changes.most_common())
        text = f"{table.name}: of {len(places):,} images some are stored and sent changed: {counted}"
        warnings.warn(text, stacklevel=2)
    return paths


def _file_table(path: Path, layout: Layout | None) -> Table:
    table = read_table(path, (*BESIDE, *COLUMNS), _check_header, layout, usual=())
    column = next(name for name in COLUMNS if name in table.columns)
    table.theirs = {**table.theirs, "image": table.theirs.get(column, column)}
    others = {name: values for name, values in table.columns.items() if name in BESIDE}
    table.columns = {"image": table.columns[column], **others}
    return table


def _check_header(name: str, header: Sequence[str]) -> None:
    if not {*COLUMNS} & {*header}:
        raise DataError(
            f"{name}: has no column of images ({', '.join(COLUMNS)}); its columns are {shown_names(header)}. Give the "
            "paths of the images in a column 'image'."
        )


def _folder_table(folder: Path) -> Table:
    names: list[str] = []
    other_files: list[str] = []
    passed = 0
    for parent, folders, files in os.walk(folder):
        passed += len(folders) + len(files)
        if passed > MOST_PASSED and len(names) < passed / 100:
            raise DataError(f"{folder}: few of its first {passed:,} files are images. Give the folder of the images.")
        folders[:] = sorted(subfolder for subfolder in folders if not subfolder.startswith((".", "__MACOSX")))
        for file in files:
            name = Path(parent, file).relative_to(folder).as_posix()
            if not file.startswith(".") and name.lower().endswith((*ENDINGS, *_OTHER_ENDINGS)):
                (names if name.lower().endswith(ENDINGS) else other_files).append(name)
    names.sort()
    table = Table(os.fspath(folder), {}, None)
    unread = "is of a format that cannot be read here. Convert it to JPEG or PNG, or move it elsewhere."
    table.refuse("image", range(len(other_files)), unread, sorted(other_files))
    if not names:
        raise DataError(f"{folder}: holds no images. Their names end in {', '.join(ENDINGS)}.")
    # Python represents bytes of a name that are not UTF-8 as lone surrogates
    odd = [name != name.encode("utf-8", "replace").decode() for name in names]
    table.refuse("image", odd, "is not a name in UTF-8. Rename the file.", names)
    table.columns["image"] = pa.array(names, pa.large_string())
    return table


def _reason(error: DataError, path: Path) -> str:
    """Problem with an image, without the leading name."""
    text = str(error)
    for name in (os.fspath(path), repr(os.fspath(path))):
        text = text.removeprefix(name).removeprefix(":")
    return text.lstrip()


def sampled_images(most: int) -> InstanceReader:
    """Reader of images that opens and decodes only some of them.

    Args:
        most: maximum number of images to open, spread over the table.
    """
    return dataclasses.replace(READER, values=lambda table: (checked_images(table, most=most), None))


def _looks_like(path: Path, header: Sequence[str], _: Layout | None) -> bool:
    """A folder, a table with columns `task` and `image`, or a table with only paths besides task, gold and split."""
    alone = set(header) - {*BESIDE} in [{name} for name in COLUMNS]
    return path.is_dir() or alone or {"task", "image"} <= {*header}


READER = InstanceReader(
    **vars(IMAGES), looks_like=_looks_like, table=read_image_table, values=lambda table: (checked_images(table), None)
)


def check_no_paths(name: str, values: np.ndarray) -> None:
    """Reject texts that are paths of image files, which would be sent as texts.

    Args:
        name: name of the input, for messages.
        values: objects [n], ...

    Raises:
        ServingError: a text with the suffix of an image that is the path of an existing file.
    """
    for place, value in np.ndenumerate(values):
        if isinstance(value, str) and value.lower().endswith(ENDINGS) and os.path.isfile(value):
            raise ServingError(
                f"input {name!r}: {short_repr(value)} at {list(place)} is a text, and the path of an image is needed "
                "as a Path: give pathlib.Path(...), or the bytes of the file."
            )
