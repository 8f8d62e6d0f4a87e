"""A deployment as Kubernetes' own objects."""

from __future__ import annotations

from typing import Any

from crowdzoo.errors import ConfigError
from crowdzoo.serving.deploy.containers import (
    CONFIG_FOLDER,
    SERVER,
    account,
    config_map,
    labels_of,
    locked_down,
    pod_annotations,
    probes,
    resources,
    scratch,
)
from crowdzoo.serving.deploy.deployment import Deployment
from crowdzoo.serving.deploy.model_place import ModelPlace
from crowdzoo.serving.deploy.server_files import server_arguments, server_files

__all__ = ["kubernetes_objects"]

_REST, _GRPC = 8501, 8500  # in the container
_CPU_PERCENT = 70


def kubernetes_objects(deployment: Deployment, rest_port: int = _REST, grpc_port: int = _GRPC) -> dict[str, Any]:
    """A Deployment with what belongs to it.

    Args:
        deployment: what is to be deployed.
        rest_port: port of the service for REST.
        grpc_port: port of the service for gRPC.

    Returns:
        Name of a file -> the object in it.

    Raises:
        ConfigError: a model in a store that TensorFlow Serving cannot read.
    """
    base_paths, volumes, mounts = {}, [], []
    for number, (model, place) in enumerate(deployment.models.items()):
        if place.uri is not None:
            if place.uri.startswith("s3://"):
                raise ConfigError(
                    f"model {model}: TensorFlow Serving's images read no s3:// since version 2.7. Use a volume "
                    "(pvc://CLAIM/FOLDER), or the target kserve, which copies the model from there."
                )
            base_paths[model] = place.uri
            continue
        base_paths[model] = f"/models/{model}"
        volume, mount = _mounted(place, f"model-{number}", base_paths[model])
        volumes.append(volume)
        mounts.append(mount)
    names, selector = {"name": deployment.name, "labels": labels_of(deployment)}, _selector(deployment)
    files = server_files(deployment, base_paths)
    container = {
        "name": "tensorflow-serving",
        "image": deployment.image,
        "command": [SERVER],  # as the first process, which SIGTERM does not end
        "args": [f"--port={_GRPC}", f"--rest_api_port={_REST}", *server_arguments(deployment, CONFIG_FOLDER)],
        "ports": [{"name": "http", "containerPort": _REST}, {"name": "grpc", "containerPort": _GRPC}],
        **probes(deployment, "http", startup=True),
        "resources": resources(deployment),
        "securityContext": locked_down(deployment),
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            *mounts,
        ],
    }
    pod = {
        "metadata": {"labels": labels_of(deployment), "annotations": pod_annotations(files, _REST)},
        "spec": {
            **account(deployment),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "fsGroup": deployment.user},
            # TensorFlow Serving does not end by SIGTERM: so long it answers what is on the way
            "terminationGracePeriodSeconds": 30,
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": selector,
                }
            ],
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": f"{deployment.name}-config"}}, scratch(), *volumes],
        },
    }
    return {
        "configmap.yaml": config_map(deployment, files),
        "deployment.yaml": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": names,
            "spec": {  # the autoscaler says how many replicas
                "selector": selector,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                "template": pod,
            },
        },
        "service.yaml": {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": names,
            "spec": {
                "selector": selector["matchLabels"],
                "ports": [
                    {"name": "http", "port": rest_port, "targetPort": "http", "appProtocol": "http"},
                    {"name": "grpc", "port": grpc_port, "targetPort": "grpc", "appProtocol": "kubernetes.io/h2c"},
                ],
            },
        },
        "hpa.yaml": {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": names,
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name},
                "minReplicas": deployment.replicas,
                "maxReplicas": deployment.max_replicas,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": _CPU_PERCENT},
                        },
                    }
                ],
            },
        },
        "pdb.yaml": {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": names,
            "spec": {"maxUnavailable": 1, "selector": selector},
        },
    }  # fmt: skip


def _selector(deployment: Deployment) -> dict[str, Any]:
    found = labels_of(deployment)
    return {"matchLabels": {key: found[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}}


def _mounted(place: ModelPlace, name: str, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The volume and its mount."""
    mount: dict[str, Any] = {"name": name, "mountPath": path, "readOnly": True}
    if place.claim is None:
        return {"name": name, "hostPath": {"path": str(place.folder), "type": "Directory"}}, mount
    if place.path:
        mount["subPath"] = place.path
    return {"name": name, "persistentVolumeClaim": {"claimName": place.claim, "readOnly": True}}, mount
