"""Epochs and batch size where the settings of a training leave them open."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, TypeVar

from crowdzoo.training.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from crowdzoo.data.annotations import Annotations

STEPS = 10  # gradient steps an epoch, at least
SMALLEST, LARGEST = 4, 64  # batch size, a power of two

SettingsT = TypeVar("SettingsT", bound=Settings)

_log = logging.getLogger(__name__)


def with_length(settings: SettingsT, num_examples: int) -> SettingsT:
    """Chooses epochs and batch size by the number of training examples, where they are None.

    The batch size is the largest power of two from 4 to 64 with which an epoch has 10 gradient steps or more: 64 from
    640 examples on. Epochs are the usual number of the kind of model; where an epoch has fewer than 10 steps, as many
    more as make up for it. So every training takes at least ten times the usual number of epochs in gradient steps.

    Args:
        settings: `TrainingSettings`, `TaggerSettings` or `TextSettings`; not changed.
        num_examples: N, the tasks that are trained on.

    Returns:
        The settings with both set. What was chosen is logged.
    """
    if settings.epochs is not None and settings.batch_size is not None:
        return settings
    batch_size, epochs = settings.batch_size, settings.epochs
    if batch_size is None:
        batch_size = SMALLEST
        while batch_size < LARGEST and 2 * batch_size * STEPS <= num_examples:
            batch_size *= 2
    if epochs is None:
        steps = max(1, -(-num_examples // batch_size))
        epochs = max(settings.usual_epochs, -(-settings.usual_epochs * STEPS // steps))
    _log.info("Training for %d epochs in batches of %d, for %d examples.", epochs, batch_size, num_examples)
    return dataclasses.replace(settings, epochs=epochs, batch_size=batch_size)


def num_labelled(annotations: Annotations | None = None, targets: np.ndarray | None = None) -> int:
    """How many tasks, or pairs of them, there are to learn from.

    Args:
        annotations: `Annotations`, whose tasks without labels do not count; for preferences the
            pairs are counted. Or None.
        targets: one row a task, where there are no annotations.
    """
    if annotations is None:
        return 0 if targets is None else len(targets)
    if annotations.right_ids is not None:
        return len(annotations.pairs()[0])
    return int((annotations.redundancy > 0).sum())
