"""Checks that the settings of every training share."""

from collections.abc import Sequence
from typing import Any

from crowdzoo.check_scale import check_ends
from crowdzoo.errors import ConfigError
from crowdzoo.models.methods import check_method

__all__ = ["check_scale_ends", "check_training"]


def check_training(settings: Any, task: str, positive: Sequence[str]) -> None:
    """Checks what all settings have: method, learning rate, dropout and seed.

    Args:
        settings: has the fields `method`, `arguments`, `learning_rate`, `dropout`, `seed`, and those that are named.
        task: "classification", "regression" or "sequence".
        positive: names of fields that are whole numbers of at least 1; None stands for a default there.

    Raises:
        ConfigError: a value that makes no sense; it names the setting.
    """
    try:
        check_method(settings.method, settings.arguments, task)
    except ConfigError as error:
        raise ConfigError(f"training: {error}") from error
    for name in positive:
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ConfigError(f"training: {name} must be at least 1, got {value!r}")
    if not settings.learning_rate > 0:
        raise ConfigError(f"training: learning_rate must be above 0, got {settings.learning_rate!r}")
    if not 0 <= settings.dropout < 1:
        raise ConfigError(f"training: dropout must be at least 0 and below 1, got {settings.dropout!r}")
    if settings.seed < 0:
        raise ConfigError(f"training: seed must not be negative, got {settings.seed!r}")


def check_scale_ends(low: float | None, high: float | None) -> None:
    """Checks the ends of a scale of ratings, either of which may be open.

    Raises:
        ConfigError: they are infinite, or the wrong way round.
    """
    try:
        check_ends(low, high)
    except ConfigError as error:
        raise ConfigError(f"training: {error}") from error
