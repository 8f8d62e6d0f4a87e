"""What a model comes from, as its card and its blessing say."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from crowdzoo.components.serving_folder import fingerprint
from crowdzoo.errors import DataError
from crowdzoo.files.json import read_json
from crowdzoo.files.model_files import read_model_card, read_model_names
from crowdzoo.files.served_model import BLESSING_FILE, MODEL_CARD_FILE
from crowdzoo.files.version_folders import complete_versions

_DECIDE = ("seed", "model", "method", "training", "files", "source", "packages")  # of the Trainer's settings
_PACKAGES = ("tfx", "apache-beam")


def training_lineage(
    config: Mapping[str, object], info: Mapping[str, object], parent: str | Path | None
) -> dict[str, object]:
    """Where a training begins.

    Args:
        config: `custom_config` of the Trainer.
        info: result of `read_dataset_info`.
        parent: SavedModel of the training whose weights this one began with; None began with fresh ones.

    Returns:
        `inputs`: SHA-256 of the content of each input file, by its key in `data`; `settings`: SHA-256 of what the
        training and the aggregation were told; `code_version`: of the Trainer (see `code_version`); `software`:
        versions of packages that the card does not have; and `parent`: see `fingerprint`, None without one.
    """
    settings = {**{key: config[key] for key in _DECIDE if key in config}, "aggregation": info.get("aggregation")}
    return {
        "inputs": info.get("sha256", {}),
        "settings": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest(),
        "code_version": config.get("code_version"),
        "software": {name: version(name) for name in _PACKAGES},
        "parent": None if parent is None else fingerprint(parent),
    }


def lineage_of(model: Path) -> dict[str, object]:
    """What a model was made from, read from the files next to it.

    Args:
        model: folder of an exported version; or a `.keras` file of the pipeline, with its `.names.json`.

    Returns:
        `model`, `fingerprint`, what `training_lineage` gave (of a model of `crowdzoo train` `training` instead: method,
        settings and SHA-256 of the annotations), and of a version `software` of the card, too, `blessing`
        (see `Pusher`; with `files`, whether the version's files are `as blessed` or `changed`), and as `parent` the
        folder of the version that its training started from, if it still exists.

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
        raise DataError(f"{model}: nothing says what it comes from. crowdzoo run and crowdzoo train write that.")
    lineage = card.get("lineage") or {"training": card["training"]}
    record = {"model": str(model), **lineage}
    if not is_version:
        return record
    record["software"] = {**card["software"], **lineage.get("software", {})}
    record["fingerprint"] = fingerprint(model)
    if (model / BLESSING_FILE).exists():
        blessing = read_json(model / BLESSING_FILE)
        same = blessing.pop("model", None) == record["fingerprint"]
        record["blessing"] = {"files": "as blessed" if same else "changed since they were blessed", **blessing}
    if lineage.get("parent"):
        parents = (path for path in complete_versions(model.parent) if fingerprint(path) == lineage["parent"])
        record["parent"] = str(next(parents, lineage["parent"]))
    return record
