"""Answers of an aggregation in the form that CrowdAggregator adds to the Examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from crowdzoo.data.vocabulary import name_texts

BOTH = "train and eval"  # key of the annotations of both splits


@dataclass(frozen=True)
class CrowdAnswers:
    """The result of an aggregation for both splits.

    Attributes:
        fitted: its result on the train split.
        tables: results of `answers_table` by split.
        posterior: posterior of a task without annotations, flat; empty if missing.
        label: label of such a task, or of each of its tokens.
    """

    fitted: Any
    tables: dict[str, pa.Table]
    posterior: list[float]
    label: Any


def answers_table(
    tasks: np.ndarray, labels: np.ndarray, posteriors: np.ndarray | None = None, starts: np.ndarray | None = None
) -> pa.Table:
    """A table of answers, with one row per task.

    Args:
        tasks: names, [N].
        labels: codes or ratings, [N]; for sentences those of all tokens.
        posteriors: [N, K], for sentences one row per token; None for ratings.
        starts: for sentences, the first token of each, [N + 1]; None: one label per task.
    """
    starts = np.arange(len(tasks) + 1) if starts is None else starts
    if posteriors is None:
        posteriors = np.zeros((len(labels), 0))
    values = pa.array(posteriors.ravel(), pa.float64())
    columns = [
        pa.array(name_texts(tasks), pa.string()),
        pa.LargeListArray.from_arrays(starts * posteriors.shape[1], values),
        pa.LargeListArray.from_arrays(starts, pa.array(labels)),
    ]
    return pa.table(columns, ["task", "posterior", "labels"])


def add_answer(example: tf.train.Example, posterior: list[float], labels: list[Any], truth: str, kind: str) -> None:
    """Adds `posterior` (if there is one), `aggregated_label`, `evaluation_label` and `evaluation_weight`.

    Args:
        example: Example of a task; changed in place.
        posterior: posterior, flat.
        labels: one label, or one per token.
        truth: reference of the evaluation, "gold" or "aggregated".
        kind: name of the list that holds labels, "int64_list" or "float_list".
    """
    feature = example.features.feature
    gold = list(getattr(feature["gold"], kind).value) if "gold" in feature else []
    against_gold = truth == "gold"
    known = bool(gold) if against_gold else len(feature["annotator_ids"].int64_list.value) > 0
    if posterior:
        feature["posterior"].float_list.value.extend(posterior)
    getattr(feature["aggregated_label"], kind).value.extend(labels)
    getattr(feature["evaluation_label"], kind).value.extend(gold if known and against_gold else labels)
    feature["evaluation_weight"].float_list.value.append(float(known))
