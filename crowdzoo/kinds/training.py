"""A model from files of Examples: `train_from_files` in `training.py` of a kind's folder."""

from collections.abc import Sequence
from typing import Any

from crowdzoo.kinds.parts import part_of
from crowdzoo.records.training import Trained
from crowdzoo.training.checkpoint import Checkpoint


def train_from_files(
    kind: str, settings: Any, files: Sequence[str], info: dict[str, Any], checkpoint: Checkpoint | None, **more: Any
) -> Trained:
    """See `crowdzoo.records.training.train_on_instances`; `more` is `start`, where it is given."""
    found: Trained = part_of(kind, "training").train_from_files(settings, files, info, checkpoint, **more)
    return found
