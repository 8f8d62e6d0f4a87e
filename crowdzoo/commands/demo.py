"""`crowdzoo demo`: a complete example on a bundled data set."""

import argparse
from pathlib import Path

from crowdzoo.commands.options import integer, path
from crowdzoo.files.paths import check_folder
from crowdzoo.process import use_tensorflow


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    names = (
        "labelme: classes of photographs (default); images: the same from their JPEG files; ner: names in sentences; "
        "ratings: numbers by harsh and mild annotators"
    )
    choices = ("labelme", "images", "ner", "ratings")
    command.add_argument("name", nargs="?", choices=choices, default="labelme", help=names)
    command.add_argument("--out", type=path, metavar="DIR", help="folder for all outputs (default crowdzoo-runs/NAME)")
    seeds = "number of trainings per row of the table (default: labelme 5, images 1, ner 2, ratings 3)"
    command.add_argument("--seeds", type=integer(1, 10**4), metavar="N", help=seeds)


def run(arguments: argparse.Namespace) -> None:
    """Run a demo."""
    use_tensorflow()
    out = arguments.out or Path("crowdzoo-runs") / arguments.name
    check_folder(out, "--out")
    from crowdzoo.pipelines.demo import run_demo

    run_demo(arguments.name, out, None if arguments.seeds is None else range(arguments.seeds))
