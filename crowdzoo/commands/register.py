"""`crowdzoo register`: register a served version in MLflow's model registry."""

import argparse

from crowdzoo.commands.options import add_options, integer, path
from crowdzoo.files.version_folders import MAX_VERSION


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("folder", type=path, help="folder of the served model, with one subfolder per version")
    add_options(command, {"--name NAME": "the model's name in the registry"}, required=True)
    alias = {"--alias NAME": "an alias for the version, such as stable; may be given several times"}
    add_options(command, alias, action="append", default=[])
    version = {"--version NUMBER": "the version of the folder (default: the newest)"}
    add_options(command, version, type=integer(0, MAX_VERSION))


def run(arguments: argparse.Namespace) -> None:
    """Register the version and print its URI."""
    from crowdzoo.components.registry import register_version, registry_place

    uri, is_new = register_version(arguments.folder, arguments.name, version=arguments.version, aliases=arguments.alias)
    aliases = "".join(f", {alias}" for alias in arguments.alias)
    print(f"{uri}{aliases}: {'registered' if is_new else 'was registered before'} at {registry_place()}")
