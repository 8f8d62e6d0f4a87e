"""Settings of all aggregators: each has a range, and what is out of it is refused in one sentence."""

import inspect

import numpy as np
import pytest

from crowdzoo import ConfigError
from crowdzoo.aggregation import (
    METHODS,
    PREFERENCE_METHODS,
    RATING_METHODS,
    SEQUENCE_METHODS,
    TEXT_METHODS,
    OneCoinDawidSkene,
    create,
)
from crowdzoo.checks.constraints import Choice, Flag, Number
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

KINDS = (METHODS, RATING_METHODS, SEQUENCE_METHODS, PREFERENCE_METHODS, TEXT_METHODS)
CLASSES = {method for methods in KINDS for method in methods.values()}
SETTINGS = sorted(((cls, name) for cls in CLASSES for name in inspect.signature(cls).parameters), key=str)
IDS = [f"{cls.__name__}-{name}" for cls, name in SETTINGS]

NONSENSE = (
    *(float("nan"), float("inf"), -float("inf"), -1, -1e-300, 1e300, 10**9 + 10**17, 10**5000, -(10**5000), 1j),
    *("", "1", "nonsense", "x" * 100_000, b"1", [], {}, object(), [[1]], np.zeros(3), {"a": 1}, np.datetime64("NaT")),
)
HARMLESS = {
    "dependencies": ([],),
    "settings": ({}, {"a": 1}),
    "seed": (10**9 + 10**17,),
    **dict.fromkeys(("low", "high"), (-1, -1e-300, 1e300, 10**9 + 10**17)),
    **dict.fromkeys(("alpha_mean", "b_mean"), (-1, -1e-300)),
}


@pytest.mark.parametrize(("cls", "name"), SETTINGS, ids=IDS)
def test_nonsense_is_refused_by_method_setting_range_and_value(cls, name):
    for value in NONSENSE:
        if any(type(value) is type(harmless) and value == harmless for harmless in HARMLESS.get(name, ())):
            continue
        with pytest.raises(ConfigError) as refused:
            cls(**{name: value})
        text = str(refused.value)
        if name != "method":
            assert name in text
            assert cls.__name__ in text
        assert len(text) < 700
        assert "np." not in text


# Just outside of a range, of which the nonsense above is far
OUTSIDE = {
    **dict.fromkeys(("max_iter", "num_starts", "num_rounds", "num_clusters", "subtypes", "step_every"), 0),
    **dict.fromkeys(("annotator_prior", "subtype_prior", "know", "spam", "strategy", "step"), 0),
    **dict.fromkeys(("alpha_variance", "b_variance", "bias_deviation", "sharpness_deviation"), 0),
    "b_mean": 30.5,
    "folds": 1,
    "gamma": (0.25, 0),
    "step_factor": 1.01,
    "shape": 0.09,
    "share": 1.0,
    "trim": 0.5,
    "unrelated": 0.51,
    "class_balance": (0.5, 0.6),
    "dependencies": (("a", "a"),),
}
ABOVE_ZERO = [("IBCC", "prior"), ("EBCC", "prior"), ("IBCC", "class_prior"), ("EBCC", "class_prior")]
ABOVE_ZERO += [
    (chain, name) for chain in ("HMMCrowd", "BayesianSequenceCombination") for name in ("prior", "transitions")
]
AROUND = [(cls, name, OUTSIDE[name]) for cls, name in SETTINGS if name in OUTSIDE]
AROUND += [(cls, name, 0) for cls, name in SETTINGS if (cls.__name__, name) in ABOVE_ZERO]


@pytest.mark.parametrize(("cls", "name", "value"), AROUND, ids=lambda one: getattr(one, "__name__", str(one)))
def test_what_is_just_outside_is_refused_too(cls, name, value):
    with pytest.raises(ConfigError, match=f"{cls.__name__}.*{name}"):
        cls(**{name: value})


@pytest.mark.parametrize(("cls", "name"), [each for each in SETTINGS if isinstance(each[0].rules.get(each[1]), Choice)])
def test_a_misspelt_word_is_answered_with_the_nearest(cls, name):
    known = next(iter(cls.rules[name].words))
    with pytest.raises(ConfigError, match=f"unknown {name} '{known}x': .*{known}"):
        cls(**{name: f"{known}x"})


@pytest.mark.parametrize("cls", sorted(CLASSES, key=str))
def test_numpy_numbers_become_python_numbers(cls):
    rules = getattr(cls, "rules", {})
    for name, rule in rules.items():
        if isinstance(rule, Number) and rule.whole:
            found = getattr(cls(**{name: np.uint8(2)}), name)
            assert type(found) is int
        elif isinstance(rule, Number):
            value = np.float32(0.25)
            assert type(getattr(cls(**{name: value}), name)) is float
        elif isinstance(rule, Flag):
            assert getattr(cls(**{name: np.True_}), name) is True


@pytest.mark.parametrize("method", METHODS)
def test_small_integer_types_do_not_overflow(method):
    """np.uint8(255) + 1 is an error, or 0, on NumPy 2."""
    annotations, _ = simulated_crowd(20, 5, 2)
    rules = METHODS[method].rules
    whole = {name: np.uint8(1 if name == "num_starts" else 255) for name in ("max_iter", "num_starts", "seed")}
    settings = {name: value for name, value in whole.items() if name in rules}
    few = {"num_starts": np.uint8(1)} if method == "ebcc" else {}
    create(method, **{**settings, **few}).fit(annotations)


def test_messages_show_python_values():
    with pytest.raises(ConfigError, match=r"^OneCoinDawidSkene: max_iter must .* to 1,000,000, got 0\.$"):
        OneCoinDawidSkene(max_iter=np.int64(0))
    with pytest.raises(ConfigError, match=r"tol must be .*, got nan"):
        OneCoinDawidSkene(tol=np.float64("nan"))
