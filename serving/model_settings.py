"""Reads which models to serve from TF Serving's `models.config`."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.files.paths import local_path
from crowdzoo.files.text import configuration_text
from crowdzoo.files.version_folders import MAX_VERSION

log = logging.getLogger("crowdzoo.serving")

_NAME = re.compile(r"[^/:\s]+")
# The line of the file that protobuf quotes in some messages
_LINE = re.compile(r"^'.*': (?=[A-Z])", re.DOTALL)


@dataclass(frozen=True)
class VersionPolicy:
    """TF Serving's `model_version_policy`.

    Attributes:
        latest: number of versions to serve, highest numbers first; None for all.
        only: the versions that may be served; None for any.
    """

    latest: int | None = 1
    only: frozenset[int] | None = None


@dataclass(frozen=True)
class ModelSettings:
    """One model of a server.

    Attributes:
        name: its name in requests.
        folder: folder with one subfolder per version.
        labels: label -> version, for `/labels/<label>`; these versions are served in addition to those of the policy.
        policy: which versions are served.

    Raises:
        ConfigError: a name or label that is not valid in a URL, or an invalid version.
    """

    name: str
    folder: Path
    labels: Mapping[str, int] = field(default_factory=dict)
    policy: VersionPolicy = field(default_factory=VersionPolicy)

    def __post_init__(self) -> None:
        for subject, text in (("name", self.name), *(("version label", label) for label in self.labels)):
            if not _NAME.fullmatch(text):
                raise ConfigError(f"{subject}: {short_repr(text)} cannot be in a URL; use letters, digits, '-' and '_'")
        for version in (*self.labels.values(), *(self.policy.only or ())):
            if not 0 <= version <= MAX_VERSION:
                raise ConfigError(f"model {self.name!r}: version {version} is not a number from 0 to 2^63 - 1")


def read_model_settings(path: str | os.PathLike[str]) -> list[ModelSettings]:
    """Reads the models from a file such as TF Serving's `--model_config_file`.

    Args:
        path: a `ModelServerConfig` in protobuf's text format. A `base_path` in it may be relative to the file.

    Raises:
        ConfigError: no such file, not such a message, no model, a repeated name, or an unsupported field; the message
            names the file, and the model or the line.
    """
    file = os.fspath(path)
    entries = parse_models(path).model_config_list.config
    if not entries:
        raise ConfigError(f"{file}: must have a model_config_list with at least one config {{ name, base_path }}")
    settings_by_name: dict[str, ModelSettings] = {}
    for number, entry in enumerate(entries):
        place = f"{file}: config {number + 1} ({short_repr(entry.name)})"
        try:
            settings = _settings(entry, Path(path).absolute().parent)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from None
        if settings.name in settings_by_name:
            raise ConfigError(f"{place}: an earlier model has this name; give each its own name")
        settings_by_name[settings.name] = settings
    return list(settings_by_name.values())


class ModelsFile:
    """The models of a file, which is reloaded when it changes.

    Args:
        path: see `read_model_settings`, also for errors.

    Attributes:
        models: settings of each model by name, from the last time that the file was read without errors.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path, self._lock = Path(path), threading.Lock()
        self._seen = self._stamp()
        self.models = {model.name: model for model in read_model_settings(path)}

    def settings(self, name: str) -> ModelSettings:
        """Current settings of a model; unchanged if the file cannot be read or no longer has the model."""
        with self._lock:
            if (stamp := self._stamp()) != self._seen:
                self._seen = stamp
                try:
                    models = {model.name: model for model in read_model_settings(self._path)}
                except (ConfigError, OSError) as error:
                    log.warning("crowdzoo serve: %s is not followed: %s", self._path, error)
                else:
                    if models.keys() != self.models.keys():
                        log.warning("crowdzoo serve: %s: other models are served after a restart", self._path)
                    self.models |= {name: models[name] for name in models.keys() & self.models.keys()}
            return self.models[name]

    def _stamp(self) -> tuple[int, ...]:
        try:
            state = self._path.stat()
        except OSError:
            return ()
        return state.st_mtime_ns, state.st_size, state.st_ino


def parse_models(path: str | os.PathLike[str]) -> Any:
    """Parses the `ModelServerConfig` of a file.

    Raises:
        ConfigError: no such file, or not such a message; the error names file, line and column.
    """
    try:
        return text_format.Parse(configuration_text(path), ModelServerConfig())
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        place = f", line {line}, column {column}" if line is not None else ""
        reason = _LINE.sub("", str(error).split(" : ", 1)[-1]).rstrip(".")[:300]
        raise ConfigError(f"{os.fspath(path)}{place}: not a ModelServerConfig in text format: {reason}.") from None


def _settings(config: Any, folder: Path) -> ModelSettings:
    if config.model_platform not in ("", "tensorflow"):
        raise ConfigError(f"model_platform {short_repr(config.model_platform)} is not served here, only 'tensorflow'")
    if config.HasField("logging_config"):
        raise ConfigError("logging_config is not followed by this server; leave it out, and use --log-requests DIR")
    local_path(config.base_path, "base_path")
    return ModelSettings(
        config.name, folder / config.base_path, dict(config.version_labels), _policy(config.model_version_policy)
    )


def _policy(policy: Any) -> VersionPolicy:
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return VersionPolicy(None)
    if choice == "specific":
        if not policy.specific.versions:
            raise ConfigError("model_version_policy: 'specific' names no versions")
        return VersionPolicy(None, frozenset(policy.specific.versions))
    return VersionPolicy(policy.latest.num_versions or 1)  # TF Serving treats 0 as 1
