"""TextMethod: the settings that methods for free texts share."""

from dataclasses import dataclass
from typing import ClassVar

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.free_texts.tokens import NORMALIZATIONS, UNITS
from crowdzoo.checks.constraints import Choice, setting


@dataclass(frozen=True)
class TextMethod(Aggregator):
    """Base of the methods for free texts.

    Attributes:
        title: the method's name in messages.
        name: the method's name in `TEXT_METHODS`.
    """

    kind: ClassVar[str] = "free-text"
    title: ClassVar[str]
    name: ClassVar[str]

    unit: str = setting("words", Choice(UNITS))
    normalize: str = setting("blanks", Choice(NORMALIZATIONS))
