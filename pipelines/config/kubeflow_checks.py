"""Checks a configuration for Kubeflow, where local files are not available."""

import re
from typing import Any

from crowdzoo.errors import short_repr, unknown
from crowdzoo.files.paths import scheme_of
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.training.bases import is_own

STORES = ("gs", "s3")  # schemes of object stores that components read and write themselves
_ROOTS = (*STORES, "minio")  # schemes that Kubeflow's launcher supports
_ACCELERATOR = re.compile(r"[A-Z0-9]+(_[A-Z0-9]+)+")  # form of names in Vertex AI
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_WANTED = "a URI that begins with gs:// or s3://, or a path below where a volume of kubeflow.volumes is mounted"


def kubeflow_problems(config: PipelineConfig) -> list[str]:
    """Checks requirements of Kubeflow.

    Args:
        config: configuration loaded for Kubeflow, whose places may be URIs.

    Returns:
        One sentence for each problem: key, value, what is wrong, the fix.
    """
    return [*_own_problems(config), *_place_problems(config), *_model_problems(config), *_parameter_problems(config)]


def vertex_problems(config: PipelineConfig) -> list[str]:
    """Checks requirements of Vertex AI, which has Google's object store but no Kubernetes secrets or volumes.

    Args and returns: as `kubeflow_problems`.
    """
    kubeflow = config.kubeflow
    problems = [
        f"kubeflow.{key}: is for Kubernetes, and Vertex AI has none. Remove it."
        for key in ("secrets", "volumes", "image_pull_secrets")
        if getattr(kubeflow, key)
    ]
    problems += [
        f"kubeflow.resources.{name}.{key}: is for Kubernetes, and Vertex AI has none. Remove it."
        for name in type(kubeflow.resources).model_fields
        for key in ("secrets", "node_selector", "tolerations")
        if getattr(getattr(kubeflow.resources, name), key)
    ]
    places = {"kubeflow.pipeline_root": kubeflow.pipeline_root, "kubeflow.serving": kubeflow.serving}
    for key, place in {**places, **{f"data.{key}": place for key, place in _inputs(config).items()}}.items():
        if place is not None and scheme_of(place) != "gs":
            problems.append(f"{key}: must begin with gs:// on Vertex AI, got {short_repr(place)}.")
    components = type(kubeflow.resources).model_fields
    with_gpus = [name for name in components if name != "default" and kubeflow.resources_of(name).gpus]
    if with_gpus and not _ACCELERATOR.fullmatch(kubeflow.gpu_type):
        problems.append(
            f"kubeflow.gpu_type: must name an accelerator of Vertex AI, which {with_gpus[0]} asks for, such as "
            f"NVIDIA_TESLA_T4 or NVIDIA_L4, got {short_repr(kubeflow.gpu_type)}."
        )
    keys = {problem.split(":")[0] for problem in problems}
    return [*problems, *(each for each in kubeflow_problems(config) if each.split(":")[0] not in keys)]


def run_parameters(config: PipelineConfig) -> dict[str, Any]:
    """Settings that can be parameters of a run: dotted key -> the file's value, or None."""
    parameters = {f"training.{key}": value for key, value in config.training_arguments.items()}
    parameters["evaluation.tolerance"] = config.evaluation.tolerance
    parameters[f"evaluation.minimum_{config.label_kind.scoring.metric}"] = config.minimum
    return parameters | {f"data.{key}": place for key, place in _inputs(config).items()}


def _inputs(config: PipelineConfig) -> dict[str, str]:
    places = {key: getattr(config.data, key) for key in config.label_kind.options.inputs}
    return {key: str(place) for key, place in places.items() if place is not None}


def _own_problems(config: PipelineConfig) -> list[str]:
    kubeflow = config.kubeflow
    problems = []
    if not _NAME.fullmatch(config.name):
        problems.append(
            f"name: must hold lower-case letters, digits and - only on Kubeflow, got {short_repr(config.name)}."
        )
    if kubeflow.image is None:
        problems.append("kubeflow.image: is missing. Name an image that has crowdzoo, see docs/kubeflow.md.")
    asking = [name for name in type(kubeflow.resources).model_fields if getattr(kubeflow.resources, name).gpus]
    if asking and kubeflow.gpu_image is None:
        problems.append(
            f"kubeflow.gpu_image: is missing. {asking[0]} asks for GPUs, which an image without CUDA does not use. "
            "Name an image that was built with --extra gpu, see docs/kubeflow.md."
        )
    if kubeflow.pipeline_root is None:
        problems.append("kubeflow.pipeline_root: is missing. Name a folder of an object store, like s3://bucket/runs.")
    elif scheme_of(kubeflow.pipeline_root) not in _ROOTS:
        wanted = ", ".join(f"{scheme}://" for scheme in _ROOTS)
        problems.append(
            f"kubeflow.pipeline_root: must begin with one of {wanted}, got {short_repr(kubeflow.pipeline_root)}."
        )
    elif config.training.checkpoint and scheme_of(kubeflow.pipeline_root) not in STORES:
        problems.append(
            "training.checkpoint: is kept below kubeflow.pipeline_root, which must begin with gs:// or s3:// then, got "
            f"{short_repr(kubeflow.pipeline_root)}. Set checkpoint to false, or name another root."
        )
    if config.training.warm_start:
        problems.append(
            "training.warm_start: begins with a training whose files are in this machine's output.root, which no "
            "container sees. Remove it, or run on this machine."
        )
    return problems


def _place_problems(config: PipelineConfig) -> list[str]:
    problems = []
    for key, place in _inputs(config).items():
        problems += _wrong_place(config, f"data.{key}", place)
    if config.kubeflow.serving is None:
        problems.append(f"kubeflow.serving: is missing. Name the folder of pushed models, {_WANTED}.")
    else:
        problems += _wrong_place(config, "kubeflow.serving", config.kubeflow.serving)
    for key, path in config.model_files.items():
        problems.append(
            f"{key}: {path} is a file of this machine, which no container sees. Use a network of keras.applications "
            "without a file of weights, or run on this machine."
        )
    return problems


def _wrong_place(config: PipelineConfig, key: str, place: str) -> list[str]:
    scheme = scheme_of(place)
    if scheme is None and not config.kubeflow.on_volume(place):
        return [f"{key}: {place} is a path of this machine, which no container sees. It must be {_WANTED}."]
    if scheme is not None and scheme not in STORES:
        return [f"{key}: {scheme}:// is not supported. It must be {_WANTED}, got {short_repr(place)}."]
    if set("*?[") & set(place):
        return [f"{key}: must not hold * ? or [, which Beam takes for patterns, got {short_repr(place)}."]
    return []


def _model_problems(config: PipelineConfig) -> list[str]:
    if config.model.base is not None and is_own(config.model.base):
        return ["model.base: a function of your own cannot run on Kubeflow. Choose a base of crowdzoo, or run here."]
    unread = config.data.dataset is None and "instances" in config.label_kind.options.inputs
    if unread and config.model.base is None:
        bases = ", ".join(config.label_kind.training.bases)
        return [
            "model.base: must be named on Kubeflow, because the file of instances is not read when the pipeline is "
            f"compiled. It is one of {bases}."
        ]
    return []


def _parameter_problems(config: PipelineConfig) -> list[str]:
    allowed = run_parameters(config)
    problems = []
    for key in config.kubeflow.parameters:
        if key not in allowed:
            problems.append(f"kubeflow.parameters: {unknown('parameter', key, list(allowed))}")
        elif allowed[key] is None:
            problems.append(f"kubeflow.parameters: {key} has no value here that could be its default. Set {key}.")
    return problems
