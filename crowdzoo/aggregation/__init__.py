"""Labels from votes: one algorithm per file, one result type.

`crowdzoo.aggregation.beam` runs the same algorithms on Apache Beam; it is not imported here.
"""

from difflib import get_close_matches
from inspect import signature
from typing import Any

from crowdzoo.aggregation.base import Aggregation, ConvergenceWarning
from crowdzoo.aggregation.block import Block
from crowdzoo.aggregation.dawid_skene import DawidSkene
from crowdzoo.aggregation.majority_vote import MajorityVote
from crowdzoo.errors import ConfigError

__all__ = ["METHODS", "Aggregation", "Block", "ConvergenceWarning", "DawidSkene", "MajorityVote", "create"]

METHODS: dict[str, type] = {"majority-vote": MajorityVote, "dawid-skene": DawidSkene}


def create(method: str, **settings: Any) -> Any:
    """An aggregator by its name, as configurations and the command line spell it.

    Args:
        method: a key of `METHODS`.
        **settings: arguments of that class.

    Raises:
        ConfigError: an unknown method or setting (with the nearest known one), or a value out of range.
    """
    _check_known("aggregation method", method, list(METHODS))
    for name in settings:
        _check_known(f"setting of {method}", name, list(signature(METHODS[method]).parameters))
    return METHODS[method](**settings)


def _check_known(what: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{name!r} is no {what}; there are {', '.join(map(repr, known))}.{hint}")
