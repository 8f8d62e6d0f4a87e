"""Which models are served, out of TF Serving's `models.config`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.paths import local_path
from crowdzoo.files.version_folders import MAX_VERSION
from crowdzoo.serving.text_protos import read_text_proto
from crowdzoo.serving.version_policy import VersionPolicy

__all__ = ["ModelSettings", "model_settings", "read_model_settings"]

_NAME = re.compile(r"[^/:\s]+")


@dataclass(frozen=True)
class ModelSettings:
    """One model of a server.

    Attributes:
        name: its name in requests.
        folder: holds one subfolder a version.
        labels: label -> version, for `/labels/<label>`; these versions are served beside those of the policy.
        policy: which versions are served.

    Raises:
        ConfigError: a name or label that cannot stand in a URL, or a version that is none.
    """

    name: str
    folder: Path
    labels: Mapping[str, int] = field(default_factory=dict)
    policy: VersionPolicy = field(default_factory=VersionPolicy)

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), *(("version label", label) for label in self.labels)):
            if not _NAME.fullmatch(text):
                raise ConfigError(f"{what}: {short_repr(text)} cannot stand in a URL; use letters, digits, '-' and '_'")
        for version in (*self.labels.values(), *(self.policy.only or ())):
            if not 0 <= version <= MAX_VERSION:
                raise ConfigError(f"model {self.name!r}: version {version} is not a number from 0 to 2^63 - 1")


def read_model_settings(path: str | os.PathLike[str]) -> list[ModelSettings]:
    """The models of a file such as TF Serving's `--model_config_file`.

    Args:
        path: a `ModelServerConfig` in protobuf's text format. A `base_path` in it may be relative to the file.

    Raises:
        ConfigError: no such file, not such a message, or models that this server cannot serve; names the file, and the
            model or the line.
    """
    return model_settings(read_text_proto(path, ModelServerConfig), os.fspath(path), Path(path).absolute().parent)


def model_settings(config: Any, what: str, folder: Path | None) -> list[ModelSettings]:
    """The models of a `ModelServerConfig`.

    Args:
        config: the message.
        what: names it in errors.
        folder: where a relative `base_path` begins; None refuses it.

    Raises:
        ConfigError: no model, a name twice, or a field that this server cannot follow; names the model.
    """
    if config.WhichOneof("config") != "model_config_list" or not config.model_config_list.config:
        raise ConfigError(f"{what}: must have a model_config_list with at least one config {{ name, base_path }}")
    found: dict[str, ModelSettings] = {}
    for number, one in enumerate(config.model_config_list.config):
        place = f"{what}: config {number + 1} ({short_repr(one.name)})"
        try:
            settings = _settings(one, folder)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from None
        if settings.name in found:
            raise ConfigError(f"{place}: a model of this name stands before it; give each its own name")
        found[settings.name] = settings
    return list(found.values())


def _settings(config: Any, folder: Path | None) -> ModelSettings:
    if config.model_platform not in ("", "tensorflow"):
        raise ConfigError(f"model_platform {short_repr(config.model_platform)} is not served here, only 'tensorflow'")
    if config.HasField("logging_config"):
        raise ConfigError("logging_config is not followed by this server: it logs no payloads; leave it out")
    local_path(config.base_path, "base_path")
    path = Path(config.base_path)
    if not path.is_absolute():
        if folder is None:
            raise ConfigError(f"base_path {short_repr(config.base_path)} must be an absolute path")
        path = folder / path
    return ModelSettings(config.name, path, dict(config.version_labels), _policy(config.model_version_policy))


def _policy(policy: Any) -> VersionPolicy:
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return VersionPolicy(None)
    if choice == "specific":
        if not policy.specific.versions:
            raise ConfigError("model_version_policy: 'specific' names no versions")
        return VersionPolicy(None, frozenset(policy.specific.versions))
    return VersionPolicy(policy.latest.num_versions or 1)  # TF Serving takes 0 as 1
