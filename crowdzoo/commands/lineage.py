"""`crowdzoo lineage`: what a model comes from."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crowdzoo.checks.option_types import path


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    command.add_argument(
        "model", type=path, help="folder of an exported version, or a .keras file, of crowdzoo run or crowdzoo train"
    )


def run(arguments: argparse.Namespace) -> None:
    """Prints a fact a line, and then the same of the model that the training began with."""
    from crowdzoo.components.lineage import lineage_of

    model = arguments.model
    while model is not None:
        lineage = lineage_of(model)
        rows = list(_rows(lineage))
        print("\n".join(f"{name:<40} {value}" for name, value in rows))
        parent = Path(lineage["parent"]) if lineage.get("parent") else None
        model = parent if parent and parent.is_dir() else None
        if model is not None:
            print()


def _rows(mapping: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested facts by dotted names."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", "-" if value is None else value
