"""aggregator_named: an aggregator out of a table of methods."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any

from crowdzoo.errors import ConfigError, unknown

__all__ = ["aggregator_named", "check_known"]


def aggregator_named(methods: Mapping[str, type], method: str, settings: Mapping[str, Any]) -> Any:
    """An aggregator by the name of its method.

    Args:
        methods: classes by name.
        method: the name.
        settings: arguments of that class.

    Raises:
        ConfigError: an unknown method or setting (with the nearest known one), or a value out of range.
    """
    check_known("aggregation method", method, methods)
    for name in settings:
        check_known(f"setting of {method}", name, signature(methods[method]).parameters)
    return methods[method](**settings)


def check_known(what: str, name: object, known: Collection[str]) -> None:
    """Refuses a name that is not among the known ones.

    Raises:
        ConfigError: it is not; the message lists them.
    """
    if not isinstance(name, str) or name not in known:
        raise ConfigError(unknown(what, name, known))
