"""Kinds of labels: one object for each, with everything that belongs to it (see `crowdzoo.kinds.base`)."""

from crowdzoo.errors import ConfigError, unknown
from crowdzoo.kinds.base import Kind
from crowdzoo.kinds.classes.kind import Classification
from crowdzoo.kinds.preferences.kind import Preferences
from crowdzoo.kinds.ratings.kind import Ratings
from crowdzoo.kinds.sentences.kind import Sentences
from crowdzoo.kinds.training_set import TrainingSet

__all__ = ["KINDS", "Kind", "TrainingSet", "kind_of"]

# By name; the first is the default of the command line
KINDS: dict[str, Kind] = {each.name: each for each in (Classification(), Sentences(), Ratings(), Preferences())}


def kind_of(name: object) -> Kind:
    """The kind of that name.

    Args:
        name: "classification", "sequence", "regression" or "preference".

    Raises:
        ConfigError: there is none.
    """
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise ConfigError(unknown("kind of label", name, KINDS))
