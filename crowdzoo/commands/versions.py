"""`crowdzoo versions`: list the versions of a served model."""

import argparse

from crowdzoo.commands.options import add_options, path
from crowdzoo.report.tables import print_table


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("folder", type=path, help="folder of the served model, with one subfolder per version")
    add_options(command, {"--config FILE": "TF Serving's models.config, whose labels are shown"}, type=path)


def run(arguments: argparse.Namespace) -> None:
    """Print a table, newest version first."""
    from crowdzoo.components.rollback import describe_versions

    rows = describe_versions(arguments.folder)
    labels: dict[str, int] = {}
    if arguments.config is not None:
        from crowdzoo.serving.version_labels import read_labels

        labels = read_labels(arguments.config, arguments.folder)
    header = ("version", "state", "pushed (UTC)", "outcome", "figure", "labels", "taken back")
    table = []
    for number, state, *facts, veto in rows:
        own = ", ".join(label for label, version in labels.items() if version == number)
        state = state if not labels or state in ("withdrawn", "incomplete") else "served" if own else "not served"
        table.append((number, state, *facts, own, veto.partition(" was taken back ")[2]))
    print_table(str(arguments.folder), header, table)
