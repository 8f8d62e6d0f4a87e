"""`crowdzoo promote`: set labels of versions in TF Serving's models.config."""

import argparse

from crowdzoo.commands.options import add_options, path


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("folder", type=path, help="folder of the served model, with one subfolder per version")
    labels = "such as canary=newest, stable=canary or stable=1764147600; canary= removes the label"
    command.add_argument("labels", nargs="+", metavar="LABEL=VERSION", help=labels)
    config = {"--config FILE": "TF Serving's models.config, which is made or changed"}
    add_options(command, config, type=path, required=True)


def run(arguments: argparse.Namespace) -> None:
    """Write the file and print its labels."""
    from crowdzoo.serving.version_labels import set_labels

    for label, version in set_labels(arguments.config, arguments.folder, arguments.labels).items():
        print(f"{label}: version {version}")
