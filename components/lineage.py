"""Lineage of a model, from its card, its blessing and its origin."""

import contextlib
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crowdzoo.components.input_files import content_hashes
from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.errors import CrowdzooError, DataError
from crowdzoo.files.json import FORMAT_VERSION, check_format, read_json
from crowdzoo.files.model_files import read_model_card, read_model_names
from crowdzoo.files.served_model import BLESSING_FILE, MODEL_CARD_FILE, ORIGIN_FILE
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.files.writing import write_json
from crowdzoo.reading.tables.layout import Layout

COMMIT = "CROWDZOO_COMMIT"  # environment variable with the commit of the running code
_DECIDE = ("seed", "model", "method", "training", "files", "source", "packages")  # settings of the Trainer
_PACKAGES = ("tfx", "apache-beam")


def training_lineage(
    config: Mapping[str, object], info: Mapping[str, object], parent: str | Path | None
) -> dict[str, object]:
    """Lineage of a training.

    Args:
        config: `custom_config` of the Trainer.
        info: result of `read_dataset_info`.
        parent: SavedModel of the training from whose weights this one started; None started from new weights.

    Returns:
        `inputs`: SHA-256 of the content of each input file, by its key in `data`; `settings`: SHA-256 of the settings
        of training and aggregation; `code_version`: that of the Trainer (see `code_version`); `software`: versions of
        packages that are not in the card; and `parent`: see `fingerprint`, None without one.
    """
    settings = {**{key: config[key] for key in _DECIDE if key in config}, "aggregation": info.get("aggregation")}
    return {
        "inputs": info.get("sha256", {}),
        "settings": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest(),
        "code_version": config.get("code_version"),
        "software": {name: version(name) for name in _PACKAGES},
        "parent": None if parent is None else fingerprint(parent),
    }


def write_origin(model: str | Path, info: Mapping[str, Any]) -> None:
    """Writes facts about a model's training, other than contents of files and settings, next to the model.

    They are not part of the model's `fingerprint` or of TFX's cache key: a training from the cache keeps the commit
    with which it was done.

    Args:
        model: folder of the SavedModel.
        info: result of `read_dataset_info`.
    """
    reading = info.get("reading", {})
    names = ("dataset",) if reading.get("dataset") else tuple(info.get("sha256", {}))
    files = {name: reading[name] for name in names if name in reading}
    mlflow = {"run": run} if (run := os.environ.get("MLFLOW_RUN_ID")) else None
    update_origin(model, files=files, commit=os.environ.get(COMMIT) or None, mlflow=mlflow, reading=reading)


def update_origin(model: str | Path, **facts: object) -> None:
    """Adds facts to a model's origin."""
    content = {**read_origin(model), **facts, "format_version": FORMAT_VERSION}
    write_json(Path(model, ORIGIN_FILE), content)


def read_origin(model: str | Path) -> dict[str, Any]:
    """Facts of a model's origin: `files`, `commit`, `mlflow` and `reading`; {} without the file."""
    place = Path(model, ORIGIN_FILE)
    origin: dict[str, Any] = read_json(place) if place.exists() else {}
    check_format(origin.pop("format_version", None), place)
    return origin


def commit_of(file: str | Path) -> str | None:
    """The commit of the Git checkout that a file is in, or None.

    Returns:
        The hash, followed by ", changed" if a tracked file differs from it, or if this file is not tracked.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=Path(file).absolute().parent, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no") or not git("ls-files", "--", Path(file).name)
    except OSError:
        return None
    return (f"{commit}, changed" if changed else commit) if commit else None


def input_of(model: Path, file: Path) -> str:
    """Identifies a file as an input of a model's training, by its content.

    Args:
        model: as for `lineage_of`.
        file: a file, or a folder of images.

    Returns:
        The key in `data`, such as `annotations`.

    Raises:
        DataError: the file is not an input; the model's lineage does not have the inputs; or the file cannot be read.
    """
    lineage, origin = lineage_of(model), read_origin(model)
    inputs = lineage.get("inputs")
    if not isinstance(inputs, dict) or not inputs:
        table = " That of the annotations, by crowdzoo train, is of the table that it read, not of a file."
        raise DataError(
            f"{model}: its lineage has no SHA-256 of input files, which only crowdzoo run records."
            f"{table if 'training' in lineage else ''}"
        )
    digest = content_hashes({"file": file})["file"]
    digests = dict.fromkeys(inputs, digest)
    if "instances" in inputs and digest not in inputs.values():
        reading = origin.get("reading", {})
        with contextlib.suppress(CrowdzooError):  # a file that does not contain images
            layout = Layout.of_second(reading.get("instance_columns"), reading)
            digests |= content_hashes({"instances": file}, layout, reading.get("inputs"))
    if key := next((key for key in inputs if inputs[key] == digests[key]), None):
        return key
    names = origin.get("files", {})
    reason = "its content changed since" if str(file) in names.values() else "none of its inputs has that content"
    listed = "".join(f"\n  {key}: {known} {names.get(key, '')}".rstrip() for key, known in inputs.items())
    raise DataError(f"{file}: is not what {model} was trained on: {reason}. SHA-256 {digest}; inputs:{listed}")


def lineage_of(model: Path) -> dict[str, object]:
    """Reads the lineage of a model from the files next to it.

    Args:
        model: folder of an exported version; or a `.keras` file of the pipeline, with its `.names.json`.

    Returns:
        `model`, `fingerprint`, and the result of `training_lineage` (for a model of `crowdzoo train` instead
        `training`: method, settings and SHA-256 of the annotations). For a version also `software` of the card,
        `files`, `commit` and `mlflow` (see `write_origin`), `blessing` (see `Pusher`; with `files`, whether the
        version's files are `as blessed` or `changed`), and as `parent` the folder of the version from which its
        training started, if it still exists.

    Raises:
        DataError: no such model, an invalid card, or one without lineage.
    """
    if not model.exists():
        raise DataError(f"{model}: does not exist. Give the folder of an exported version, or a .keras file.")
    is_version = model.is_dir()
    if is_version and not (model / MODEL_CARD_FILE).exists() and (versions := complete_versions(model)):
        raise DataError(f"{model}: holds versions. Give one of them, such as {versions[-1]}.")
    card = (
        read_model_card(model / MODEL_CARD_FILE) if is_version else read_model_names(model.with_suffix(".names.json"))
    )
    if "lineage" not in card and not card.get("training"):
        raise DataError(f"{model}: has no lineage, which crowdzoo run and crowdzoo train write.")
    lineage = card.get("lineage") or {"training": card["training"]}
    record = {"model": str(model), **lineage}
    if not is_version:
        return record
    record["software"] = {**card["software"], **lineage.get("software", {})}
    record["fingerprint"] = fingerprint(model)
    record |= {key: value for key, value in read_origin(model).items() if key != "reading" and value is not None}
    if (model / BLESSING_FILE).exists():
        blessing = read_json(model / BLESSING_FILE)
        same = blessing.pop("model", None) == record["fingerprint"]
        record["blessing"] = {"files": "as blessed" if same else "changed since they were blessed", **blessing}
    if lineage.get("parent"):
        parents = (path for path in complete_versions(model.parent) if fingerprint(path) == lineage["parent"])
        record["parent"] = str(next(parents, lineage["parent"]))
    return record


def facts_of(lineage: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Nested facts by dotted names."""
    for key, value in lineage.items():
        if isinstance(value, Mapping):
            yield from facts_of(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", "-" if value is None else value
