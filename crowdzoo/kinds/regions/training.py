"""Networks for masks, from files of Examples."""

from collections.abc import Sequence
from typing import Any

from crowdzoo.kinds.regions.mask_training import train_masks
from crowdzoo.kinds.regions.records import read_examples
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.checkpoint import Checkpoint


def train_from_files(
    settings: Any, files: Sequence[str], info: dict[str, Any], checkpoint: Checkpoint | None = None
) -> Trained:
    """Trains on images, which are read whole.

    Args: see `train_on_instances`.
    """
    read = read_examples(files, info)
    model, encoder = train_masks(
        settings, read.images, read.annotations, info["classes"], read.regions, verbose=2, checkpoint=checkpoint
    )
    return Trained(model, model.history, encoder, read.images[:WARMUP])
