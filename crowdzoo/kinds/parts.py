"""What a kind of label has in its folder, one module a part, loaded when it is asked for."""

from importlib import import_module
from typing import Any

from crowdzoo.data.label_kinds import label_kind


def part_of(kind: str, part: str) -> Any:
    """The module of that name in the folder of a kind.

    Args:
        kind: of labels; or "multi-label", a kind of results, whose labels are classes.
        part: name of the module.

    Raises:
        ConfigError: no such kind.
    """
    folder = "several_labels" if kind == "multi-label" else label_kind(kind).title
    return import_module(f"{__package__}.{folder}.{part}")
