"""`crowdzoo fetch`: a model of MLflow's model registry into a served folder."""

import argparse

from crowdzoo.commands.options import path


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    command.add_argument("uri", help="models:/NAME@ALIAS or models:/NAME/VERSION")
    command.add_argument("folder", type=path, help="the served folder; the model becomes its newest version")


def run(arguments: argparse.Namespace) -> None:
    """Fetches the model, and prints the folder of its version."""
    from crowdzoo.components.registry import fetch_version

    print(fetch_version(arguments.uri, arguments.folder))
