"""Images and annotators' regions as tf.Examples."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.vocabulary import is_among
from crowdzoo.kinds.model_answers import instance_scores
from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import check_sizes, texts_of
from crowdzoo.kinds.regions.scoring import SCORING
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table
from crowdzoo.records.instance_examples import read_labelled_instances
from crowdzoo.records.instance_features import INSTANCES
from crowdzoo.records.labelled_tasks import LabelledTasks


def read_labelled(options: dict[str, Any], rejects: str, folder: str) -> LabelledTasks:
    """Reads images and what annotators marked on them; regions are texts of `MarkedImage`, in UTF-8.

    Args: see `crowdzoo.records.instance_examples.read_labelled_instances`.
    """
    found = read_labelled_instances(options, rejects, folder)
    crowd, texts = found.annotations, np.asarray(found.annotations.classes)
    rows = {name: row for row, name in enumerate(found.names)}
    codes = np.array([rows[str(task)] for task in crowd.tasks.tolist()], np.int64)
    crowd = replace(crowd, tasks=np.array(found.names, object), task_ids=codes[crowd.task_ids])  # a code is a row
    path = options.get("gold") and Path(options["gold"])
    gold = KIND.gold_of(crowd, path, **{name: options[name] for name in KIND.gold_reading if name in options})
    known = found.gold if gold is None else [text or None for text in gold.tolist()]

    def example(row: int) -> Any:
        made = found.example(row)
        feature = made.features.feature
        said = texts[list(feature["annotator_labels"].int64_list.value)].tolist()
        check_sizes(said, feature[INSTANCES].bytes_list.value[0], found.names[row], options["instances"])
        feature["annotator_labels"].bytes_list.value.extend(text.encode() for text in said)
        feature["gold"].bytes_list.value.extend(text.encode() for text in known[row : row + 1] if text)
        return made

    info = {**found.info, "classes": KIND.class_names(crowd)}
    return replace(found, annotations=crowd, gold=known, info=info, example=example, unit="image")


def model_scores(models: Mapping[str, str], files: str, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of networks for masks; see `crowdzoo.kinds.parts`."""

    def texts(masks: np.ndarray, gold: np.ndarray) -> np.ndarray:
        return texts_of(masks, info["classes"], gold)

    return instance_scores(SCORING, models, files, info, "label", tf.string, texts, batch_size=32)


def aggregate(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Fits to train; eval's regions are those of a fit to both splits.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, tables = fit(crowds["train"]), dict[str, Any]()
    for split, found in (("train", fitted), ("eval", fit(crowds[BOTH]))):
        own = is_among(found.tasks, crowds[split].tasks) & (found.regions != "")
        texts = [text.encode() for text in found.regions[own].tolist()]
        tables[split] = answers_table(found.tasks[own], np.array(texts, object))
    return CrowdAnswers(fitted, tables, [], b"")
