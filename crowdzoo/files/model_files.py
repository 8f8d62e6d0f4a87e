"""Checks of a saved model and the files next to it before Keras or TensorFlow read them; differences of names."""

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from crowdzoo.errors import DataError
from crowdzoo.files.json import check_format, read_json
from crowdzoo.files.regular import check_regular
from crowdzoo.files.text import is_utf8

WEIGHTS = "model.weights.h5"
FOLDER_NAMES = "crowdzoo.json"  # file of names in a folder of `save_pretrained`
NEEDED = ("metadata.json", "config.json", WEIGHTS)
LARGEST_JSON = 64 << 20  # bytes of metadata.json and config.json each
MOST_GROWTH, FREE_BYTES = 20, 64 << 20  # an archive may unpack to this many times its size, plus these bytes
_TRAIN_AGAIN = "Train the model again, or copy the file again."
_AGAIN = "Save the model again, or copy the file again."


def check_keras_file(path: str | os.PathLike[str]) -> None:
    """Checks that a file is a Keras archive, or a folder with its parts, before Keras reads it.

    Raises:
        DataError: not a regular file or a folder, not a zip archive or a damaged one, missing parts, parts that unpack
            to far more than the file's size, names or HDF5 links that point outside the file.
    """
    name = os.fspath(path)
    if not os.path.isdir(path):
        check_regular(path)
    try:
        if os.path.isdir(path):
            for part in NEEDED:
                check_regular(Path(path, part))
            with open(Path(path, WEIGHTS), "rb") as weights:
                _check_weights(name, weights, os.path.getsize(Path(path, WEIGHTS)))
            return
        with zipfile.ZipFile(path) as archive:
            _check_members(name, archive, os.path.getsize(path))
            with archive.open(WEIGHTS) as weights:
                _check_weights(name, weights, archive.getinfo(WEIGHTS).file_size)
    except DataError:
        raise
    except Exception as error:  # zipfile and h5py raise a dozen types for damaged files
        raise DataError(f"{name}: is not a valid model file ({_first_line(error)}). {_AGAIN}") from error


def _check_members(name: str, archive: zipfile.ZipFile, size: int) -> None:
    members = archive.infolist()
    missing = [part for part in NEEDED if part not in archive.namelist()]
    if missing:
        raise DataError(f"{name}: is not a Keras model: the archive has no {missing[0]!r}. Use a file of model.save.")
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts:
            raise DataError(f"{name}: holds a part {member.filename!r} that points outside the archive. {_AGAIN}")
        if member.filename in NEEDED[:2] and member.file_size > LARGEST_JSON:
            raise DataError(
                f"{name}: {member.filename!r} unpacks to {member.file_size:,} bytes, more than {LARGEST_JSON:,}. "
                f"{_AGAIN}"
            )
    total, most = sum(member.file_size for member in members), MOST_GROWTH * size + FREE_BYTES
    if total > most:
        raise DataError(f"{name}: unpacks to {total:,} bytes out of {size:,}; at most {most:,} are read. {_AGAIN}")


def _check_weights(name: str, weights: Any, size: int) -> None:
    """Checks the HDF5 file without reading its numbers."""
    import h5py

    total = 0

    def look(group: Any) -> None:
        nonlocal total
        for key in group:
            link = group.get(key, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise DataError(f"{name}: weight {key!r} is a link to elsewhere. {_AGAIN}")
            part = group[key]
            if isinstance(part, h5py.Group):
                look(part)
                continue
            if part.external or part.is_virtual:
                raise DataError(f"{name}: the numbers of weight {part.name!r} are in another file. {_AGAIN}")
            total += int(part.size or 0) * part.dtype.itemsize

    with h5py.File(weights, "r") as file:
        look(file)
    if total > MOST_GROWTH * size + FREE_BYTES:
        raise DataError(f"{name}: the weights unpack to {total:,} bytes out of {size:,}. {_AGAIN}")


def names_path(path: Path) -> Path:
    """Path of the file next to a model with the names of its classes and annotators."""
    return path / FOLDER_NAMES if path.is_dir() else path.with_suffix(".names.json")


def read_model_names(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the file of names next to a model that `crowdzoo train` saved.

    Returns:
        `classes` (list of str, or None for ratings), `annotators` (list of str), `features` (list of str, if the
        columns of the training instances had names), the settings of an encoder under its key, and `training`,
        information on the training.

    Raises:
        DataError: not a regular file, not JSON, other content, or written by a later release.
    """
    names = read_json(path)
    file = os.fspath(path)
    if not isinstance(names, dict):
        raise DataError(f"{file}: does not contain a JSON object. {_TRAIN_AGAIN}")
    check_format(names.pop("format_version", None), path)
    for key in ("classes", "annotators", "features"):
        values = names.get(key)
        left_out = values is None and (key == "features" or (key == "classes" and key in names))
        are_names = isinstance(values, list) and all(isinstance(name, str) and is_utf8(name) for name in values)
        if not left_out and not are_names:
            raise DataError(f"{file}: {key!r} should be a list of names. {_TRAIN_AGAIN}")
    for key in names.keys() - {"classes", "annotators", "features"}:
        if not isinstance(names[key], dict):
            raise DataError(f"{file}: {key!r} should be a JSON object. {_TRAIN_AGAIN}")
    return names


def read_model_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the model card next to an exported model.

    Returns:
        The card; `classes` is a list, or None for ratings; `features` a list of names, None or absent.

    Raises:
        DataError: not a regular file, not JSON, not a card, or written by a later release.
    """
    card = read_json(path)
    features = card.get("features") if isinstance(card, dict) else None
    if (
        not isinstance(card, dict)
        or not isinstance(card.get("classes"), list | None)
        or any(not isinstance(card.get(key) or {}, dict) for key in ("software", "signatures"))
        or not (features is None or (isinstance(features, list) and all(isinstance(name, str) for name in features)))
    ):
        raise DataError(f"{Path(path)}: is not a model card as crowdzoo writes it. Export the model again.")
    check_format(card.get("format_version"), path)
    return card


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


SHOWN = 3


def name_difference(what: str, now: Sequence[str], before: Sequence[str]) -> str:
    """Describes the first difference between two lists of names, including their order.

    Args:
        what: noun for a name, such as "class".
        now: new names.
        before: old names.

    Returns:
        A clause such as "class 'dog' is new", or "" if they are equal.
    """
    if list(now) == list(before):
        return ""
    known, kept = set(before), set(now)
    changes = {
        "new": [name for name in now if name not in known],
        "missing": [name for name in before if name not in kept],
    }
    if differences := [f"{_named(what, names)} {verb}" for verb, names in changes.items() if names]:
        return ", ".join(differences)
    if len(now) != len(before):
        return f"there are {len(now)} {_plural(what)}, were {len(before)}"
    place, name, old = next((at, *pair) for at, pair in enumerate(zip(now, before, strict=True)) if pair[0] != pair[1])
    return f"the order differs: {what} {place} is {name!r}, was {old!r}"


def _named(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    title, verb = (what, "is") if len(names) == 1 else (_plural(what), "are")
    return f"{title} {', '.join(map(repr, names[:SHOWN]))}{more} {verb}"


def _plural(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what}s"
