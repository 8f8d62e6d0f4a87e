"""Reward models, from files of Examples."""

from collections.abc import Sequence
from typing import Any

from crowdzoo.kinds.preferences.records import read_pairs
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.checkpoint import Checkpoint
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import AGGREGATED


def train_from_files(
    settings: Any, files: Sequence[str], info: dict[str, Any], checkpoint: Checkpoint | None = None
) -> Trained:
    """Trains a reward model on pairs, which are read whole; each instance is held once.

    Args: see `train_on_instances`.
    """
    pairs = read_pairs(files, info)
    model, encoder = train(
        settings, pairs.instances, annotations=pairs.annotations,
        label_distribution=pairs.posteriors if settings.method == AGGREGATED else None, verbose=2,
        checkpoint=checkpoint,
    )  # fmt: skip
    return Trained(model, model.history, encoder, take_rows(pairs.instances.values, slice(WARMUP)))
