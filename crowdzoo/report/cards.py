"""Cards of all methods: saved for crowdzoo's own methods, created for those of packages, with saved figures.

`benchmarks/method_figures.py` creates the saved cards from the classes and their docstrings. Showing them thus needs
neither Keras nor docstrings (`python -OO` has none).
"""

import functools
import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib import resources
from typing import Any

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import ConfigError, unknown
from crowdzoo.kinds import KINDS, Kind, kind_of


@dataclass(frozen=True)
class MethodCard:
    """Facts about a method that help to choose one.

    Attributes:
        name: name of the method on the command line, in configurations and in `create`.
        sort: "deep" (trains a model) or "aggregation" (labels alone).
        kind: kind of labels, a key of `LABEL_KINDS`.
        class_name: full name of its class; None for "aggregated", which has no crowd layer.
        package: `distribution==version` that provides it, or `module:class` of a script; empty for crowdzoo's own
            methods.
        summary: one sentence about what it does.
        source: its papers.
        needs: its requirements on the data.
        extras: further inputs and abilities: "features", "gold", "initial", "confidence", "at most 2 classes".
        settings: names of its settings.
        python: one line of Python that uses it; `CrowdModel` is in `crowdzoo`, other names are in `class_name`'s module
            or in `crowdzoo.models`.
        command: one command that uses it.
        figures: saved figures on bundled data sets, each with "set", "variant", "accuracy", "spread" (of the runs; None
            for one run), "runs", "cpu_seconds" and "versions".
    """

    name: str
    sort: str
    kind: str
    class_name: str | None
    package: str
    summary: str
    source: str
    needs: str
    extras: tuple[str, ...]
    settings: tuple[str, ...]
    python: str
    command: str
    figures: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, object]:
        """The card as a dictionary for JSON."""
        return asdict(self) | {name: [*getattr(self, name)] for name in ("extras", "settings", "figures")}


def method_cards(kind: str | None = None, name: str | None = None) -> list[MethodCard]:
    """Return the cards of all or selected methods.

    Args:
        kind: kind of labels; None: all kinds.
        name: name of a method. Several kinds, or a deep method and an aggregation, may share a name. None: all methods.

    Returns:
        Deep methods, then aggregations, in the order of the registries.

    Raises:
        ConfigError: an unknown kind or name; suggests the nearest known one.
    """
    kinds = [kind_of(kind)] if kind is not None else _kinds()
    cards = [replace(card, figures=_figures(card)) for card in _cards(kinds, _read_saved("method_cards.json"))]
    if name is None:
        return cards
    named = [card for card in cards if card.name == name]
    if not named:
        raise ConfigError(unknown("method", name, list(dict.fromkeys(card.name for card in cards))))
    return named


def _files(kind: Kind) -> tuple[str, str]:
    """File of annotations and `--kind` option in an example command for a kind of labels."""
    file = "annotations.csv" if "instances" in kind.options.inputs else "spans.jsonl"
    return file, "" if kind is next(iter(KINDS.values())) else f" --kind {kind.name}"


def made_cards() -> dict[str, dict[str, object]]:
    """Create the saved cards of crowdzoo's own methods, without figures, by sort, kind and name."""
    return {f"{card.sort}/{card.kind}/{card.name}": card.to_dict() for card in _cards(_kinds(), {}, own=True)}


def _kinds() -> list[Kind]:
    """Kinds with methods of their own; several labels per task use the methods for classes."""
    return [KINDS[name] for name in LABEL_KINDS]


def _cards(kinds: Any, saved: dict[str, Any], own: bool = False) -> Iterator[MethodCard]:
    """Yield saved or new cards of deep methods, then of aggregations; those of packages only without `own`."""
    from crowdzoo.aggregation.registry import METHODS_OF
    from crowdzoo.training.methods import methods_of

    for sort, table_of, make in (("deep", methods_of, _deep), ("aggregation", METHODS_OF.get, _aggregation)):
        for kind in kinds:
            table: Any = table_of(kind.name)
            for name in table.own if own else table:
                known = saved.get(f"{sort}/{kind.name}/{name}") if name in table.own else None
                if known is None:
                    yield make(kind, name, table)
                else:
                    yield MethodCard(**known | {part: tuple(known[part]) for part in ("extras", "settings")})


