"""Images and annotators' regions as tf.Examples."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import check_sizes
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
