"""`crowdzoo lineage`: the data, settings and versions behind a model."""

import argparse
from pathlib import Path

from crowdzoo.commands.options import add_options, path


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    model = "folder of an exported version, or a .keras file, of crowdzoo run or crowdzoo train"
    command.add_argument("model", type=path, help=model)
    verify = {"--verify FILE": "only say which input of the training this file is; exit code 3 if it is not an input"}
    add_options(command, verify, type=path)


def run(arguments: argparse.Namespace) -> None:
    """Print one fact per line, then the same for the model that training started from."""
    from crowdzoo.components.lineage import facts_of, input_of, lineage_of

    model = arguments.model
    if arguments.verify is not None:
        print(f"{arguments.verify}: is the input {input_of(model, arguments.verify)} of {model}")
        return
    while model is not None:
        lineage = lineage_of(model)
        print("\n".join(f"{name:<40} {value}" for name, value in facts_of(lineage)))
        parent = Path(lineage["parent"]) if lineage.get("parent") else None
        model = parent if parent and parent.is_dir() else None
        if model is not None:
            print()
