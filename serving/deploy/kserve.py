"""A deployment as an InferenceService of KServe."""

from __future__ import annotations

from typing import Any

from crowdzoo.errors import ConfigError
from crowdzoo.serving.deploy.containers import (
    CONFIG_FOLDER,
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
from crowdzoo.serving.deploy.server_files import server_arguments, server_files

__all__ = ["kserve_objects"]

_REST = 8080  # of KServe's runtime for TensorFlow, whose arguments come before ours
_COPY = "/mnt/models"  # where KServe puts the model
_CPU_PERCENT = 70
_MODE = {"deploymentMode": "RawDeployment", "autoscalerClass": "hpa"}


def kserve_objects(deployment: Deployment) -> dict[str, Any]:
    """An InferenceService on KServe's runtime `kserve-tensorflow-serving`, and the ConfigMap that it mounts.

    Args:
        deployment: what is to be deployed.

    Returns:
        Name of a file -> the object in it.

    Raises:
        ConfigError: several models, a model in a folder of one machine, or a name that is not the model's.
    """
    if len(deployment.models) > 1:
        raise ConfigError("kserve: an InferenceService has one model. Run the command once for each model.")
    ((model, place),) = deployment.models.items()
    if place.folder is not None:
        raise ConfigError(
            f"model {model}: {place.folder} is a folder of one machine, which KServe does not read. Use pvc://, "
            "gs:// or s3://."
        )
    if model != deployment.name:
        raise ConfigError(
            f"model {model}: KServe's paths have the name of the InferenceService, so the model must have it, too: "
            f"name it {deployment.name}."
        )
    files = server_files(deployment, {model: _COPY})
    return {
        "configmap.yaml": config_map(deployment, files),
        "inferenceservice.yaml": {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {
                "name": deployment.name,
                "labels": labels_of(deployment),
                # Knative, the usual mode, does not scale by the processor
                "annotations": {f"serving.kserve.io/{key}": value for key, value in _MODE.items()},
            },
            "spec": {
                "predictor": {
                    **account(deployment),
                    "annotations": pod_annotations(files, _REST),
                    "minReplicas": deployment.replicas,
                    "maxReplicas": deployment.max_replicas,
                    "scaleMetric": "cpu",
                    "scaleTarget": _CPU_PERCENT,
                    "model": {
                        "modelFormat": {"name": "tensorflow"},
                        "runtime": "kserve-tensorflow-serving",
                        "protocolVersion": "v1",
                        "storageUri": str(place),
                        "image": deployment.image,
                        "args": server_arguments(deployment, CONFIG_FOLDER),
                        **probes(deployment, _REST, startup=False),
                        "resources": resources(deployment),
                        "securityContext": locked_down(deployment),
                        "volumeMounts": [
                            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
                            {"name": "tmp", "mountPath": "/tmp"},
                        ],
                    },
                    "volumes": [
                        {"name": "config", "configMap": {"name": f"{deployment.name}-config"}},
                        scratch(),
                    ],
                },
            },
        },
    }
