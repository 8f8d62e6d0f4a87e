"""Values of settings that a search has found, and how they are put into the sections of a configuration."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdzoo.errors import DataError

# Names beside those of the search space, of which KerasTuner takes none for its own
EPOCHS = "tuner/epochs"  # with which the trial was best
OWN = "tuner/own"  # there, and true, where the trial has the values of the configuration itself
FEWEST_GOLD = 20  # tasks that are trained on


def as_choice(value: Any) -> Any:
    """A value as KerasTuner can hold it: numbers as they are, everything else (lists, words, true) as JSON."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)


def tuned_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among a trial's values, by dotted key: "training.learning_rate" -> 0.01.

    Args:
        values: those of KerasTuner's `HyperParameters`, with `EPOCHS`.
    """
    found = {
        key: json.loads(value) if isinstance(value, str) else value for key, value in values.items() if "/" not in key
    }
    return found | ({"training.epochs": values[EPOCHS]} if EPOCHS in values else {})


def with_values(sections: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Sections of a configuration with some values replaced.

    Args:
        sections: such as `training`; not changed.
        values: by dotted key.
    """
    changed = {name: dict(section) for name, section in sections.items()}
    for key, value in values.items():
        section, name = key.split(".")
        changed[section][name] = value
    return changed


def check_gold(gold: np.ndarray) -> None:
    """Checks that a search can be judged by gold.

    Args:
        gold: codes of the tasks that are trained on, -1 where unknown.

    Raises:
        DataError: too few are known.
    """
    if (number := int((gold >= 0).sum())) < FEWEST_GOLD:
        raise DataError(
            f"tuner.objective: gold is known of {number} tasks of train, and at least {FEWEST_GOLD} are needed. Set it "
            "to annotations, or name the gold of more tasks."
        )
