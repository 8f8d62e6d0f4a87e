"""Sentences as tf.Examples: from annotators' files, and back into arrays for training."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.errors import DataError
from crowdzoo.sequences import CrowdSequences, TagSet, read_conll, read_spans
from crowdzoo.sequences.retokenized import retokenized
from crowdzoo.tables.annotations import Annotations

__all__ = [
    "ReadSentences",
    "read_crowd_sequences",
    "read_examples",
    "sentence_examples",
    "splits_of",
    "with_answers",
]


def read_crowd_sequences(options: dict[str, Any]) -> CrowdSequences:
    """Reads what annotators said of sentences, cut into the tokens that the served model will see.

    Args:
        options: `annotations` (spans in .jsonl, else columns), `gold` (columns, or None), `scheme`, `classes` (of spans
            their types count, not their order), `on_bad_tags`.

    Raises:
        DataError: as the readers; or there is nothing to learn from.
    """
    path = options["annotations"]
    if Path(path.removesuffix(".gz")).suffix == ".jsonl":
        if options["gold"] is not None:
            raise DataError(f"{path}: gold of spans stands in the same file; leave data.gold out.")
        types = options["classes"] and TagSet(options["classes"], options["scheme"]).types
        sequences = read_spans(path, scheme=options["scheme"], types=types)
    else:
        sequences = read_conll(
            path,
            gold=options["gold"],
            scheme=options["scheme"],
            classes=options["classes"],
            on_bad_tags=options["on_bad_tags"],
        )
    if len(sequences.annotations) == 0:
        raise DataError(f"{path}: holds no annotations.")
    if sequences.annotations.num_classes < 2:
        raise DataError(f"{path}: nobody marked a span, so there is nothing to learn.")
    return retokenized(sequences)


def splits_of(sequences: CrowdSequences, eval_fraction: float, seed: int) -> np.ndarray:
    """Which split each sentence is of, "train" or "eval", by a hash of its text: one text is never on both sides."""
    digests = (hashlib.sha256(f"{seed}:{text}".encode()).digest() for text in sequences.texts or ())
    shares = np.array([int.from_bytes(digest[:8], "big") / 2**64 for digest in digests])
    return np.where(shares < eval_fraction, "eval", "train")


def sentence_examples(sequences: CrowdSequences, split: np.ndarray) -> Iterator[tuple[str, str, tf.train.Example]]:
    """(split, task, Example) of each sentence; those of train that nobody labelled are left out.

    `task` (bytes), `instances` (bytes, the text), `tokens` (bytes, [T]), `annotator_ids` (int64, [M]),
    `annotator_labels` (int64, [M T], annotator by annotator), and where known `gold` (int64, [T]).
    """
    crowd = sequences.annotations
    for task, tokens in enumerate(sequences.tokens):
        ids, labels = crowd.padded(np.array([task]))
        if ids.shape[1] == 0 and split[task] == "train":
            continue
        example = tf.train.Example()
        feature = example.features.feature
        name = str(crowd.tasks[task])
        feature["task"].bytes_list.value.append(name.encode())
        feature["instances"].bytes_list.value.append((sequences.texts or ())[task].encode())
        feature["tokens"].bytes_list.value.extend(token.encode() for token in tokens)
        feature["annotator_ids"].int64_list.value.extend(ids[0])
        feature["annotator_labels"].int64_list.value.extend(labels[0, : len(tokens)].T.ravel())
        if sequences.gold is not None:
            feature["gold"].int64_list.value.extend(sequences.gold[task])
        yield str(split[task]), name, example


def with_answers(
    example: tf.train.Example, posterior: np.ndarray | None, labels: np.ndarray | None, truth: str, outside: int
) -> tf.train.Example:
    """Adds `posterior` (float, [T K]; empty where nobody labelled), `aggregated_label`, `evaluation_label` and weight.

    Args:
        example: example of a sentence; changed.
        posterior: [T, K], or None.
        labels: codes [T], or None.
        truth: what evaluation compares with, "gold" or "aggregated".
        outside: code of "O", which stands where nothing is known.
    """
    feature = example.features.feature
    size = len(feature["tokens"].bytes_list.value)
    gold = list(feature["gold"].int64_list.value) if "gold" in feature else []
    found = [outside] * size if labels is None else [int(code) for code in labels]
    known = bool(gold) if truth == "gold" else labels is not None
    if posterior is not None:
        feature["posterior"].float_list.value.extend(posterior.ravel())
    feature["aggregated_label"].int64_list.value.extend(found)
    feature["evaluation_label"].int64_list.value.extend(gold if truth == "gold" and known else found)
    feature["evaluation_weight"].float_list.value.append(float(known))
    return example


@dataclasses.dataclass(frozen=True)
class ReadSentences:
    """Sentences read back from Examples.

    Attributes:
        texts: N strings.
        tokens: N lists of strings.
        annotations: kind "sequence"; tasks are numbered in the files' order.
        posteriors: N arrays [T_i, K] of the aggregation, rows of zeros where nobody labelled.
        evaluation_labels: N arrays int64 [T_i].
        evaluation_weights: float [N], 0 where nothing is known.
    """

    texts: list[str]
    tokens: list[list[str]]
    annotations: Annotations
    posteriors: list[np.ndarray]
    evaluation_labels: list[np.ndarray]
    evaluation_weights: np.ndarray


def read_examples(patterns: Sequence[str], info: dict[str, Any]) -> ReadSentences:
    """Reads a split that CrowdAggregator wrote, whole.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: result of `read_dataset_info`: `classes`, `annotators`.

    Raises:
        FileNotFoundError: no file fits.
    """
    files = sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern))
    if not files:
        raise FileNotFoundError(f"no Examples in {', '.join(patterns)}")
    num_classes = len(info["classes"])
    rows: list[tuple[np.ndarray, ...]] = []
    texts, sentences, posteriors, evaluation_labels, weights = [], [], [], [], []
    for task, record in enumerate(_records(files)):
        feature = tf.train.Example.FromString(record).features.feature
        tokens = [token.decode() for token in feature["tokens"].bytes_list.value]
        ids = np.array(feature["annotator_ids"].int64_list.value, np.int64)
        labels = np.array(feature["annotator_labels"].int64_list.value, np.int64)
        rows.append((
            np.full(len(labels), task), np.repeat(ids, len(tokens)), labels, np.tile(np.arange(len(tokens)), len(ids))
        ))  # fmt: skip
        posterior = np.array(feature["posterior"].float_list.value, np.float32)
        texts.append(feature["instances"].bytes_list.value[0].decode())
        sentences.append(tokens)
        posteriors.append(
            posterior.reshape(len(tokens), num_classes) if len(posterior) else np.zeros((len(tokens), num_classes))
        )
        evaluation_labels.append(np.array(feature["evaluation_label"].int64_list.value, np.int64))
        weights.append(feature["evaluation_weight"].float_list.value[0])
    tasks, annotators, labels, positions = (np.concatenate(column) for column in zip(*rows, strict=True))
    annotations = Annotations(
        "sequence", tasks, annotators, labels, np.arange(len(rows)), np.array(info["annotators"], object),
        np.array(info["classes"], object), positions=positions,
    )  # fmt: skip
    return ReadSentences(texts, sentences, annotations, posteriors, evaluation_labels, np.array(weights))


def _records(files: Iterable[str]) -> Iterator[bytes]:
    return tf.data.TFRecordDataset(list(files), "GZIP").as_numpy_iterator()
