"""aggregator_named: an aggregator out of a table of methods."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from crowdzoo.checks.constraints import Choice


def aggregator_named(methods: Mapping[str, type], method: str, settings: Mapping[str, Any]) -> Any:
    """An aggregator by the name of its method.

    Args:
        methods: classes by name.
        method: the name.
        settings: arguments of that class.

    Raises:
        ConfigError: an unknown method or setting (with the nearest known one), or a value out of range.
    """
    Choice(methods).checked("", "aggregation method", method)
    known = Choice(signature(methods[method]).parameters)
    for name in settings:
        known.checked("", f"setting of {method}", name)
    return methods[method](**settings)
