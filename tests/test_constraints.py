"""Rules for settings: what each accepts, and what its message says."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

from crowdzoo.checks.constraints import COUNT, END, FLAG, SEED, Choice, Flag, Number, check_settings, checked
from crowdzoo.errors import ConfigError

HALF_OPEN = Number(0, 1, below=True)
OPEN = Number(0, 1, above=True, below=True)


@pytest.mark.parametrize(
    ("rule", "accepted", "refused", "message"),
    [
        (Number(1, 10, whole=True), [1, 10, np.uint8(3)], [0, 11, 2.0, True, None, "1"], "an integer from 1 to 10"),
        (Number(1, whole=True), [1, 2**63 - 1], [0, 2**63], "an integer of at least 1"),
        (Number(whole=True), [-3, 0], [1.5], "an integer"),
        (Number(0), [0, 0.5, np.float32(2), 1e300], [-1e-300, np.inf, np.nan, 1j, 10**5000], "a number of at least 0"),
        (Number(0, above=True), [1e-300], [0, -1], "a number above 0"),
        (HALF_OPEN, [0, 0.999], [1, 1.0, -0.1], "a number from 0 to below 1"),
        (OPEN, [0.5], [0, 1], "a number above 0 and below 1"),
        (Number(0, 2000, whole=True, optional=True), [None, 0], [2001, "None"], "an integer from 0 to 2,000, or None"),
        (END, [None, -1e9, 3], [np.nan, -np.inf, "3"], "a finite number, or None"),
        (SEED, [0, 2**63 - 1], [-1, 2**63, 0.0], "an integer of at least 0"),
        (COUNT, [1, 10_000], [10_001], "an integer from 1 to 10,000"),
        (Flag(), [True, False, np.False_], [0, 1, "True", None], "True or False"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_accepts_its_range_and_names_it_otherwise(rule, accepted, refused, message):
    for value in accepted:
        found = rule.checked("Thing", "size", value)
        assert found == value
        assert type(found) in (int, float, bool, type(None))
    for value in refused:
        with pytest.raises(ConfigError) as error:
            rule.checked("Thing", "size", value)
        assert str(error.value).startswith(f"Thing: size must be {message}, got ")
        assert len(str(error.value)) < 200


@pytest.mark.parametrize("words", [("soft", "hard"), {"soft": 1, "hard": 2}])
def test_a_choice_lists_its_words_and_the_nearest(words):
    assert Choice(words).checked("", "voting", "hard") == "hard"
    with pytest.raises(ConfigError, match=r"^Votes: unknown .*: choose one of soft, hard\. .*'soft'\?$"):
        Choice(words).checked("Votes", "voting", "sofd")
    assert Choice(words, optional=True).checked("", "voting", None) is None
    for value in (None, 1, ["soft"]):
        with pytest.raises(ConfigError, match=r"^unknown voting "):
            Choice(words).checked("", "voting", value)


@dataclass(frozen=True)
class Settings:
    size: int = 1
    other: str = "free"

    def __post_init__(self):
        check_settings(self, {"size": COUNT})


def test_fields_of_a_dataclass_are_checked_and_become_python_values():
    assert type(Settings(np.int16(5)).size) is int
    with pytest.raises(ConfigError, match=r"^Settings: size must be an integer from 1 to 10,000, got 0"):
        Settings(0)


@checked(size=COUNT, sure=FLAG)
def make(size, *rest, sure=False, **others):
    """Makes."""
    return size, rest, sure, others


class Maker:
    @checked(size=COUNT)
    def __init__(self, size=0):
        self.size = size


class Shop(Maker):
    pass


def test_arguments_of_a_function_are_checked_however_they_are_passed():
    assert make(np.int8(3), "a", sure=np.True_, more=1) == (3, ("a",), True, {"more": 1})
    assert type(make(size=np.int8(3))[0]) is int
    for refused in (lambda: make(0), lambda: make(size=0)):
        with pytest.raises(ConfigError, match=r"^make: size must be an integer from 1 to 10,000, got 0\.$"):
            refused()
    with pytest.raises(ConfigError, match=r"^make: sure must be True or False, got 1\.$"):
        make(1, sure=1)


def test_a_class_is_named_where_its_arguments_are_checked_and_defaults_are_not_checked():
    assert Maker().size == 0
    assert Shop(np.int8(2)).size == 2
    with pytest.raises(ConfigError, match=r"^Shop: size must be "):
        Shop(-1)


def test_a_checked_function_keeps_its_name_help_and_signature():
    assert (make.__name__, make.__doc__) == ("make", "Makes.")
    assert list(inspect.signature(make).parameters) == ["size", "rest", "sure", "others"]
    assert list(inspect.signature(Maker).parameters) == ["size"]
    with pytest.raises(TypeError, match=r"make\(\) missing 1 required positional argument: 'size'"):
        make()


def test_a_rule_without_an_argument_is_a_mistake_of_the_programmer():
    with pytest.raises(AssertionError, match="no such arguments"):
        checked(sise=COUNT)(lambda size: size)
