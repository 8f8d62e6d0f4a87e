"""The container of TensorFlow Serving as Kubernetes describes containers, for Kubernetes itself and for KServe."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from crowdzoo.serving.deploy.deployment import Deployment
from crowdzoo.serving.deploy.server_files import METRICS_PATH, MODELS

__all__ = [
    "CONFIG_FOLDER",
    "SERVER",
    "account",
    "config_map",
    "digest",
    "labels_of",
    "locked_down",
    "pod_annotations",
    "probes",
    "resources",
    "scratch",
    "status_path",
]

CONFIG_FOLDER = "/etc/tensorflow-serving"
SERVER = "/usr/bin/tensorflow_model_server"
_SECONDS_TO_START = 600


def labels_of(deployment: Deployment) -> dict[str, str]:
    """What all objects of a deployment are found by."""
    return {
        "app.kubernetes.io/name": "tensorflow-serving",
        "app.kubernetes.io/instance": deployment.name,
        "app.kubernetes.io/managed-by": "crowdzoo",
    }


def config_map(deployment: Deployment, files: dict[str, str]) -> dict[str, Any]:
    """The ConfigMap with TensorFlow Serving's files."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{deployment.name}-config", "labels": labels_of(deployment)},
        "data": files,
    }


def locked_down(deployment: Deployment) -> dict[str, Any]:
    """A container's security context: not root, no privileges, nothing written to its own file system."""
    return {
        "runAsNonRoot": True,
        "runAsUser": deployment.user,
        "runAsGroup": deployment.user,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def resources(deployment: Deployment) -> dict[str, Any]:
    """What a container asks for, which is also all that it gets."""
    amounts: dict[str, str] = {
        "cpu": f"{round(1000 * deployment.cpu)}m",
        "memory": f"{round(1024 * deployment.memory_gb)}Mi",
    }
    if deployment.gpus:
        amounts["nvidia.com/gpu"] = str(deployment.gpus)
    return {"requests": amounts, "limits": dict(amounts)}


def status_path(model: str) -> str:
    """Where TensorFlow Serving answers 200 as long as a version of the model can be asked."""
    return f"/v1/models/{model}/metadata"


def probes(deployment: Deployment, port: int | str, *, startup: bool) -> dict[str, Any]:
    """Requests by which the platform sees how a server is.

    TensorFlow Serving opens its ports when all models are loaded and warmed up.

    Args:
        deployment: what is deployed.
        port: of the REST API.
        startup: whether the platform knows startup probes. Without, the first look at its health comes later.
    """
    first = next(iter(deployment.models))
    ready = {"httpGet": {"path": status_path(first), "port": port}, "periodSeconds": 5, "timeoutSeconds": 5}
    alive = {
        "httpGet": {"path": f"/v1/models/{first}", "port": port},
        "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6,
    }  # fmt: skip
    if startup:
        patient = {**ready, "failureThreshold": _SECONDS_TO_START // 5}
        return {"startupProbe": patient, "readinessProbe": ready, "livenessProbe": alive}
    return {"readinessProbe": ready, "livenessProbe": {**alive, "initialDelaySeconds": _SECONDS_TO_START}}


def pod_annotations(files: Mapping[str, str], port: int) -> dict[str, str]:
    """What is noted on each server: where Prometheus finds its metrics, and what it read of its files when it started.

    A change of these makes the platform replace its servers; `models.config` is read again while they run.
    """
    read_once = {name: text for name, text in files.items() if name != MODELS}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port),
        "prometheus.io/path": METRICS_PATH,
        "crowdzoo/config": digest(read_once),
    }


def digest(files: Mapping[str, str]) -> str:
    """A short text that changes with the files."""
    return hashlib.sha256("".join(files.values()).encode()).hexdigest()[:16]


def account(deployment: Deployment) -> dict[str, str]:
    """The service account, where one is named."""
    return {} if deployment.service_account is None else {"serviceAccountName": deployment.service_account}


def scratch() -> dict[str, Any]:
    """A small folder for temporary files, the only one that the server can write to."""
    return {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}
