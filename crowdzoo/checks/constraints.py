"""Constraints of settings: rules as data, and one way to check them.

A function (or a class's `__init__`) lists the rules of its arguments in a decorator; a `Checked` dataclass adds them
to its fields; other code calls `Rule.checked`::

    @checked(num_tasks=Number(1, whole=True), noise=Number(0), form=Choice(FORMS))
    def make(num_tasks, noise=0.5, form="round"): ...
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from crowdzoo.errors import ConfigError, Setting, bad_setting, short_repr, unknown

LARGEST = 1e300
LARGEST_INTEGER = 2**63 - 1
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Settings = TypeVar("_Settings", bound="Checked")


class Rule(Protocol):
    """Constraint of a setting."""

    def checked(self, where: str, name: str, value: object) -> Any:
        """Returns the value, converted to `int` if it is a whole number, to `float` if it is another number.

        Args:
            where: class or function with the setting, at the start of the message; may be empty.
            name: name of the setting.
            value: the value to check.

        Raises:
            ConfigError: the value is not accepted; the message describes accepted values.
        """


@dataclass(frozen=True)
class Number:
    """A finite number in a range.

    Args:
        least: minimum. Default: none.
        most: maximum. Default: none (for integers, the maximum of 64 bits).
        whole: whether the number must be an integer.
        above: whether `least` itself is excluded.
        below: whether `most` itself is excluded.
        optional: whether None is accepted.
    """

    least: float = -LARGEST
    most: float = LARGEST
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
            # converted first: small NumPy types would overflow in comparisons with the ends
            number = int(value) if isinstance(value, (int, np.integer)) else float(value)
            too_low = number <= self.least if self.above else number < self.least
            too_high = number >= self.most if self.below else number > min(self.most, self._largest)
            if not too_low and not too_high and number == number:  # a NaN is not itself
                return number
        raise bad_setting(name, f"must be {self}", value, where)

    @property
    def _largest(self) -> float:
        return LARGEST_INTEGER if self.whole else LARGEST

    def __str__(self) -> str:
        low, high = (f"{end:,}" if self.whole else f"{end:g}" for end in (self.least, self.most))
        kind = "an integer" if self.whole else "a number"
        if self.most < LARGEST_INTEGER:
            upper = ("and below" if self.above else "to below") if self.below else "and at most" if self.above else "to"
            text = f"{kind} {'above' if self.above else 'from'} {low} {upper} {high}"
        elif self.least > -LARGEST:
            text = f"{kind} {'above' if self.above else 'of at least'} {low}"
        else:
            text = kind if self.whole else "a finite number"
        return f"{text}, or {short_repr(None)}" if self.optional else text


@dataclass(frozen=True)
class Choice:
    """One of several words.

    Args:
        words: accepted words.
        optional: whether None is accepted.
    """

    words: Iterable[str]
    optional: bool = False

    def checked(self, where: str, name: str, value: object) -> Any:
        """See `Rule`."""
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return value
        place = f"{where}: " if where else ""
        raise ConfigError(place + unknown(name, value, self.words), setting=name, value=value)


@dataclass(frozen=True)
class Flag:
    """True or False.

    Args:
        optional: whether None is accepted.
    """

    optional: bool = False

    def checked(self, where: str, name: str, value: object) -> bool | None:
        """See `Rule`."""
        if value is None and self.optional:
            return None
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise bad_setting(name, f"must be {self}", value, where)

    def __str__(self) -> str:
        yes, no, none = map(short_repr, (True, False, None))
        return f"{yes} or {no}" + f", or {none}" * self.optional


COUNT = Number(1, 10_000, whole=True)  # of starts and the like, each of which takes a fit
MAX_ITER = Number(1, 1_000_000, whole=True)
TOL = Number(0, 1e12)
PRIOR = Number(0, 1e9)  # maximum pseudo-count, above any number of annotations
END = Number(optional=True)  # end of a scale
CENTER = Number(-1e150, 1e150)  # of ratings
UNIT = Number(0, 1e150, above=True)  # of ratings
LEVEL = Choice(("all", "following"))  # ratings whose biases sum to zero
SEED = Number(0, whole=True)
TABLE_FORMATS = ("parquet", "csv", "jsonl", "xlsx")  # suffixes of written tables
FLAG = Flag()


def setting_value(text: str) -> Any:
    """Parses the value of a setting: JSON if the text is JSON, also numbers such as .3 and 1.; else the text itself.

    Raises:
        RecursionError: nested too deep.
    """
    for form in (text, re.sub(r"(?<![\w.])\.(?=\d)", "0.", re.sub(r"(?<=\d)\.(?!\d)", ".0", text))):
        try:
            return json.loads(form)
        except ValueError:
            continue
    return text


def setting(default: Any, rule: Rule) -> Any:
    """Declares a field of a `Checked` dataclass, with its default and its rule."""
    return field(default=default, metadata={"rule": rule})


class Checked:
    """Base of a frozen dataclass that checks its settings by its `rules` when it is created; see `check_settings`.

    The rules are those of the fields created by `setting`, and those that the class lists itself.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.rules = {**cls.rules, **{name: field.metadata["rule"] for name, field in own.items() if field.metadata}}

    def __post_init__(self) -> None:
        check_settings(self, self.rules)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the settings by name, for `sklearn.base.clone` and scikit-learn's searches.

        Args:
            deep: for compatibility with scikit-learn; no setting is an estimator.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)} if is_dataclass(self) else {}

    def set_params(self: _Settings, **settings: Any) -> _Settings:
        """Changes settings in place, either all or, if one is refused, none.

        Objects are compared and hashed by their settings, so do not change one that is a key of a dictionary.

        Args:
            **settings: new values by name.

        Returns:
            The object itself.

        Raises:
            ConfigError: an unknown setting (the message suggests the nearest one), or a value out of range.
        """
        known = Choice(self.get_params())
        for name in settings:
            known.checked(type(self).__name__, "setting", name)
        changed = type(self)(**{**self.get_params(), **settings})
        for name, value in changed.get_params().items():
            object.__setattr__(self, name, value)
        return self


