"""METHODS: the algorithms for classes by name; aggregators by name, those of packages and scripts included."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from crowdzoo.aggregation.base import Result
from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.aggregation.classes.ebcc import EBCC
from crowdzoo.aggregation.classes.glad import GLAD
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.classes.mace import MACE
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.classes.wawa import Wawa
from crowdzoo.checks.constraints import Choice
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import ConfigError, unknown
from crowdzoo.plugins import Table

METHODS: dict[str, type] = {
    "majority-vote": MajorityVote,
    "wawa": Wawa,
    "dawid-skene": DawidSkene,
    "robust": Robust,
    "hierarchical-dawid-skene": HierarchicalDawidSkene,
    "one-coin": OneCoinDawidSkene,
    "glad": GLAD,
    "mace": MACE,
    "ibcc": IBCC,
    "ebcc": EBCC,
}


def of_kind(kind: str, other_kinds: Mapping[str, type] | None = None) -> Callable[[Any], type | None]:
    """Returns the function with which a `Table` of methods for a kind of label accepts a class.

    Args:
        kind: kind of label.
        other_kinds: another kind -> the class that adapts methods of that kind.
    """

    def made(thing: Any) -> type | None:
        if not isinstance(thing, type) or not callable(getattr(thing, "fit", None)):
            raise ConfigError("an aggregator is a class with a method fit, such as a subclass of Aggregator")
        own = getattr(thing, "kind", "classification")
        if own not in LABEL_KINDS:
            raise ConfigError(unknown("kind", own, LABEL_KINDS))
        return thing if own == kind else (other_kinds or {}).get(own)

    return made


FOR_CLASSES = Table("aggregator", METHODS, of_kind("classification"))


def aggregator_named(methods: Mapping[str, type], method: str, settings: Mapping[str, Any]) -> Any:
    """Creates an aggregator from the name of its method.

    Args:
        methods: classes by name.
        method: name of the method.
        settings: arguments of the class.

    Raises:
        ConfigError: an unknown method or setting (with the nearest known one), or a value out of range.
    """
    Choice(methods).checked("", "aggregation method", method)
    known = Choice(signature(methods[method]).parameters)
    for name in settings:
        known.checked("", f"setting of {method}", name)
    return methods[method](**settings)


def result_of(aggregator: Any, *data: Any, **known: Any) -> Any:
    """Calls the `fit` of an aggregator, which may be a user's own, and checks its result.

    Raises:
        ConfigError: the result is not a `Result`; or a `prior` was passed, which the aggregator cannot use.
    """
    if known.get("prior") is not None and "prior" not in signature(aggregator.fit).parameters:
        able = ", ".join(name for name, method in FOR_CLASSES.items() if "prior" in signature(method.fit).parameters)
        title = getattr(aggregator, "title", type(aggregator).__name__)
        raise ConfigError(f"prior: {title} cannot use an earlier result. Methods that can: {able}.")
    result = aggregator.fit(*data, **known)
    if not isinstance(result, Result):
        own, got = type(aggregator).__name__, type(result).__name__
        raise ConfigError(f"{own}: fit must return a result, such as Aggregation.of(...), got a {got}.")
    return result
