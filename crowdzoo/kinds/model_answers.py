"""Answers of exported models to the instances of the split eval, asked as a server asks them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.scoring import Scoring, scored_models
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.instance_features import parsed_instances

BATCH = 256  # most instances that are held in memory at a time


def answered_batches(
    models: Mapping[str, str],
    files: str,
    info: Mapping[str, Any],
    output: str,
    features: Mapping[str, Any],
    wanted: Callable[[Mapping[str, Any]], NDArray[np.bool_]],
    batch_size: int = BATCH,
) -> Iterator[tuple[Mapping[str, Any], NDArray[np.bool_], dict[str, NDArray[Any]]]]:
    """Asks models about some of the tasks, batch after batch.

    Args:
        models: name -> folder of the SavedModel.
        files: pattern of the files of eval.
        info: result of `read_dataset_info`.
        output: name of the output that is the answer.
        features: further features that are read, as `tf.io.parse_example` takes them.
        wanted: which tasks of a batch are asked about, bool [B].
        batch_size: most instances in a batch.

    Yields:
        The batch, the tasks that were asked about, and the answers of each model to these; no batch without any.

    Raises:
        FileNotFoundError: no file fits.
        ServingError: a model that does not load, or does not take these instances.
    """
    predictors = {name: load_predictor(folder) for name, folder in models.items()}
    for batch in read_batches([files], info, "eval", batch_size, others=features):
        rows = wanted(batch)
        if rows.any():
            instances = take_rows(parsed_instances(batch), rows)
            yield batch, rows, {name: ask(instances, batch_size)[output] for name, ask in predictors.items()}


def instance_scores(
    scoring: Scoring,
    models: Mapping[str, str],
    files: str,
    info: Mapping[str, Any],
    output: str,
    label: tf.DType,
    converted: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = lambda answers, gold: answers,
    batch_size: int = BATCH,
    parsed: Callable[[str], Any] = str,
) -> dict[str, dict[str, Any]]:
    """Scores of models of instances on the tasks whose label is known.

    Args:
        scoring: of the kind of label.
        models: as for `answered_batches`.
        files: likewise.
        info: likewise.
        output: likewise.
        label: type of the feature `evaluation_label`.
        converted: from answers and labels of a batch to answers as `scoring` takes them.
        batch_size: as for `answered_batches`.
        parsed: from a label that is text to gold as `scoring` takes it.

    Returns:
        See `scored_models`.

    Raises:
        DataError: no task of eval has a known label.
    """
    features = {
        "evaluation_label": tf.io.FixedLenFeature([], label),
        "evaluation_weight": tf.io.FixedLenFeature([], tf.float32),
    }
    gold, answers = [], dict[str, list[NDArray[Any]]]({name: [] for name in models})
    batches = answered_batches(
        models, files, info, output, features, lambda batch: batch["evaluation_weight"] > 0, batch_size
    )
    for batch, rows, batch_answers in batches:
        labels = batch["evaluation_label"][rows]
        if label == tf.string:
            labels = np.array([parsed(text.decode()) for text in labels], object)
        gold.append(labels)
        for name, values in batch_answers.items():
            answers[name].append(converted(values, labels))
    if not gold:
        raise DataError("evaluation: no task of eval has a label. Hold out annotated tasks, or tasks with gold.")
    return scored_models(
        scoring, models, np.concatenate(gold), {name: np.concatenate(parts) for name, parts in answers.items()}
    )
