"""The section of settings for Kubeflow."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from crowdzoo.errors import short_repr
from crowdzoo.pipelines.config.sections import Section
from crowdzoo.pipelines.config.values import Bool, Count, Resource

_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PAIRS = (("cpu", "cpu_limit"), ("memory_gb", "memory_limit_gb"))  # requests and limits
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _checked_names(names: dict[str, Any]) -> dict[str, Any]:
    """Checks names of variables, which may be grouped by secrets, and returns them unchanged."""
    for name, value in names.items():
        if isinstance(value, dict):
            _check_object("secret", name)
            _checked_names(value)
        elif not _VARIABLE.fullmatch(name):
            raise ValueError(f"must hold names of environment variables, which {short_repr(name)} is not")
    return names


class Toleration(Section):
    """A taint of nodes that a component's pod tolerates; the keys are those of Kubernetes."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class ComponentResources(Section):
    """Resources, environment and placement of a component's container.

    Attributes:
        cpu: requested number of cores.
        cpu_limit: limit of cores; default `cpu`.
        memory_gb: requested memory, in GB.
        memory_limit_gb: limit of memory, in GB; default `memory_gb`.
        gpus: number of GPUs, of the kind `kubeflow.gpu_type`.
        retries: number of times that Kubeflow restarts it after a failure.
        node_selector: required labels of its node.
        tolerations: taints that its node may have.
        env: environment variables in addition to those of all containers, name -> value.
        secrets: secrets in addition to those of all containers; see `KubeflowConfig`.
    """

    cpu: Resource | None = None
    cpu_limit: Resource | None = None
    memory_gb: Resource | None = None
    memory_limit_gb: Resource | None = None
    gpus: Count | None = None
    retries: Count | None = None
    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    env: Annotated[dict[str, str], AfterValidator(_checked_names)] = Field(default={})
    secrets: Annotated[dict[str, dict[str, str]], AfterValidator(_checked_names)] = Field(default={})

    @model_validator(mode="after")
    def _limits(self) -> "ComponentResources":
        for request, limit in _PAIRS:
            if (getattr(self, limit) or 1e9) < (getattr(self, request) or 0):
                least, most = getattr(self, request), getattr(self, limit)
                raise ValueError(f"'{limit}' ({most:g}) is below '{request}' ({least:g}), which it asks for")
        return self


class ResourcesConfig(Section):
    """Resources by the name of a component; `default` applies to settings that a component does not have."""

    default: ComponentResources = ComponentResources()
    AnnotationExampleGen: ComponentResources = ComponentResources()
    StatisticsGen: ComponentResources = ComponentResources()
    SchemaGen: ComponentResources = ComponentResources()
    ExampleValidator: ComponentResources = ComponentResources()
    DriftValidator: ComponentResources = ComponentResources()
    CrowdAggregator: ComponentResources = ComponentResources()
    Trainer: ComponentResources = ComponentResources()
    Evaluator: ComponentResources = ComponentResources()
    CrowdReport: ComponentResources = ComponentResources()
    Pusher: ComponentResources = ComponentResources()


class KubeflowConfig(Section):
    """How `crowdzoo run --on kubeflow` compiles the pipeline. The first three settings are required.

    Attributes:
        image: image of the containers, with crowdzoo and its extra `pipeline` installed.
        pipeline_root: URI below which Kubeflow stores artifacts.
        serving: folder of pushed models, a URI or a path on one of the volumes; replaces `output.serving`.
        gpu_image: image of the containers that request GPUs, with the extra `gpu` as well.
        image_pull_secrets: names of Kubernetes secrets with which images are pulled.
        cache: whether to skip a component whose parameters and inputs are those of an earlier run. Kubeflow compares
            names of input files and not their content, so use it only for files that never change.
        parameters: settings that are parameters of a run, such as `training.epochs`, with the file's value as default.
        resources: resources of each component's container.
        gpu_type: the cluster's resource name of GPUs.
        env: environment variables of all containers, name -> value.
        secrets: secrets of all containers, name of a Kubernetes secret -> environment variable -> key of the secret.
        volumes: name of a persistent volume claim -> its mount path in all containers.
    """

    image: Annotated[str, Field(min_length=1)] | None = None
    pipeline_root: str | None = None
    serving: str | None = None
    gpu_image: Annotated[str, Field(min_length=1)] | None = None
    image_pull_secrets: tuple[str, ...] = ()
    cache: Bool = False
    parameters: tuple[str, ...] = ()
    resources: ResourcesConfig = ResourcesConfig()
    gpu_type: str = "nvidia.com/gpu"
    env: Annotated[dict[str, str], AfterValidator(_checked_names)] = Field(default={})
    secrets: Annotated[dict[str, dict[str, str]], AfterValidator(_checked_names)] = Field(default={})
    volumes: dict[str, str] = Field(default={})

    @field_validator("image", "gpu_image")
    @classmethod
    def _one_word(cls, image: str | None) -> str | None:
        if image is not None and len(image.split()) != 1:
            raise ValueError("must be the name of an image, such as registry.example.com/crowdzoo:1.0")
        return image

    @field_validator("image_pull_secrets")
    @classmethod
    def _pull_secrets(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            _check_object("secret", name)
        return names

    @field_validator("volumes")
    @classmethod
    def _volumes(cls, volumes: dict[str, str]) -> dict[str, str]:
        for claim, mount in volumes.items():
            _check_object("persistent volume claim", claim)
            if not mount.startswith("/") or ".." in PurePosixPath(mount).parts or PurePosixPath(mount).name == "":
                raise ValueError(f"must name an absolute path below / for {claim}, like /mnt/data")
        return volumes

    def on_volume(self, path: str) -> bool:
        """Whether a path is below the mount path of a volume."""
        place = PurePosixPath(path)
        return ".." not in place.parts and any(PurePosixPath(mount) in place.parents for mount in self.volumes.values())

    def resources_of(self, component: str) -> ComponentResources:
        """Resources of a component, with defaults filled in.

        A default limit is raised to the component's own request, a default request lowered to its own limit.
        """
        own = getattr(self.resources, component).model_dump(exclude_unset=True)
        resources = {**self.resources.default.model_dump(exclude_unset=True), **own}
        for request, limit in _PAIRS:
            if (least := resources.get(request) or 0) > (resources.get(limit) or least):
                resources |= {request: resources[limit]} if limit in own else {limit: least}
        for key in ("env", "secrets"):
            resources[key] = {**getattr(self, key), **resources.get(key, {})}
        return ComponentResources(**resources)


def _check_object(kind: str, name: str) -> None:
    if not _CLAIM.fullmatch(name):
        raise ValueError(f"must hold the name of a {kind}: lower-case letters, digits, - and . only")
