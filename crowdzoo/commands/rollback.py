"""`crowdzoo rollback`: return to an earlier version of a served model."""

import argparse

from crowdzoo.commands.options import add_options, integer, path
from crowdzoo.errors import ConfigError
from crowdzoo.files.version_folders import MAX_VERSION


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("folder", type=path, help="folder of the served model, with one subfolder per version")
    version = integer(0, MAX_VERSION)
    to = {"--to VERSION": "the version to go back to (default: the one before the newest)"}
    add_options(command, to, type=version)
    add_options(command, {"--reason TEXT": "why, kept with the veto"}, default="")
    undo = {"--undo VERSION": "put a version that was taken back into the folder again, and lift its veto"}
    add_options(command, undo, type=version)
    config = {
        "--config FILE": "TF Serving's models.config: labels of the versions that are taken back go to the earlier one"
    }
    add_options(command, config, type=path)


def run(arguments: argparse.Namespace) -> None:
    """Withdraw versions, or restore one."""
    from crowdzoo.components.rollback import lift_veto, take_back, target_of

    if arguments.undo is not None:
        others = {"--to": arguments.to, "--reason": arguments.reason or None, "--config": arguments.config}
        if given := [name for name, value in others.items() if value is not None]:
            raise ConfigError(f"--undo lifts a veto and takes no {given[0]}. Leave {given[0]} out.")
        print(f"{lift_veto(arguments.folder, arguments.undo)}: in the folder again, and its veto is lifted")
        return
    if arguments.config is not None:
        from crowdzoo.serving.version_labels import move_labels

        target = target_of(arguments.folder, arguments.to)
        for label, version in move_labels(arguments.config, arguments.folder, target).items():
            print(f"{arguments.config}: {label} is version {version} now")
    vetoes, served = take_back(arguments.folder, arguments.to, arguments.reason)
    print(f"{served}: the newest version now")
    for veto in vetoes:
        print(f"{veto}. `crowdzoo run` does not push this model again until its data or settings change.")
