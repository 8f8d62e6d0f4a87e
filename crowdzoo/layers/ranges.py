"""What the settings of the layers and of their training may be."""

from typing import Any

from crowdzoo.constraints import Choice, Flag, Number
from crowdzoo.errors import ConfigError, short_repr

__all__ = [
    "ANNOTATORS",
    "BATCH",
    "CLASSES",
    "DENOMINATOR",
    "DIAGONAL",
    "DROPOUT",
    "EPOCHS",
    "FLAG",
    "LEARNING_RATE",
    "MARGIN",
    "PHASE",
    "PSEUDO_COUNT",
    "SCALE",
    "SEED",
    "STRENGTH",
    "UNITS",
    "hidden_units",
]

CODES = 2**31 - 1  # codes are int32
ANNOTATORS = Number(1, CODES, whole=True)
CLASSES = Number(2, CODES, whole=True)
UNITS = Number(1, 65_536, whole=True)
DIAGONAL = Number(1e-6, 1 - 1e-6)  # within float32, with a finite logarithm on both sides
PSEUDO_COUNT = Number(1e-9, 1e9)
STRENGTH = Number(0, 1e6)
SCALE = Number(-1e4, 1e4)
PHASE = Number(1, 10_000, whole=True)  # of epochs or rounds that come on top of the training's own
EPOCHS = Number(1, 10**9, whole=True)
BATCH = Number(1, CODES, whole=True)
LEARNING_RATE = Number(0, 1e3, above=True)
DROPOUT = Number(0, 1, below=True)
SEED = Number(0, 2**32 - 1, whole=True)  # what keras.utils.set_random_seed takes
FLAG = Flag()
MARGIN = Choice(("top-2", "pleiss"))  # of AUM
DENOMINATOR = Choice(("trust", "redundancy"))  # of WAUM


def hidden_units(where: str, hidden: Any) -> tuple[int, ...]:
    """Units of the hidden layers, checked.

    Args:
        where: class that has them, for messages.
        hidden: a sequence of numbers.

    Raises:
        ConfigError: no sequence, or a number out of range.
    """
    if not isinstance(hidden, (list, tuple)):
        raise ConfigError(f"{where}: hidden is a list of units, such as [128]. Received: hidden={short_repr(hidden)}.")
    return tuple(UNITS.checked(where, "hidden", units) for units in hidden)
