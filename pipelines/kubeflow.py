"""Compiles the pipeline for Kubeflow (one YAML file for its API server) or Vertex AI (one JSON file)."""

import json
from pathlib import Path
from typing import Any

import yaml

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.code_version import code_version
from crowdzoo.files.writing import atomic_file
from crowdzoo.pipelines.config.kubeflow_checks import run_parameters
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.kubeflow_step import STEP_CODE
from crowdzoo.pipelines.pipeline import create_pipeline

# Command of a container: TFX's entry point, with the artifacts where Kubeflow's launcher puts them
COMMAND = ["python", "-m", "crowdzoo.pipelines.kubeflow_step"]
ON_SERVED = ("DriftValidator", "Evaluator", "Pusher")  # components whose results depend on the served model
_TYPES = {int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE", str: "STRING"}


def compile_pipeline(config: PipelineConfig, out: str | Path, *, vertex: bool = False) -> None:
    """Writes the pipeline as Kubeflow's PipelineSpec (version 2.1), with the platform spec as a second document.

    For Vertex AI it writes a PipelineJob, which contains the spec.

    Args:
        config: result of `load_config` with `on="kubeflow"` or "vertex".
        out: path of the YAML file; for Vertex AI of the JSON file.
        vertex: whether to compile for Vertex AI.

    Raises:
        OSError: the file cannot be written.
    """
    kubeflow = config.kubeflow
    pipeline = create_pipeline(config, kubeflow=True)
    for node in pipeline.components:
        wanted = kubeflow.resources_of(node.id)
        cpu, memory = (wanted.cpu, wanted.cpu_limit), (wanted.memory_gb, wanted.memory_limit_gb)
        node.with_platform_config(tfx.kubeflow_resources(cpu, memory, wanted.gpus or 0, kubeflow.gpu_type))
    job = tfx.kubeflow_job(pipeline, str(kubeflow.image), COMMAND)
    spec = job["pipelineSpec"]
    # the launcher's API has this next to the spec, and uses the spec's value if a run does not set another
    spec["defaultPipelineRoot"] = kubeflow.pipeline_root
    version = code_version(*STEP_CODE)
    for name, component in spec["components"].items():
        container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        container["args"] += [*_local_paths(component), "--compiled_from", version]
        wanted = kubeflow.resources_of(name)
        if wanted.env:
            container["env"] = [{"name": key, "value": value} for key, value in sorted(wanted.env.items())]
        if wanted.gpus:
            container["image"] = kubeflow.gpu_image
        task = spec["root"]["dag"]["tasks"][name]
        if wanted.retries:
            task["retryPolicy"] = {"maxRetryCount": wanted.retries, "backoffDuration": "30s", "backoffFactor": 2}
        if kubeflow.cache and name not in ON_SERVED:
            task["cachingOptions"] = {"enableCache": True}
    values = run_parameters(config)
    for key in kubeflow.parameters:
        _add_parameter(spec, key, values[key])
    if vertex:
        text = json.dumps(job, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    else:
        platform = _platform(config, {name: each["executorLabel"] for name, each in spec["components"].items()})
        text = yaml.safe_dump_all([spec, *platform], sort_keys=True, allow_unicode=True)
    with atomic_file(out) as file:
        file.write(text.encode())


def _local_paths(component: dict[str, Any]) -> list[str]:
    """Arguments with the local paths at which the launcher puts input artifacts and expects output artifacts."""
    arguments = []
    for side in ("input", "output"):
        for key in component.get(f"{side}Definitions", {}).get("artifacts", {}):
            arguments += ["--local_path", f"{side}s.{key}={{{{$.{side}s.artifacts['{key}'].path}}}}"]
    return arguments


def _add_parameter(spec: dict[str, Any], key: str, value: Any) -> None:
    """Makes a setting a parameter of the run; the component's entry point puts it into the component's settings."""
    section, setting = key.split(".")
    component, place = {
        "data": ("AnnotationExampleGen", f"settings.{setting}"),
        "training": ("Trainer", f"custom_config.{key}"),
        "evaluation": ("Evaluator", f"settings.{setting.split('_')[0]}"),
    }[section]
    name, kind = key.replace(".", "_"), {"parameterType": _TYPES[type(value)]}
    parameters = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    parameters[name] = {**kind, "defaultValue": value, "isOptional": True, "description": f"The setting {key}."}
    spec["components"][component]["inputDefinitions"]["parameters"][name] = kind
    spec["root"]["dag"]["tasks"][component]["inputs"]["parameters"][name] = {"componentInputParameter": name}
    executor = spec["deploymentSpec"]["executors"][spec["components"][component]["executorLabel"]]
    executor["container"]["args"] += ["--setting", f"{name}={place}"]


def _platform(config: PipelineConfig, executors: dict[str, str]) -> list[dict[str, Any]]:
    """The document for Kubernetes, in the form of `kfp.kubernetes`; empty if it is not needed.

    Args:
        config: configuration of the pipeline.
        executors: label of each component's executor.
    """
    kubeflow, parts_by_label = config.kubeflow, {}
    for name, label in executors.items():
        resources = kubeflow.resources_of(name)
        parts: dict[str, Any] = {
            "secretAsEnv": [
                {"secretName": secret, "keyToEnv": [{"secretKey": keys[name], "envVar": name} for name in sorted(keys)]}
                for secret, keys in sorted(resources.secrets.items())
            ],
            "pvcMount": [{"constant": claim, "mountPath": mount} for claim, mount in sorted(kubeflow.volumes.items())],
            "imagePullSecret": [{"secretName": secret} for secret in kubeflow.image_pull_secrets],
            "nodeSelector": {"labels": resources.node_selector} if resources.node_selector else {},
            "tolerations": [toleration.model_dump(exclude_none=True) for toleration in resources.tolerations or ()],
        }
        if parts := {key: part for key, part in parts.items() if part}:
            parts_by_label[label] = json.loads(json.dumps(parts))  # else YAML would write anchors
    return [{"platforms": {"kubernetes": {"deploymentSpec": {"executors": parts_by_label}}}}] if parts_by_label else []
