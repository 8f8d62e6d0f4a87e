"""Labels of versions, such as `stable` and `canary`, in TF Serving's `models.config`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from crowdzoo.errors import ConfigError, unknown
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.files.writing import atomic_file
from crowdzoo.serving.model_settings import ModelSettings, parse_models

NEWEST = "newest"


def read_labels(config: str | os.PathLike[str], folder: str | os.PathLike[str]) -> dict[str, int]:
    """Labels and versions of the model that a configuration serves from a folder.

    Raises:
        ConfigError: no such file, not a `ModelServerConfig`, or no model of it has this folder.
    """
    return dict(sorted(_model(parse_models(config), config, folder).version_labels.items()))


def set_labels(
    config: str | os.PathLike[str], folder: str | os.PathLike[str], assignments: Sequence[str]
) -> dict[str, int]:
    """Labels versions; TF Serving then loads the labelled versions.

    The highest of them answers requests without a label. Comments in the file are lost.

    Args:
        config: TF Serving's `models.config`; it is created if it does not exist, else replaced atomically.
        folder: the serving folder, which the file names as `base_path`.
        assignments: `label=version`, where the version is a number, `newest`, or a label in the file; without a version
            the label is removed.

    Returns:
        All labels of the model and their versions.

    Raises:
        ConfigError: as `read_labels`; or an assignment does not name a complete version.
    """
    models = parse_models(config) if Path(config).exists() else _new(folder)
    model = _model(models, config, folder)
    labels = dict(model.version_labels)
    versions = [int(path.name) for path in complete_versions(folder)]
    for assignment in assignments:
        label, equals, wanted = (part.strip() for part in assignment.partition("="))
        if not (label and equals):
            raise ConfigError(f"{assignment!r}: is not LABEL=VERSION, such as stable=canary.")
        if not wanted:
            labels.pop(label, None)
            continue
        names = {**{str(version): version for version in versions}, NEWEST: max(versions, default=None), **labels}
        if names.get(wanted) not in versions:
            raise ConfigError(f"{assignment}: {folder}: {unknown('version or label', wanted, sorted(names))}")
        labels[label] = names[wanted]
    if not labels:
        raise ConfigError(f"{config}: no version would have a label, so none would be served. Keep one label.")
    _write(models, model, labels, config, folder)
    return dict(sorted(labels.items()))


def move_labels(config: str | os.PathLike[str], folder: str | os.PathLike[str], version: int) -> dict[str, int]:
    """Moves the labels of all versions above a version to it; returns the moved labels and the version."""
    models = parse_models(config)
    model = _model(models, config, folder)
    moved = {label: version for label, number in sorted(model.version_labels.items()) if number > version}
    if moved:
        _write(models, model, {**model.version_labels, **moved}, config, folder)
    return moved


def _new(folder: str | os.PathLike[str]) -> Any:
    models, place = ModelServerConfig(), Path(folder).absolute()
    models.model_config_list.config.add(name=place.name, base_path=str(place), model_platform="tensorflow")
    return models


def _model(models: Any, config: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Any:
    """The entry of the file whose `base_path` is the folder."""
    root, wanted = Path(config).absolute().parent, Path(folder).resolve()
    paths = {model.base_path: model for model in models.model_config_list.config}
    for path, model in paths.items():
        if (root / path).resolve() == wanted:
            return model
    listed = ", ".join(paths) or "none"
    raise ConfigError(f"{os.fspath(config)}: no model has the base_path {folder}; it has {listed}.")


def _write(
    models: Any, model: Any, labels: Mapping[str, int], config: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> None:
    ModelSettings(model.name, Path(folder), labels)  # raises for a label that is not valid in a URL
    model.version_labels.clear()
    model.version_labels.update(labels)
    model.model_version_policy.specific.versions[:] = sorted(set(labels.values()))
    with atomic_file(config) as file:
        file.write(text_format.MessageToString(models).encode())
