"""`crowdzoo run`: the pipeline, from a YAML file."""

import argparse

from crowdzoo.commands.options import named_values
from crowdzoo.errors import shorten
from crowdzoo.models.bases import is_own
from crowdzoo.option_types import path
from crowdzoo.process import use_tensorflow

__all__ = ["describe", "run"]


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    command.add_argument("config", type=path, help="the pipeline's YAML file")
    # argparse looks for the whole word before it looks for a value, so that "--check FILE.yaml" stays what it was
    command.add_argument("--check=all", dest="check", action="store_const", const="all",
        help="the same, and read all rows of the input files and all images",
    )  # fmt: skip
    command.add_argument("--check", dest="check", action="store_const", const="sample",
        help="only check the configuration and the input files, of long ones the first rows, of images some",
    )  # fmt: skip
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="overrides",
        help="replace a setting, such as training.epochs=20; may be given several times",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Runs the pipeline, or only checks its configuration."""
    from crowdzoo.pipelines.config import load_config
    from crowdzoo.pipelines.yaml_files import read_value

    pairs = named_values(arguments.overrides, "training.epochs=20")
    overrides = {key: read_value(value, f"--set {shorten(key)}") for key, value in pairs}
    config = load_config(arguments.config, overrides)
    if arguments.check:
        from crowdzoo.pipelines.config.data_checks import check_data

        read = check_data(config, arguments.check == "all")
        if is_own(config.base):
            from crowdzoo.pipelines.own_base import check_own_base

            use_tensorflow()
            check_own_base(config)
        print(f"{arguments.config}: fine, read {read}")
        return 0
    use_tensorflow()
    from crowdzoo.pipelines.local import run

    result = run(config)
    print(result.summary())
    return 0
