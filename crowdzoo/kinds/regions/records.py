"""Images and annotators' regions as tf.Examples."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.regions import MarkedImage
from crowdzoo.data.vocabulary import is_among
from crowdzoo.kinds.model_answers import instance_scores
from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import check_sizes, marked_images
from crowdzoo.kinds.regions.scoring import SCORING
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table
from crowdzoo.records.instance_examples import read_labelled_instances
from crowdzoo.records.instance_features import INSTANCES
from crowdzoo.records.labelled_tasks import LabelledTasks


def read_labelled(options: dict[str, Any], rejects: str, folder: str) -> LabelledTasks:
    """Reads images and what annotators marked on them; in Examples regions are texts, in UTF-8.

    Args: see `crowdzoo.records.instance_examples.read_labelled_instances`.
    """
    images = read_labelled_instances(options, rejects, folder)
    rows = {name: row for row, name in enumerate(images.names)}
    codes = np.array([rows[str(task)] for task in images.annotations.tasks.tolist()], np.int64)
    crowd = replace(  # a code is a row
        images.annotations, tasks=np.array(images.names, object), task_ids=codes[images.annotations.task_ids]
    )
    path = options.get("gold") and Path(options["gold"])
    gold = KIND.gold_of(crowd, path, **{name: options[name] for name in KIND.gold_reading if name in options})
    known = images.gold if gold is None else [image and image.text for image in gold.tolist()]

    def example(row: int) -> tf.train.Example:
        record = images.example(row)
        feature = record.features.feature
        answers = np.asarray(crowd.values)[list(feature["annotator_labels"].int64_list.value)].tolist()
        check_sizes(answers, feature[INSTANCES].bytes_list.value[0], images.names[row], options["instances"])
        feature["annotator_labels"].bytes_list.value.extend(image.text.encode() for image in answers)
        feature["gold"].bytes_list.value.extend(text.encode() for text in known[row : row + 1] if text)
        return record

    info = {**images.info, "classes": KIND.class_names(crowd)}
    return replace(images, annotations=crowd, gold=known, info=info, example=example, unit="image")


def model_scores(models: Mapping[str, str], files: str, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of networks for masks; see `crowdzoo.kinds.parts`."""

    def images(masks: np.ndarray, gold: np.ndarray) -> np.ndarray:
        return marked_images(masks, info["classes"], gold)

    return instance_scores(SCORING, models, files, info, "label", tf.string, images, 32, MarkedImage.parse)


def aggregate(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Fits to train; eval's regions are those of a fit to both splits.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, tables = fit(crowds["train"]), dict[str, Any]()
    for split, found in (("train", fitted), ("eval", fit(crowds[BOTH]))):
        own = is_among(found.tasks, crowds[split].tasks) & found.marked.astype(bool)
        texts = [image.text.encode() for image in found.marked[own].tolist()]
        tables[split] = answers_table(found.tasks[own], np.array(texts, object))
    return CrowdAnswers(fitted, tables, [], b"")
