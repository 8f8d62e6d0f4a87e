"""`crowdzoo datasets`: data sets bundled with crowdzoo, and public ones to download."""

import argparse

from crowdzoo.commands.options import add_options, add_outputs, path
from crowdzoo.commands.outputs import Output, holds
from crowdzoo.errors import ConfigError
from crowdzoo.kinds import KINDS
from crowdzoo.report.tables import print_table


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("name", nargs="?", help="show this one; without it, list all")
    command.add_argument("--write", type=path, metavar="DIR", help="write its annotations and instances as files")
    fetch = {"--fetch": "download this public set into the folder that CROWDZOO_DATA names (default: crowdzoo-data)"}
    add_options(command, fetch, action="store_true")
    own = holds(("spans.jsonl",), ("annotations.csv", "instances.parquet", "instances.csv", "images"))
    add_outputs(command, (), Output("write", "--write", own, folder=True))


def run(arguments: argparse.Namespace) -> None:
    """List, show, write or download data sets."""
    from crowdzoo import datasets

    if arguments.name is None:
        if arguments.fetch:
            raise ConfigError("--fetch needs the name of a public data set, as in `crowdzoo datasets rte --fetch`.")
        if arguments.write:
            raise ConfigError("--write needs the name of a data set, as in `crowdzoo datasets labelme --write DIR`.")
        header = ("name", "tasks", "annotators", "classes", "annotations", "majority right", "licence")
        rows = []
        for dataset in map(datasets.load, datasets.names()):
            crowd, share = dataset.annotations, f"{dataset.majority_accuracy():.3f}"
            sizes = crowd.num_tasks, crowd.num_annotators, crowd.num_classes, len(crowd)
            rows.append((dataset.name, *(f"{size:,}" for size in sizes), share, dataset.licence))
        print_table("data sets of crowdzoo, and of packages that add to it", header, rows)
        for kind in list(KINDS.values())[1:]:
            if names := datasets.names(kind.name):
                print(f"of {kind.title}: {', '.join(names)}")
        print(f"to download with --fetch: {', '.join(datasets.public_files())}")
        return
    if arguments.fetch:
        for path in datasets.fetch(arguments.name):
            print(path)
        for licence in dict.fromkeys(row["licence"] for row in datasets.public_files()[arguments.name]):
            print(f"licence: {licence}")
        return
    chosen = datasets.load(arguments.name)
    if arguments.write:
        for path in datasets.write_files(chosen, arguments.write):
            print(path)
        return
    print(f"{chosen.name}: {chosen.description}\n\nlicence: {chosen.licence}\ncite: {chosen.citation}")
