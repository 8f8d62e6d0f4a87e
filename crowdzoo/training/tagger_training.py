"""Training of a tagger on crowd tags, for the command line and the pipeline."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.tags import TagSet
from crowdzoo.errors import DataError
from crowdzoo.networks.sequence_tagger import SequenceTagger
from crowdzoo.networks.token_encoder import TokenEncoder
from crowdzoo.training.bases.base import fields_of
from crowdzoo.training.checkpoint import Checkpoint, checkpoint_of
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.data import ArrayData
from crowdzoo.training.faults import LOOKED_AT, is_judged, warn_if_one_class
from crowdzoo.training.length import num_labelled, with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.pair_rows import pair_rows
from crowdzoo.training.settings import TaggerSettings
from crowdzoo.training.training_loop import compile_model, crowd_of, fit_and_check
from crowdzoo.training.training_scope import in_training_scope

# Call that messages suggest; see `pair_rows`
TRAIN = "train_tagger(settings, tokens, annotations, tasks={})"


@in_training_scope
def train_tagger(
    settings: TaggerSettings,
    tokens: Sequence[Sequence[str]],
    annotations: Annotations,
    *,
    tasks: ArrayLike | None = None,
    scheme: str = "BIO",
    tag_distribution: Sequence[np.ndarray] | None = None,
    verbose: str | int = 0,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> tuple[CrowdModel, TokenEncoder]:
    """Trains a tagger from scratch. Two runs with the same arguments on one CPU give the same weights.

    The sentences should be tokenized as the served model tokenizes text, see `crowdzoo.data.retokenized`.

    Args:
        settings: how to train.
        tokens: tokens of each sentence, N lists.
        annotations: kind "sequence"; its classes are the tags.
        tasks: ids of the N sentences, which match them with the annotations (for a `CrowdSequences`, the tasks of its
            annotations); see `CrowdModel.fit`.
        scheme: "BIO" or "IOBES", for the CRF's constraints.
        tag_distribution: N arrays `[T_i, K]`, rows sum to one (or zeros where unknown), for method "aggregated".
        verbose: Keras' verbosity.
        callbacks: Keras callbacks.
        checkpoint: folder in which the state is kept after each epoch; with the same arguments an interrupted training
            continues from it and ends with the same weights. It is not removed. None saves nothing.

    Returns:
        The trained model, and the encoder that turns text into its input.

    Raises:
        ConfigError: a checkpoint of another training.
        DataError: the tags that the method needs are missing or do not fit the sentences, sentences cannot be matched
            with tasks, or the loss or a weight became NaN or infinite.

    Warns:
        NotLearnedWarning: the trained model predicts one tag for all tokens, while annotators gave others as well.
    """
    _, annotations = pair_rows(np.arange(len(tokens)), annotations, tasks, line=TRAIN)
    if annotations.positions is None or annotations.classes is None:
        raise DataError(f"a tagger learns from annotations of kind 'sequence'. Received: kind {annotations.kind!r}.")
    if settings.method == AGGREGATED and tag_distribution is None:
        raise DataError("method aggregated needs tag_distribution, [T_i, K] for each sentence")
    settings = with_length(settings, num_labelled(annotations))
    keras.utils.set_random_seed(settings.seed)
    encoder = TokenEncoder.fit(tokens, characters=settings.characters)
    num_classes = annotations.num_classes
    crowd = crowd_of(settings, annotations.num_annotators, num_classes)
    allowed = None
    if settings.crf:
        first, after, _ = TagSet([str(name) for name in annotations.classes], scheme).follows()
        allowed = [*after.tolist(), first.tolist()]
    network = fields_of(settings, "embedding", "filters", "units", "dropout", "bidirectional", "crf")
    base = SequenceTagger(
        **encoder.sizes,
        num_classes=None if crowd is not None and crowd.traits.needs_hidden_layer else num_classes,
        **network,
        allowed=allowed,
        name="base",
    )
    model = compile_model(settings, base, crowd)
    encoded = encoder(tokens)
    data: Any = ArrayData(encoded, annotations, annotations.tasks)
    if crowd is None:
        targets = _pad(tag_distribution or (), tokens, num_classes, int(data.num_tokens or 1))
        data = data.batches(settings.batch_size, settings.seed, inputs=(), targets=targets)
    keep = checkpoint_of(checkpoint, (encoded, annotations, tag_distribution), settings)
    fit_and_check(model, settings, data, callbacks=callbacks, checkpoint=keep, verbose=verbose)
    if not is_judged(model):
        _warn_if_one_tag(model, encoder(tokens[:LOOKED_AT]), annotations)
    return model, encoder


def _warn_if_one_tag(model: CrowdModel, x: dict[str, np.ndarray], annotations: Annotations) -> None:
    """Warns if the tagger predicts one tag for all tokens of these sentences."""
    if model.crowd is None or not model.crowd.traits.needs_hidden_layer:
        tags = model.base.tag(x)
    else:
        is_token = x["words"] != 0
        tags = [model.predict(x, verbose=0).argmax(axis=-1)[is_token]]
    warn_if_one_class(np.concatenate(tags), annotations.labels, annotations.classes, "tokens")


def _pad(
    distributions: Sequence[np.ndarray], tokens: Sequence[Sequence[str]], num_classes: int, width: int
) -> np.ndarray:
    """Distributions of all sentences, float32 [N, T, K], zeros as padding."""
    if len(distributions) != len(tokens):
        raise DataError(f"there are {len(tokens):,} sentences, but {len(distributions):,} tag distributions")
    padded = np.zeros((len(tokens), width, num_classes), "float32")
    for task, (rows, words) in enumerate(zip(distributions, tokens, strict=True)):
        if np.shape(rows) != (len(words), num_classes):
            raise DataError(
                f"the tag distribution of sentence {task} must have shape {[len(words), num_classes]}, got "
                f"{list(np.shape(rows))}"
            )
        padded[task, : min(len(words), width)] = rows[:width]
    return padded
