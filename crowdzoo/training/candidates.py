"""Deep methods that are compared where none is named. Loads no Keras."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from crowdzoo.data.label_kinds import LabelKind, label_kind
from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.training.methods import AGGREGATED

AUTO = "auto"  # stands where a method is named

Candidates = tuple[tuple[str, Mapping[str, Any]], ...]

# The recommended method, those that are level with it on the nine sets of docs/results.md, and labels alone; the
# cheapest first
CANDIDATES: Candidates = (
    (AGGREGATED, {}),
    ("ccem", {}),
    ("geo-crowd-net", {}),
    ("max-mig", {}),
    ("cross-fitted-em", {}),
)

# The same of ratings; those of docs/ratings.md
RATING_CANDIDATES: Candidates = (
    (AGGREGATED, {}),
    ("crowdsourced-layer", {"connection": "B"}),
    ("crowdsourced-layer", {"connection": "S+B"}),
    ("rating-em", {}),
)


def compared(kind: LabelKind) -> Candidates:
    """The methods that are compared for a kind of label; none where none are."""
    if kind.one_class:
        return CANDIDATES
    return () if kind.has_classes else RATING_CANDIDATES


def named_candidates(kind: str, settings: Mapping[str, Any]) -> Candidates:
    """The methods that auto compares in the pipeline, by its settings where a method's hyperparameters stand.

    Args:
        kind: of label.
        settings: `candidates`, a list of names of methods, or nothing.

    Raises:
        ConfigError: another kind than classification, another setting, or no list of names.
    """
    if not label_kind(kind).one_class:
        raise ConfigError(
            f"{AUTO}: the pipeline compares methods for classes, and these are labels of kind {kind}; name a method."
        )
    for name in settings:
        if name != "candidates":
            raise ConfigError(
                f"{name}: {AUTO} has one setting, candidates, a list such as [deep-em, waum]. Name a method to set "
                "what it has."
            )
    given = settings.get("candidates")
    if given is None:
        return CANDIDATES
    if not isinstance(given, list) or not given or not all(isinstance(name, str) and name.strip() for name in given):
        raise ConfigError(f"candidates: must be a list of methods, such as [deep-em, waum], got {short_repr(given)}.")
    return tuple((name.strip(), {}) for name in given)


def check_candidates(settings: Any, candidates: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """The settings of each candidate.

    Args:
        settings: of a training; method and arguments are those of the candidates.
        candidates: methods and their hyperparameters.

    Raises:
        ConfigError: there are none, one is there twice, an unknown method or hyperparameter, or settings with patience.
    """
    if settings.patience is not None:
        raise ConfigError(
            f"training: {AUTO} chooses the number of epochs itself. Remove patience, or name a method in place of it."
        )
    candidates = tuple(candidates)
    for place, each in enumerate(candidates):
        if each[0] == AUTO:
            raise ConfigError("candidates: auto compares methods, and cannot be one of them.")
        if each in candidates[:place]:
            raise ConfigError(f"candidates: {each[0]} is there twice.")
    found = [replace(settings, method=method, arguments=dict(arguments)) for method, arguments in candidates]
    if not found:
        raise ConfigError("candidates: name at least one method.")
    return found


def title_of(settings: Any) -> str:
    """Name and hyperparameters of a method in one line."""
    return " ".join([settings.method, *(f"{name}={value}" for name, value in settings.arguments.items())])
