"""`crowdzoo fetch`: copy a model from MLflow's model registry into a served folder."""

import argparse

from crowdzoo.commands.options import path


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("uri", help="models:/NAME@ALIAS or models:/NAME/VERSION")
    command.add_argument("folder", type=path, help="the served folder; the model becomes its newest version")


def run(arguments: argparse.Namespace) -> None:
    """Fetch the model and print the folder of its version."""
    from crowdzoo.components.registry import fetch_version

    print(fetch_version(arguments.uri, arguments.folder))
