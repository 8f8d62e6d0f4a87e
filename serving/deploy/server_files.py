"""What TensorFlow Serving is told, as files and as arguments; the same on every platform."""

from __future__ import annotations

from collections.abc import Mapping

from crowdzoo.serving.deploy.deployment import Deployment

__all__ = ["METRICS_PATH", "MODELS", "server_arguments", "server_files"]

METRICS_PATH = "/monitoring/prometheus/metrics"
MODELS, MONITORING, BATCHING = "models.config", "monitoring.config", "batching.config"
_CONFIG_SECONDS = 60  # between looks at models.config
_FOLDER_SECONDS, _STORE_SECONDS = 5, 60  # between looks for new versions
_BATCH_WAIT_MICROS = 2000


def server_files(deployment: Deployment, base_paths: Mapping[str, str]) -> dict[str, str]:
    """TensorFlow Serving's configuration, in protobuf's text format.

    Args:
        deployment: what is to be deployed.
        base_paths: name of each model -> its folder as the container sees it.

    Returns:
        Name -> content: a `ModelServerConfig`, a `MonitoringConfig`, and with batches a `BatchingParameters`.
    """
    found = {
        MODELS: _models(deployment, base_paths),
        MONITORING: f'prometheus_config {{\n  enable: true\n  path: "{METRICS_PATH}"\n}}\n',
    }
    if deployment.batch is not None:
        sizes = {
            "max_batch_size": deployment.batch,
            "batch_timeout_micros": _BATCH_WAIT_MICROS,
            "max_enqueued_batches": 100,
            "num_batch_threads": deployment.threads,
        }
        found[BATCHING] = "".join(f"{name} {{ value: {value} }}\n" for name, value in sizes.items())
    return found


def server_arguments(deployment: Deployment, folder: str) -> list[str]:
    """Arguments of `tensorflow_model_server`, but for its ports.

    Args:
        deployment: what is to be deployed.
        folder: the folder of `server_files` as the container sees it.
    """
    in_stores = any(place.uri for place in deployment.models.values())
    arguments = [
        f"--model_config_file={folder}/{MODELS}",
        f"--model_config_file_poll_wait_seconds={_CONFIG_SECONDS}",
        f"--monitoring_config_file={folder}/{MONITORING}",
        f"--file_system_poll_wait_seconds={_STORE_SECONDS if in_stores else _FOLDER_SECONDS}",
        # by itself it counts the cores of the machine, not of the container
        f"--tensorflow_session_parallelism={deployment.threads}",
    ]
    if any(deployment.labels.values()):
        # a label may only be given to a version that is loaded, which at the start none is
        arguments.append("--allow_version_labels_for_unavailable_models=true")
    if deployment.batch is not None:
        arguments += ["--enable_batching=true", f"--batching_parameters_file={folder}/{BATCHING}"]
    return arguments


def _models(deployment: Deployment, base_paths: Mapping[str, str]) -> str:
    lines = []
    for model in deployment.models:
        lines += [
            "  config {",
            f'    name: "{model}"',
            f'    base_path: "{base_paths[model]}"',
            '    model_platform: "tensorflow"',
        ]
        if versions := deployment.versions(model):
            inside = " ".join(f"versions: {version}" for version in versions)
            lines.append(f"    model_version_policy {{ specific {{ {inside} }} }}")
            lines += [
                f'    version_labels {{ key: "{label}" value: {version} }}'
                for label, version in deployment.labels[model].items()
            ]
        lines.append("  }")
    return "\n".join(["model_config_list {", *lines, "}"]) + "\n"
