"""Scores exported classifiers by how well they predict annotations of held-out tasks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.records import BATCH, answered_batches
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.example_files import SPLITS, DatasetInfo, split_files
from crowdzoo.training.held_out_annotations import log_likelihoods, scores


def annotation_scores(
    models: Mapping[str, str], examples: str, info: DatasetInfo
) -> dict[str, dict[str, float | None]]:
    """Log-likelihood of the annotations of the split eval for each model.

    A model's class probabilities and the annotators' confusion matrices give the probability of a task's annotations
    (see `crowdzoo.training.held_out_annotations.scores`). The matrices are estimated from the annotations of both
    splits, without any model, and are the same for all models. Gold is not used.

    Args:
        models: name -> folder of the SavedModel; the one called "candidate" is compared with the one called "baseline".
        examples: folder of the Examples, with the splits train and eval.
        info: result of `read_dataset_info`, of kind classification.

    Returns:
        For each model `annotations` (their number) and `annotation_log_likelihood`, in nats per annotation. With a
        baseline the candidate also has `gain`, its log-likelihood minus the baseline's, and `gain_error`, the standard
        error of the gain for independent tasks (None for a single task).

    Raises:
        DataError: no task of eval has annotations.
        FileNotFoundError: no file matches.
        ServingError: a model does not load, or does not accept these instances.
    """
    annotations, first = _annotations(examples, info)
    counts = annotations.redundancy[first:]
    if not counts.any():
        raise DataError(
            "evaluation: no task of eval has annotations, so models cannot be compared by them. Set evaluation.compare "
            "to labels, or hold out annotated tasks."
        )
    likelihoods = log_likelihoods(annotations)[first:][counts > 0]
    answers: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for *_, probabilities in answered_batches(
        models, split_files(examples, "eval"), info, "probabilities", SAID, _labelled
    ):
        for name, values in probabilities.items():
            answers[name].append(values)
    task_scores = {
        name: scores(np.concatenate(parts).astype(np.float64), likelihoods) for name, parts in answers.items()
    }
    number = int(counts.sum())
    summary: dict[str, dict[str, Any]] = {
        name: {"annotations": number, "annotation_log_likelihood": float(score.sum() / number)}
        for name, score in task_scores.items()
    }
    if "baseline" in task_scores:
        gain = task_scores["candidate"] - task_scores["baseline"]
        error = float(gain.std(ddof=1) * np.sqrt(len(gain)) / number) if len(gain) > 1 else None
        summary["candidate"] |= {"gain": float(gain.sum() / number), "gain_error": error}
    return summary


def _labelled(batch: Mapping[str, Any]) -> np.ndarray:
    """Mask of the tasks of a batch that have annotations."""
    return np.array([len(ids) > 0 for ids in batch["annotator_ids"]], bool)


def _annotations(examples: str, info: DatasetInfo) -> tuple[Annotations, int]:
    """Annotations of both splits, with tasks numbered in the files' order; and the number of the first task of eval."""
    columns: list[tuple[np.ndarray, ...]] = []
    ends = []
    num_tasks = 0
    for split in SPLITS:
        for batch in read_batches([split_files(examples, split)], info, split, BATCH, instances=(), others=SAID):
            task, annotator, label = said_of(batch)
            columns.append(tuple(column.astype(np.int32) for column in (task + num_tasks, annotator, label)))
            num_tasks += len(batch["annotator_ids"])
        ends.append(num_tasks)
    task_ids, annotator_ids, labels = (np.concatenate(parts, dtype=np.int64) for parts in zip(*columns, strict=True))
    classes, annotators = (np.array(info[key], object) for key in ("classes", "annotators"))
    crowd = Annotations("classification", task_ids, annotator_ids, labels, np.arange(num_tasks), annotators, classes)
    return crowd, ends[0]
