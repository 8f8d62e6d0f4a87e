"""The section that says how the pipeline runs on Kubeflow."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, field_validator

from crowdzoo.errors import short_repr
from crowdzoo.pipelines.config.sections import Section
from crowdzoo.pipelines.config.values import Count, Resource

_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ComponentResources(Section):
    """What the container of a component asks for, and may use at most.

    Attributes:
        cpu: number of cores.
        memory_gb: memory in GB.
        gpus: number of GPUs, of the kind `kubeflow.gpu_type`.
    """

    cpu: Resource | None = None
    memory_gb: Resource | None = None
    gpus: Count | None = None


class ResourcesConfig(Section):
    """Resources by the name of a component; `default` holds for what a component does not say itself."""

    default: ComponentResources = ComponentResources()
    AnnotationExampleGen: ComponentResources = ComponentResources()
    StatisticsGen: ComponentResources = ComponentResources()
    SchemaGen: ComponentResources = ComponentResources()
    ExampleValidator: ComponentResources = ComponentResources()
    CrowdAggregator: ComponentResources = ComponentResources()
    Tuner: ComponentResources = ComponentResources()
    Trainer: ComponentResources = ComponentResources()
    Evaluator: ComponentResources = ComponentResources()
    CrowdReport: ComponentResources = ComponentResources()
    Pusher: ComponentResources = ComponentResources()


class KubeflowConfig(Section):
    """How `crowdzoo run --on kubeflow` compiles the pipeline. The first three settings are needed for that.

    Attributes:
        image: of the containers, with crowdzoo and its extra `pipeline` installed.
        pipeline_root: URI below which Kubeflow keeps the artifacts.
        serving: folder of pushed models, a URI or a path on one of the volumes; takes the place of `output.serving`.
        parameters: settings that are parameters of a run, such as `training.epochs`; the file's value is the default.
        resources: of each component's container.
        gpu_type: name of the cluster's resource that a GPU is.
        env: environment variables of all containers, name -> value.
        secrets: name of a Kubernetes secret -> environment variable -> key of the secret.
        volumes: name of a persistent volume claim -> where it is mounted in all containers.
    """

    image: Annotated[str, Field(min_length=1)] | None = None
    pipeline_root: str | None = None
    serving: str | None = None
    parameters: tuple[str, ...] = ()
    resources: ResourcesConfig = ResourcesConfig()
    gpu_type: str = "nvidia.com/gpu"
    env: dict[str, str] = Field(default={})
    secrets: dict[str, dict[str, str]] = Field(default={})
    volumes: dict[str, str] = Field(default={})

    @field_validator("image")
    @classmethod
    def _one_word(cls, image: str | None) -> str | None:
        if image is not None and len(image.split()) != 1:
            raise ValueError("must be the name of an image, such as registry.example.com/crowdzoo:1.0")
        return image

    @field_validator("env")
    @classmethod
    def _env(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            _check_variable(name)
        return env

    @field_validator("secrets")
    @classmethod
    def _secrets(cls, secrets: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for secret, keys in secrets.items():
            _check_object("secret", secret)
            for name in keys:
                _check_variable(name)
        return secrets

    @field_validator("volumes")
    @classmethod
    def _volumes(cls, volumes: dict[str, str]) -> dict[str, str]:
        for claim, mount in volumes.items():
            _check_object("persistent volume claim", claim)
            if not mount.startswith("/") or ".." in PurePosixPath(mount).parts or PurePosixPath(mount).name == "":
                raise ValueError(f"must name an absolute path below / for {claim}, like /mnt/data")
        return volumes

    def on_volume(self, path: str) -> bool:
        """Whether a path lies below where a volume is mounted."""
        place = PurePosixPath(path)
        return ".." not in place.parts and any(PurePosixPath(mount) in place.parents for mount in self.volumes.values())

    def resources_of(self, component: str) -> ComponentResources:
        """Resources of a component, the defaults filled in."""
        own = getattr(self.resources, component).model_dump(exclude_none=True)
        return ComponentResources(**{**self.resources.default.model_dump(exclude_none=True), **own})


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"must hold names of environment variables, which {short_repr(name)} is not")


def _check_object(kind: str, name: str) -> None:
    if not _CLAIM.fullmatch(name):
        raise ValueError(f"must hold the name of a {kind}: lower-case letters, digits, - and . only")
