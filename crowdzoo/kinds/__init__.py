"""Kinds of labels, each a value with everything that belongs to it (see `crowdzoo.kinds.kind`)."""

from crowdzoo.data.label_kinds import OTHER_NAMES
from crowdzoo.errors import ConfigError, unknown
from crowdzoo.kinds.classes.kind import CLASSES
from crowdzoo.kinds.free_texts.kind import FREE_TEXTS
from crowdzoo.kinds.kind import Kind
from crowdzoo.kinds.preferences.kind import PREFERENCES
from crowdzoo.kinds.ratings.kind import RATINGS
from crowdzoo.kinds.regions.kind import REGIONS
from crowdzoo.kinds.sentences.kind import SENTENCES
from crowdzoo.kinds.several_labels.kind import SEVERAL_LABELS
from crowdzoo.kinds.training import TrainingSet

__all__ = ["KINDS", "Kind", "TrainingSet", "kind_of"]


def __dir__() -> list[str]:
    return __all__


# By name; the first is the default of the command line
_KINDS = (CLASSES, SENTENCES, RATINGS, PREFERENCES, FREE_TEXTS, REGIONS, SEVERAL_LABELS)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _KINDS}


def kind_of(name: object) -> Kind:
    """Return a kind by name.

    Args:
        name: a key of `KINDS`.

    Raises:
        ConfigError: an unknown kind.
    """
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise ConfigError(unknown("kind of label", name, KINDS, OTHER_NAMES))