def check_settings(settings: Any, rules: Mapping[str, Rule], where: str = "") -> None:
    """Checks the fields of a dataclass, and converts each to a plain Python value.

    Args:
        settings: a frozen dataclass; called in its `__post_init__`.
        rules: rule of each field, by name.
        where: start of messages. Default: the name of the class.

    Raises:
        ConfigError: a setting is out of range; the message names class, setting, range and value.
    """
    for name, rule in rules.items():
        value = rule.checked(where or type(settings).__name__, name, getattr(settings, name))
        object.__setattr__(settings, name, value)


def check_ends(low: float | None, high: float | None) -> None:
    """Checks the ends of a scale, each of which may be None.

    Raises:
        ConfigError: one is not a finite number, or low is not below high.
    """
    low, high = END.checked("", "low", low), END.checked("", "high", high)
    if low is not None and high is not None and not low < high:
        text = f"must be below {Setting('high')}, got {Setting('low', low)}, {Setting('high', high)}"
        raise ConfigError(f"{Setting('low')} {text}", setting="low", value=low)


def checked(**rules: Rule) -> Callable[[_Function], _Function]:
    """Checks the arguments of a function before it runs, and converts them to plain Python values.

    Defaults are not checked. Messages begin with the name of the function, or for `__init__` of the class.

    Args:
        **rules: rules of arguments, by name.

    Raises:
        ConfigError: an argument is out of range (when the function is called).
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        assert set(rules) <= set(signature.parameters), f"{function.__name__} has no such arguments: {sorted(rules)}"

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's own message names the function
            arguments = bound.arguments
            where = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
            arguments.update(
                {name: rules[name].checked(where, name, arguments[name]) for name in rules if name in arguments}
            )
            return function(*bound.args, **bound.kwargs)

        # Keras reads the arguments of a layer's `__init__` without following `__wrapped__`
        wrapper.__signature__ = signature  # type: ignore[attr-defined]  # functions accept any attribute
        return cast(_Function, wrapper)

    return decorate
