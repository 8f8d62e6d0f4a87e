"""Checks that the settings of every training share."""

from dataclasses import replace
from typing import Any

from crowdzoo.constraints import Rule
from crowdzoo.errors import ConfigError
from crowdzoo.layers.ranges import BATCH, DROPOUT, EPOCHS, FLAG, LEARNING_RATE, SEED, UNITS
from crowdzoo.tables.scale import check_ends
from crowdzoo.training.methods import check_method

__all__ = ["check_scale_ends", "check_training"]

RULES: dict[str, Rule] = {
    "epochs": replace(EPOCHS, optional=True),
    "batch_size": replace(BATCH, optional=True),
    "learning_rate": LEARNING_RATE,
    "dropout": DROPOUT,
    "seed": SEED,
    "embedding": UNITS,
    "filters": UNITS,
    "units": UNITS,
    "max_words": BATCH,
    "min_texts": BATCH,
    "max_length": replace(BATCH, optional=True),
    "batch_normalization": FLAG,
    "bidirectional": FLAG,
    "characters": FLAG,
    "crf": FLAG,
}


def check_training(settings: Any, task: str) -> None:
    """Checks the method and every setting that has a range.

    Args:
        settings: has the fields `method` and `arguments`, and any of those of `RULES`.
        task: "classification", "regression" or "sequence".

    Raises:
        ConfigError: a value that makes no sense; it names the setting.
    """
    try:
        check_method(settings.method, settings.arguments, task)
    except ConfigError as error:
        raise ConfigError(f"training: {error}") from error
    for name, rule in RULES.items():
        if hasattr(settings, name):
            rule.checked("training", name, getattr(settings, name))


def check_scale_ends(low: float | None, high: float | None) -> None:
    """Checks the ends of a scale of ratings, either of which may be open.

    Raises:
        ConfigError: they are infinite, or the wrong way round.
    """
    try:
        check_ends(low, high)
    except ConfigError as error:
        raise ConfigError(f"training: {error}") from error