def _deep(kind: Kind, name: str, methods: Any) -> MethodCard:
    from crowdzoo.training.methods import AGGREGATED, crowd_layer_class, hyperparameters_of

    file, option = _files(kind)
    tables = " instances.parquet" if "instances" in kind.options.needed else ""
    file += " images" if kind.labels.learned.has_pixels else tables
    command = f"crowdzoo train {file}{option} --method {name} --out model.keras"
    if name == AGGREGATED:
        summary = "The base model alone, trained on the answers of an aggregation."
        texts = summary, "That of the aggregation.", "Instances, and what the aggregation needs."
        return MethodCard(name, "deep", kind.name, None, "", *texts, (), (), kind.training.fit_aggregated, command, ())
    layer, settings = crowd_layer_class(name, kind.name), hyperparameters_of(name, kind.name)
    texts = _describe(layer)
    extras = ("features",) * layer.traits.uses_features + ("confidence",) * ("confidence" in settings)
    python = kind.training.fit.format(layer=f"{layer.__name__}({_arguments(layer, kind)})")
    names = _class_name(layer, "crowdzoo.layers"), methods.version(name).partition(" ")[0]
    return MethodCard(name, "deep", kind.name, *names, *texts, extras, settings, python, command, ())


def _arguments(layer: Any, kind: Kind) -> str:
    """Required arguments of the layer."""
    named = {"num_annotators": "annotations.num_annotators", "num_classes": "annotations.num_classes"}
    known = {"kind": repr(kind.labels.learned.name), "num_annotations": "len(annotations)"}
    arguments = []
    for name, parameter in inspect.signature(layer.__init__).parameters.items():
        if name in named and parameter.default is parameter.empty:
            arguments.append(named[name])
        elif name == "num_annotations" or (name == "kind" and kind.labels.learned.name != layer.traits.kinds[0]):
            arguments.append(f"{name}={known[name]}")
        elif name == "connection" and kind.labels.has_numbers:
            arguments.append("connection='B'")  # the default of `create_crowd_layer`
    return ", ".join(arguments)


def _aggregation(kind: Kind, name: str, methods: Any) -> MethodCard:
    from crowdzoo.aggregation.registry import METHODS_OF
    from crowdzoo.aggregation.sentences.token_aggregation import TokenAggregation

    cls = methods[name]
    texts = _describe(cls)
    described, call = cls, f"{cls.__name__}()"
    if cls is TokenAggregation:  # the method for classes has the description
        described, call = METHODS_OF["classification"][name], f"{cls.__name__}({name!r})"
        summary, source, needs = _describe(described)
        texts = f"Token by token: {summary[0].lower() + summary[1:]}", source, needs
    parameters = inspect.signature(cls.fit).parameters  # every aggregator has `fit`
    extras = [extra for extra in ("gold", "initial") if extra in parameters]
    settings = tuple(inspect.signature(described).parameters)
    if "confidence" in settings:
        extras.append("confidence")
    if most := getattr(described, "max_classes", None):
        extras.append(f"at most {most} classes")
    command = f"crowdzoo aggregate {''.join(_files(kind))} --method {name} --out labels"
    names = _class_name(cls, "crowdzoo.aggregation"), methods.version(name).partition(" ")[0]
    lines = f"{call}.fit(annotations)", command
    return MethodCard(name, "aggregation", kind.name, *names, *texts, tuple(extras), settings, *lines, ())


def _class_name(cls: type, room: str) -> str:
    return f"{room if cls.__module__.startswith(f'{room}.') else cls.__module__}.{cls.__name__}"


def _describe(cls: type) -> tuple[str, str, str]:
    """First paragraph of a docstring, and its sections "Source" and "Needs", each on one line."""
    text = inspect.cleandoc(cls.__doc__ or "")
    summary = " ".join(text.split("\n\n")[0].split()) or "Not said."
    return summary, _section(text, "Source"), _section(text, "Needs")


def _section(text: str, name: str) -> str:
    _, heading, rest = f"\n{text}\n".partition(f"\n{name}:\n")
    lines = [] if heading else ["Not said."]
    for line in rest.split("\n"):
        if line and not line.startswith(" "):
            break
        lines.append(line)
    return " ".join(textwrap.dedent("\n".join(lines)).split())


@functools.cache
def _read_saved(file: str) -> dict[str, Any]:
    return json.loads(resources.files("crowdzoo.report").joinpath(file).read_text("utf-8"))


def _figures(card: MethodCard) -> tuple[dict[str, Any], ...]:
    return tuple(_read_saved("method_figures.json")[card.sort].get(card.kind, {}).get(card.name, ()))
