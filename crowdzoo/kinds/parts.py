"""What a kind of label has in its folder, one module a part, loaded when it is asked for."""

from importlib import import_module
from typing import Any

from crowdzoo.data.label_kinds import LABEL_KINDS, label_kind

__all__ = ["part_of"]


def part_of(kind: str, part: str) -> Any:
    """The module of that name in the folder of a kind.

    Args:
        kind: of labels; or the kind of a result that has none of its own, such as "multi-label".
        part: name of the module.
    """
    folder = label_kind(kind).title if kind in LABEL_KINDS else "several_labels"
    return import_module(f"{__package__}.{folder}.{part}")
