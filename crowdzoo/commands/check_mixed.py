"""What goes with a table that says which annotators are models."""

import argparse
from collections.abc import Sequence

from crowdzoo.errors import ConfigError
from crowdzoo.kinds import Kind

PEOPLE_AND_MODELS = "people-and-models"


def check_mixed(arguments: argparse.Namespace, kind: Kind, refused: Sequence[str] = ()) -> None:
    """Checks the options of a command where people and models are aggregated, or are asked to be.

    Args:
        arguments: with `method` and `annotator_table`.
        kind: of label.
        refused: options that a table of annotators does not go with.

    Raises:
        ConfigError: no table of annotators, another kind, a method that takes all annotators alike, or a refused
            option.
    """
    if arguments.annotator_table is None:
        raise ConfigError(f"--method {PEOPLE_AND_MODELS}: say with --annotator-table FILE which annotators are models.")
    if not kind.labels.one_class:
        raise ConfigError(f"--annotator-table is for classes; leave it out with --task {kind.name}.")
    if arguments.method not in (None, PEOPLE_AND_MODELS):
        raise ConfigError(f"--method {arguments.method} takes people and models alike: leave out --annotator-table.")
    for name in refused:
        if getattr(arguments, name) not in (None, False):
            raise ConfigError(f"--{name.replace('_', '-')} does not go with --annotator-table: leave one of them out.")
