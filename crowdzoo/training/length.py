"""Default epochs and batch size of a training."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, TypeVar

from crowdzoo.training.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from crowdzoo.data.annotations import Annotations

STEPS = 10  # least number of gradient steps per epoch
SMALLEST, LARGEST = 4, 64  # batch size, a power of two

SettingsT = TypeVar("SettingsT", bound=Settings)

_log = logging.getLogger(__name__)


def with_length(settings: SettingsT, num_examples: int) -> SettingsT:
    """Chooses epochs and batch size by the number of training examples if they are None.

    The batch size is the largest power of two from 4 to 64 with which an epoch has 10 gradient steps or more: 64 from
    640 examples on. The number of epochs is the usual one for the kind of model, increased if an epoch has fewer than
    10 steps. So every training has at least ten times as many gradient steps as the usual number of epochs.

    Args:
        settings: settings of a training; not changed.
        num_examples: N, number of training tasks.

    Returns:
        The settings with both set. The choice is logged.
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
    """Number of tasks, or of pairs of tasks, to learn from.

    Args:
        annotations: `Annotations`, of which labelled tasks are counted, or for preferences pairs. Or None.
        targets: one row per task, if there are no annotations.
    """
    if annotations is None:
        return 0 if targets is None else len(targets)
    if annotations.right_ids is not None:
        return len(annotations.pairs()[0])
    return int((annotations.redundancy > 0).sum())
