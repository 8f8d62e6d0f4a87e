"""Taggers, from files of Examples."""

from collections.abc import Sequence
from typing import Any

from crowdzoo.kinds.sentences.records import read_examples
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.checkpoint import Checkpoint
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.tagger_training import train_tagger


def train_from_files(
    settings: Any, files: Sequence[str], info: dict[str, Any], checkpoint: Checkpoint | None = None
) -> Trained:
    """Trains a tagger on sentences, which are read whole.

    Args: see `train_on_instances`.
    """
    sentences = read_examples(files, info)
    model, encoder = train_tagger(
        settings, sentences.tokens, sentences.annotations, tasks=sentences.annotations.tasks, scheme=info["scheme"],
        tag_distribution=sentences.posteriors if settings.method == AGGREGATED else None, verbose=2,
        checkpoint=checkpoint,
    )  # fmt: skip
    return Trained(model, model.history, encoder, sentences.texts[:WARMUP])
