"""`crowdzoo deploy`: files that run TensorFlow Serving in containers."""

import argparse
import shlex
from importlib.metadata import distributions

from crowdzoo.commands.options import add_options, add_outputs, named_values, path
from crowdzoo.commands.outputs import Output, marked
from crowdzoo.errors import ConfigError
from crowdzoo.files.paths import scheme_of
from crowdzoo.files.version_folders import complete_versions

_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos")


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    targets = "what runs the containers; or prometheus, which watches a server on this machine"
    choices = ("compose", "kubernetes", "kserve", "prometheus")
    command.add_argument("--target", choices=choices, required=True, help=targets)
    command.add_argument("--out", type=path, required=True, metavar="DIR", help="folder for the files, is made")
    model = {
        "--model NAME=PLACE": "the model's name in URLs and its served folder: a path, pvc://CLAIM/FOLDER, "
        "gs://BUCKET/FOLDER or s3://BUCKET/FOLDER (only kserve); replicas, labels, GPUs and more are changed in the "
        "files",
    }
    add_options(command, model, required=True)
    version = {
        "--tensorflow VERSION": "TensorFlow that the model was exported with; default: as its card says, where it is "
        "readable here, or what is installed",
    }
    add_options(command, version)
    command.add_argument("--image", help="image of TensorFlow Serving; default: the one for that TensorFlow")
    add_outputs(command, (), Output("out", "--out", marked("^.{0,60}Written by `crowdzoo deploy`"), folder=True))


def run(arguments: argparse.Namespace) -> None:
    """Write the files and print how to use them."""
    from crowdzoo.serving.deploy.write_deployment import write_deployment

    ((model, place),) = named_values([arguments.model], "labelme=/srv/served", "--model")
    image, reason = _image(arguments, place)
    written = write_deployment(arguments.target, model, place, image, arguments.out, replace=arguments.force)
    for name in written:
        print(arguments.out / name)
    if arguments.target != "prometheus":
        print(f"image {image}{reason}")
    file = shlex.quote(str(arguments.out / written[0]))
    starts = {"compose": f"docker compose -f {file} up -d --wait", "prometheus": f"prometheus --config.file={file}"}
    start = starts.get(arguments.target, f"kubectl apply -f {file}")
    print(f"change what you need in the files, and start it: {start}")


def _image(arguments: argparse.Namespace, place: str) -> tuple[str, str]:
    """The image, and the reason for the choice."""
    from crowdzoo.serving.deploy.write_deployment import image_for, tensorflow_of

    if arguments.image is not None:
        if arguments.tensorflow is not None:
            raise ConfigError("--image and --tensorflow: give one of them.")
        return arguments.image, ""
    if arguments.tensorflow is not None:
        return image_for(arguments.tensorflow), f", for TensorFlow {arguments.tensorflow}"
    versions = [] if scheme_of(place) else complete_versions(place)
    if versions and (exported := tensorflow_of(versions[-1])):
        return image_for(exported), f", as the model was exported with TensorFlow {exported}"
    installed = next((package.version for name in _PACKAGES for package in distributions(name=name)), None)
    if installed is None:
        raise ConfigError(
            "the TensorFlow that the model was exported with is not known here. Give it as --tensorflow VERSION, as "
            "its model_card.json has it."
        )
    return image_for(installed), f", for TensorFlow {installed}, which is installed here; no model's card was found"
