"""What is to be deployed, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from crowdzoo.errors import ConfigError, short_repr, unknown
from crowdzoo.files.version_folders import MAX_VERSION, version_folders
from crowdzoo.serving.deploy.model_place import ModelPlace

__all__ = ["Deployment"]

# Part of an address, and of a line of TensorFlow Serving's configuration
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_OBJECT = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")  # Kubernetes adds to it, and takes 63 characters
_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]*?(:(?P<tag>[\w][\w.-]{0,127})|@sha256:[0-9a-f]{64})")


@dataclass(frozen=True)
class Deployment:
    """TensorFlow Serving for some models, whatever runs its containers.

    Attributes:
        models: name of each model -> where its folder is.
        image: image of TensorFlow Serving, with a tag or a digest.
        labels: name of a model -> label -> version. A model with labels serves these versions and no other; any other
            model serves its newest version.
        name: name of the service and of what belongs to it.
        replicas: how many servers there are at least.
        max_replicas: how many there are at most, under load.
        cpu: cores of each server, asked for and at most.
        memory_gb: memory of each server in GiB, asked for and at most.
        gpus: GPUs of each server.
        batch: rows that are computed together at most; None: each request by itself.
        user: number of the user that the server runs as.
        service_account: the cluster's account for the server, where a store asks for one.

    Raises:
        ConfigError: a value that cannot be; a label of a version that is not in a model's folder, where that is
            readable here.
    """

    models: Mapping[str, ModelPlace]
    image: str
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    name: str = ""
    replicas: int = 2
    max_replicas: int = 0
    cpu: float = 2.0
    memory_gb: float = 4.0
    gpus: int = 0
    batch: int | None = None
    user: int = 1000
    service_account: str | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise ConfigError("models: name at least one.")
        for model in self.models:
            if not _MODEL.fullmatch(model):
                raise ConfigError(
                    f"model {short_repr(model)}: a name has letters, digits and . _ - only, and begins with no sign."
                )
        _check_image(self.image)
        if not self.name:
            first = re.sub(r"[^a-z0-9]+", "-", next(iter(self.models)).lower()).strip("-")[:40].rstrip("-")
            object.__setattr__(self, "name", first if _OBJECT.fullmatch(first) else f"model-{first}"[:40].rstrip("-"))
        if not _OBJECT.fullmatch(self.name):
            raise ConfigError(
                f"name {short_repr(self.name)}: must have a to z, digits and - only, begin with a letter, end with a "
                "letter or digit, and have at most 40 characters."
            )
        if self.service_account is not None and not _ACCOUNT.fullmatch(self.service_account):
            raise ConfigError(f"service_account {short_repr(self.service_account)}: must have a to z, digits, - and .")
        if self.max_replicas == 0:
            object.__setattr__(self, "max_replicas", 2 * self.replicas)
        if self.max_replicas < self.replicas:
            raise ConfigError(f"max_replicas is {self.max_replicas}, fewer than the {self.replicas} of replicas.")
        for model, labels in self.labels.items():
            if model not in self.models:
                raise ConfigError(unknown("model", model, self.models))
            self._check_labels(model, labels)

    @property
    def threads(self) -> int:
        """Cores of each server, as a whole number."""
        return math.ceil(self.cpu)

    def versions(self, model: str) -> list[int]:
        """The versions of a model that have a label, ascending; none where it serves its newest."""
        return sorted(set(self.labels.get(model, {}).values()))

    def _check_labels(self, model: str, labels: Mapping[str, int]) -> None:
        folder = self.models[model].folder
        there = None
        if folder is not None and folder.is_dir():
            there = sorted(version_folders(folder)[0])
        for label, version in labels.items():
            if not _LABEL.fullmatch(label):
                raise ConfigError(
                    f"label {short_repr(label)}: must have letters, digits and . _ - only, and begin with a letter."
                )
            if not 0 <= version <= MAX_VERSION:
                raise ConfigError(f"label {label}: version {version} is not from 0 to {MAX_VERSION}.")
            if there is not None and version not in there:
                found = ", ".join(map(str, there)) or "none"
                raise ConfigError(f"label {label}: {folder} has no version {version}; versions are {found}.")


def _check_image(image: str) -> None:
    found = _IMAGE.fullmatch(image)
    if found is None:
        raise ConfigError(f"image {short_repr(image)}: must have a tag or a digest, such as tensorflow/serving:2.16.1.")
    if found["tag"] == "latest":
        raise ConfigError(f"image {short_repr(image)}: `latest` is another image tomorrow; name a version.")
