"""Kinds of labels: one object for each, with everything that belongs to it (see `crowdzoo.kinds.base`)."""

from crowdzoo.errors import ConfigError, unknown
from crowdzoo.kinds.aggregated_kind import AggregatedKind
from crowdzoo.kinds.base import Kind, TrainingSet
from crowdzoo.kinds.classification import Classification
from crowdzoo.kinds.preferences import Preferences
from crowdzoo.kinds.ratings import Ratings
from crowdzoo.kinds.sentences import Sentences

__all__ = ["AGGREGATED_KINDS", "KINDS", "AggregatedKind", "Kind", "TrainingSet", "aggregated_kind_of", "kind_of"]

# By name; the first is the default of the command line
KINDS: dict[str, Kind] = {each.name: each for each in (Classification(), Sentences(), Ratings())}
# Those that `crowdzoo aggregate` takes; preferences have no model yet
AGGREGATED_KINDS: dict[str, AggregatedKind] = {**KINDS, Preferences.name: Preferences()}


def kind_of(name: object) -> Kind:
    """The kind of that name.

    Args:
        name: "classification", "sequence" or "regression".

    Raises:
        ConfigError: there is none.
    """
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise ConfigError(unknown("kind of label", name, KINDS))


def aggregated_kind_of(name: object) -> AggregatedKind:
    """The kind of that name, of those that are aggregated.

    Args:
        name: "classification", "sequence", "regression" or "preference".

    Raises:
        ConfigError: there is none.
    """
    if isinstance(name, str) and name in AGGREGATED_KINDS:
        return AGGREGATED_KINDS[name]
    raise ConfigError(unknown("kind of label", name, AGGREGATED_KINDS))
