"""`crowdzoo deploy`: files that run TensorFlow Serving in containers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdzoo.checks.option_types import integer, number, path
from crowdzoo.commands.options import add_outputs, given, named_values
from crowdzoo.commands.outputs import Output, is_deployment
from crowdzoo.errors import ConfigError, shorten
from crowdzoo.files.version_folders import complete_versions, version_number

if TYPE_CHECKING:
    from crowdzoo.serving.deploy.model_place import ModelPlace

__all__ = ["describe", "run"]

# option -> the targets that have a use for it
_ONLY = {
    "replicas": ("kubernetes", "kserve"),
    "max_replicas": ("kubernetes", "kserve"),
    "service_account": ("kubernetes", "kserve"),
    "host": ("compose",),
    "rest_port": ("compose", "kubernetes"),
    "grpc_port": ("compose", "kubernetes"),
}
_SETTINGS = ("name", "replicas", "max_replicas", "cpu", "memory_gb", "gpus", "batch", "user", "service_account")


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    command.add_argument(
        "--target", choices=("compose", "kubernetes", "kserve"), required=True, help="what runs the containers"
    )
    command.add_argument("--out", type=path, required=True, metavar="DIR", help="folder for the files, is made")
    command.add_argument("--model", action="append", required=True, metavar="NAME=PLACE", dest="models",
        help="a model's name in URLs and its served folder: a path, pvc://CLAIM/FOLDER, gs://BUCKET/FOLDER or "
        "s3://BUCKET/FOLDER (only kserve); may be given several times",
    )  # fmt: skip
    command.add_argument("--label", action="append", default=[], metavar="LABEL=VERSION", dest="labels",
        help="a name for a version, such as stable=3; of several models NAME/LABEL=VERSION. A model with labels serves "
        "only these versions; without, its newest",
    )  # fmt: skip
    command.add_argument("--name", help="name of the service (default: the first model's name)")
    command.add_argument("--replicas", type=integer(1, 1000), help="servers, at least (default 2)")
    command.add_argument("--max-replicas", type=integer(1, 1000), help="servers under load (default: twice --replicas)")
    command.add_argument("--cpu", type=number(0.1, 1024), help="cores of each server (default 2)")
    command.add_argument("--memory-gb", type=number(0.25, 10**5), help="memory of each server in GiB (default 4)")
    command.add_argument("--gpus", type=integer(0, 64), help="GPUs of each server (default 0)")
    command.add_argument("--batch", type=integer(2, 10**6), metavar="ROWS",
        help="compute requests that come together in batches of at most so many rows; longer requests are then refused",
    )  # fmt: skip
    command.add_argument(
        "--user", type=integer(1, 2**31 - 2), help="number of the user in the container (default 1000)"
    )
    command.add_argument(
        "--service-account", metavar="NAME", help="account of the cluster that may read the model from a store"
    )
    command.add_argument("--host", help="address of this machine to open the ports on (default 127.0.0.1)")
    command.add_argument("--rest-port", type=integer(1, 65535), help="port of the REST API (default 8501)")
    command.add_argument("--grpc-port", type=integer(1, 65535), help="port of the gRPC API (default 8500)")
    command.add_argument("--tensorflow", metavar="VERSION",
        help="TensorFlow that the models were exported with; default: as their cards say, where they are readable "
        "here, or what is installed",
    )  # fmt: skip
    command.add_argument("--image", help="image of TensorFlow Serving; default: the one for that TensorFlow")
    add_outputs(command, (), Output("out", "--out", is_deployment, folder=True))


def run(arguments: argparse.Namespace) -> None:
    """Writes the files and prints what to do with them."""
    from crowdzoo.serving.deploy.compose import compose_project
    from crowdzoo.serving.deploy.deployment import Deployment
    from crowdzoo.serving.deploy.kserve import kserve_objects
    from crowdzoo.serving.deploy.kubernetes import kubernetes_objects
    from crowdzoo.serving.deploy.write_deployment import write_deployment

    for name, targets in _ONLY.items():
        if getattr(arguments, name) is not None and arguments.target not in targets:
            raise ConfigError(
                f"--{name.replace('_', '-')} has no effect with --target {arguments.target}; leave it out."
            )
    models = _models(arguments.models)
    labels = _labels(arguments.labels, list(models))
    image, reason = _image(arguments, models, labels)
    deployment = Deployment(models=models, image=image, labels=labels, **given(arguments, _SETTINGS))
    make = {"compose": compose_project, "kubernetes": kubernetes_objects, "kserve": kserve_objects}[arguments.target]
    files: dict[str, Any] = make(deployment, **given(arguments, ("host", "rest_port", "grpc_port")))
    write_deployment(files, arguments.out, replace=arguments.force)
    for name in files:
        print(arguments.out / name)
    print(f"image {image}{reason}")
    if arguments.target == "compose":
        print(f"start it: docker compose -f {arguments.out / 'compose.yaml'} up -d --wait")
    else:
        print(f"start it: kubectl apply -f {arguments.out}")


def _models(words: list[str]) -> dict[str, ModelPlace]:
    from crowdzoo.serving.deploy.model_place import ModelPlace

    found: dict[str, ModelPlace] = {}
    for name, place in named_values(words, "labelme=/srv/served", "--model"):
        if name in found:
            raise ConfigError(f"--model {shorten(name)}: is given twice.")
        found[name] = ModelPlace.parse(place, f"--model {shorten(name)}")
    return found


def _labels(words: list[str], models: list[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, value in named_values(words, "stable=3", "--label"):
        model, slash, label = name.rpartition("/")
        if not slash and len(models) > 1:
            raise ConfigError(
                f"--label {shorten(name)}: say of which model, as in {models[0]}/{shorten(name)}={shorten(value)}."
            )
        version = version_number(value)
        if version is None:
            raise ConfigError(f"--label {shorten(name)}: {shorten(value)!r} is not the number of a version.")
        of_model = found.setdefault(model if slash else models[0], {})
        if label in of_model:
            raise ConfigError(f"--label {shorten(name)}: is given twice.")
        of_model[label] = version
    return found


def _image(
    arguments: argparse.Namespace, models: dict[str, ModelPlace], labels: dict[str, dict[str, int]]
) -> tuple[str, str]:
    """The image, and why it is this one."""
    from crowdzoo.serving.deploy.image_for import image_for, installed_tensorflow, tensorflow_of

    if arguments.image is not None:
        if arguments.tensorflow is not None:
            raise ConfigError("--image and --tensorflow: give one of them.")
        return arguments.image, ""
    gpu = bool(arguments.gpus)
    if arguments.tensorflow is not None:
        return image_for([arguments.tensorflow], gpu=gpu), f", for TensorFlow {arguments.tensorflow}"
    exported = set()
    for model, place in models.items():
        versions: list[Path] = [] if place.folder is None else complete_versions(place.folder)
        numbers = set(labels.get(model, {}).values())
        served = [one for one in versions if version_number(one.name) in numbers] if numbers else versions[-1:]
        exported |= {version for one in served if (version := tensorflow_of(one)) is not None}
    if exported:
        return image_for(
            exported, gpu=gpu
        ), f", as the models were exported with TensorFlow {', '.join(sorted(exported))}"
    installed = installed_tensorflow()
    if installed is None:
        raise ConfigError(
            "the TensorFlow that the models were exported with is not known here. Give it as --tensorflow VERSION, as "
            "their model_card.json has it."
        )
    return image_for(
        [installed], gpu=gpu
    ), f", for TensorFlow {installed}, which is installed here; no model's card was found"
