"""`crowdzoo skew`: compare requests with the data that the served model was trained on."""

import argparse

from crowdzoo.commands.options import add_options, number, path
from crowdzoo.errors import ConditionError
from crowdzoo.report.tables import print_table


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("folder", type=path, help="folder of the served model, with one subfolder per version")
    command.add_argument("logged", type=path, help="NAME.jsonl, in the folder of `crowdzoo serve --log-requests`")
    limits = {
        "--jensen-shannon X": "largest difference (Jensen-Shannon divergence, 0 to 1) between the numbers of a "
        "column in requests and in training (default 0.1)",
        "--infinity-norm X": "largest difference in the share of a category, 0 to 1 (default 0.1)",
    }
    add_options(command, limits, type=number(0, 1), default=0.1)
    fail = {"--fail-if OUTCOME": "anomaly: exit with 7 where requests differ from the training data"}
    add_options(command, fail, choices=("anomaly",))


def run(arguments: argparse.Namespace) -> None:
    """Print a table and the differences."""
    from crowdzoo.components.request_skew import find_skew

    limits = {"jensen_shannon": arguments.jensen_shannon, "infinity_norm": arguments.infinity_norm}
    skew = find_skew(arguments.folder, arguments.logged, limits)
    rows = [
        (name, "-", "-", "fewer than 100 values")
        if distance is None
        else (name, f"{distance[0]:.4f}", f"{distance[1]:g}", "differs" if distance[0] > distance[1] else "")
        for name, distance in skew.distances.items()
    ]
    title = f"{skew.num_instances:,} logged instances next to the training data of {skew.version}"
    print_table(title, ("input", "distance", "limit", ""), rows)
    print("\n".join(f"Anomaly: {anomaly}." for anomaly in skew.anomalies) or "No anomaly.")
    if skew.anomalies and arguments.fail_if:
        raise ConditionError(f"--fail-if anomaly: requests differ from the training data of {skew.version}.")
