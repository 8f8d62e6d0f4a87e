"""create: an aggregator by its name, as configurations and the command line spell it."""

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

from crowdzoo.aggregation.classes.methods import METHODS
from crowdzoo.aggregation.free_texts.methods import TEXT_METHODS
from crowdzoo.aggregation.named import FOR_CLASSES, aggregator_named, of_kind
from crowdzoo.aggregation.preferences.methods import PREFERENCE_METHODS
from crowdzoo.aggregation.ratings.methods import RATING_METHODS
from crowdzoo.aggregation.regions.methods import REGION_METHODS
from crowdzoo.aggregation.sentences.methods import SEQUENCE_METHODS
from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation
from crowdzoo.checks.constraints import Choice
from crowdzoo.errors import ConfigError, Setting
from crowdzoo.plugins import Table

# By kind of label, as the classes say it
_ALL: tuple[dict[str, Any], ...] = (
    METHODS, RATING_METHODS, SEQUENCE_METHODS, PREFERENCE_METHODS, TEXT_METHODS, REGION_METHODS,
)  # fmt: skip
_OTHERS: dict[str, dict[str, type]] = {"sequence": {"classification": TokenAggregation}}  # every token is a task
METHODS_OF = {
    kind: Table("aggregator", methods, of_kind(kind, _OTHERS.get(kind)))
    for kind, methods in ((next(iter(methods.values())).kind, methods) for methods in _ALL)
}
OF_TOKENS = ("decoding", "scheme")


def create(method: str, *, kind: str = "classification", **settings: Any) -> Any:
    """An aggregator by its name, as configurations and the command line spell it.

    Args:
        method: a key of `METHODS`, or of the table that `kind` selects.
        kind: of the annotations, a key of `METHODS_OF`.
        **settings: arguments of that class. For sequences, a method for classes takes its own settings and those of
            `TokenAggregation` (decoding, scheme).

    Raises:
        ConfigError: an unknown method, kind or setting (with the nearest known one), or a value out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import create
        >>> annotations = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], ["cat", "cat", "dog"])
        >>> result = create("dawid-skene", max_iter=50).fit(annotations)
        >>> result.classes[result.labels].tolist()
        ['cat']
    """
    Choice(METHODS_OF).checked("", "kind of annotations", kind)
    methods = METHODS_OF[kind]
    Choice(methods).checked("", "aggregation method", method)
    if methods[method] is not TokenAggregation:
        return aggregator_named(methods, method, settings)
    known = Choice([*signature(FOR_CLASSES[method]).parameters, *OF_TOKENS])
    for name in settings:
        known.checked("", f"setting of {method}", name)
    of_tokens = {name: settings.pop(name) for name in OF_TOKENS if name in settings}
    return TokenAggregation(method, settings=settings, **of_tokens)


def check_settings_of_default(methods: Mapping[str, type], default: str, names: Iterable[str]) -> None:
    """Refuses settings of another method than a kind's default one, and names a method that has them.

    Raises:
        ConfigError: such a setting.
    """
    for name in names:
        having = [method for method, of_method in methods.items() if name in signature(of_method).parameters]
        if having and default not in having:
            example = having[0] if "dawid-skene" not in having else "dawid-skene"
            fix = f"name a method that has it, for example {example}"
            raise ConfigError(f"{Setting(name)} is not a setting of {default}, the default method: {fix}.")
