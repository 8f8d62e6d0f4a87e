"""KINDS: the `KIND` in `kind.py` of each kind's folder."""

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import ConfigError, unknown
from crowdzoo.kinds.base import Kind
from crowdzoo.kinds.parts import part_of

# By name; the first is the default of the command line
KINDS: dict[str, Kind] = {name: part_of(name, "kind").KIND for name in LABEL_KINDS}


def kind_of(name: object) -> Kind:
    """The kind of that name.

    Args:
        name: a key of `KINDS`.

    Raises:
        ConfigError: no such kind.
    """
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    raise ConfigError(unknown("kind of label", name, KINDS))
