"""A deployment as a file of Docker Compose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdzoo.errors import ConfigError
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.serving.deploy.containers import CONFIG_FOLDER, SERVER, digest, status_path
from crowdzoo.serving.deploy.deployment import Deployment
from crowdzoo.serving.deploy.server_files import server_arguments, server_files

__all__ = ["compose_project"]

_REST, _GRPC = 8501, 8500  # in the container

# The image has bash, but neither curl nor Python
_CHECK = """
ask() {
  exec 3<>/dev/tcp/127.0.0.1/%d || return 1
  printf 'GET %%s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' "$1" >&3
  IFS= read -r line <&3
  [[ $line == HTTP/*" 200 "* ]]
}
""".strip()


def compose_project(
    deployment: Deployment, host: str = "127.0.0.1", rest_port: int = _REST, grpc_port: int = _GRPC
) -> dict[str, Any]:
    """A project with one service.

    Args:
        deployment: what is to be deployed; it has one server.
        host: address of the machine that the ports are open on.
        rest_port: its port for REST.
        grpc_port: its port for gRPC.

    Returns:
        Name of a file -> the object in it, or its text.

    Raises:
        ConfigError: a model in a place that no container of this machine sees, or a folder without a version.
    """
    base_paths, volumes = {}, [_bound("./config", CONFIG_FOLDER)]
    for model, place in deployment.models.items():
        base_paths[model] = f"/models/{model}"
        if place.folder is None:
            raise ConfigError(f"model {model}: {place} is not seen by Docker Compose. Name a folder of this machine.")
        if not complete_versions(place.folder):
            raise ConfigError(
                f"model {model}: {place.folder} has no version with a saved_model.pb. Name the folder that "
                "`crowdzoo export` writes, which holds a folder a version, such as 1."
            )
        volumes.append(_bound(str(place.folder), base_paths[model]))
    limits = {"cpus": f"{deployment.cpu:g}", "memory": f"{round(1024 * deployment.memory_gb)}M"}
    reservations: dict[str, Any] = dict(limits)
    if deployment.gpus:
        reservations["devices"] = [{"driver": "nvidia", "count": deployment.gpus, "capabilities": ["gpu"]}]
    files = server_files(deployment, base_paths)
    service = {
        "image": deployment.image,
        # a running container keeps the folder of files that was replaced; where this changes, `up` makes a new one
        "labels": {"crowdzoo.config": digest(files)},
        "entrypoint": [SERVER],
        "command": [f"--port={_GRPC}", f"--rest_api_port={_REST}", *server_arguments(deployment, CONFIG_FOLDER)],
        "user": f"{deployment.user}:{deployment.user}",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "tmpfs": ["/tmp"],
        "ports": [
            {"host_ip": host, "published": str(rest_port), "target": _REST},
            {"host_ip": host, "published": str(grpc_port), "target": _GRPC},
        ],
        "volumes": volumes,
        "healthcheck": {
            "test": ["CMD", "bash", "-c", health_check(list(deployment.models))],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "60s",
        },
        "deploy": {"resources": {"limits": limits, "reservations": reservations}},
        "restart": "unless-stopped",
    }
    project = {"name": deployment.name, "services": {"serving": service}}
    return {"compose.yaml": _escaped(project), **{f"config/{name}": text for name, text in files.items()}}


def health_check(models: list[str], port: int = _REST) -> str:
    """A program for bash that succeeds where TensorFlow Serving can be asked for each of the models."""
    return "\n".join([_CHECK % port, " && ".join(f"ask {status_path(model)}" for model in models)])


def _bound(source: str, target: str) -> dict[str, Any]:
    return {"type": "bind", "source": source, "target": target, "read_only": True, "bind": {"create_host_path": False}}


def _escaped(value: Any) -> Any:
    """With `$` doubled, which would begin the name of a variable."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {key: _escaped(inner) for key, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value
