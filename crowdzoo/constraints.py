"""Settings of the aggregators: each has a range, and all are checked in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdzoo.errors import ConfigError, did_you_mean, short_repr

__all__ = ["COUNT", "END", "MAX_ITER", "PRIOR", "SEED", "TOL", "Choice", "Flag", "Number", "Rule", "check_settings"]

MOST_SHOWN = 2**63 - 1  # a higher end of a range goes without saying


class Rule(Protocol):
    """What a setting may be."""

    def checked(self, where: str, name: str, value: object) -> Any:
        """The value, a whole number as `int` and any other as `float`.

        Raises:
            ConfigError: it is none of the accepted ones, which the message names.
        """


@dataclass(frozen=True)
class Number:
    """A finite number in a range.

    Args:
        least: lowest accepted number.
        most: highest accepted number.
        whole: integers only.
        above: `least` itself is not accepted.
        below: `most` itself is not accepted.
        optional: None is accepted.
    """

    least: float
    most: float
    whole: bool = False
    above: bool = False
    below: bool = False
    optional: bool = False

    def checked(self, where: str, name: str, value: object) -> Any:
        """See `Rule`."""
        if value is None and self.optional:
            return None
        kinds = (int, np.integer) if self.whole else (int, float, np.integer, np.floating)
        if isinstance(value, kinds) and not isinstance(value, bool):
            too_low = value <= self.least if self.above else value < self.least
            too_high = value >= self.most if self.below else value > self.most
            if not too_low and not too_high and not math.isnan(value):
                return int(value) if self.whole or isinstance(value, (int, np.integer)) else float(value)
        raise ConfigError(_refusal(where, name, self, value))

    def __str__(self) -> str:
        low, high = (f"{end:,}" if self.whole else f"{end:g}" for end in (self.least, self.most))
        kind = "an integer" if self.whole else "a number"
        if self.most >= MOST_SHOWN:
            text = f"{kind} {'above' if self.above else 'of at least'} {low}"
        else:
            text = f"{kind} {'above' if self.above else 'from'} {low} {'and below' if self.below else 'to'} {high}"
        return f"{text}, or None" if self.optional else text


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    def checked(self, where: str, name: str, value: object) -> str:
        """See `Rule`."""
        if isinstance(value, str) and value in self.words:
            return str(value)
        hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
        raise ConfigError(_refusal(where, name, self, value) + hint)

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.words))}"


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def checked(self, where: str, name: str, value: object) -> bool:
        """See `Rule`."""
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise ConfigError(_refusal(where, name, self, value))

    def __str__(self) -> str:
        return "True or False"


def _refusal(where: str, name: str, rule: Rule, value: object) -> str:
    return f"{where}: " * bool(where) + f"{name} is {rule}. Received: {name}={short_repr(value)}."


COUNT = Number(1, 10_000, whole=True)  # of starts and the like, each of which costs a fit
MAX_ITER = Number(1, 1_000_000, whole=True)
TOL = Number(0, 1e12)
PRIOR = Number(0, 1e9)  # pseudo-counts: more than there are annotations
END = Number(-1e300, 1e300, optional=True)  # of a scale
SEED = Number(0, 2**63 - 1, whole=True)


def check_settings(aggregator: Any, rules: Mapping[str, Rule], where: str = "") -> None:
    """Checks an aggregator's settings, and sets each to the plain Python value that it stands for.

    Args:
        aggregator: a frozen dataclass; called by its `__post_init__`.
        rules: of each setting, by name.
        where: what messages begin with. Default: the name of the class.

    Raises:
        ConfigError: a setting out of its range; names the class, the setting, the range and the value.
    """
    for name, rule in rules.items():
        value = rule.checked(where or type(aggregator).__name__, name, getattr(aggregator, name))
        object.__setattr__(aggregator, name, value)
