"""Images and annotators' regions as tf.Examples: from their files, and back for training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.vocabulary import name_texts
from crowdzoo.kinds.regions.kind import KIND
from crowdzoo.kinds.regions.masks import check_sizes, class_names
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.instance_examples import read_annotations, read_instances_of, split_of
from crowdzoo.records.instance_features import INSTANCES, add_instance, instance_info
from crowdzoo.records.labelled_tasks import LabelledTasks

_TEXT = tf.io.FixedLenFeature([], tf.string)
_SAID = {**SAID, "annotator_labels": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)}


def read_labelled(options: dict[str, Any], rejects: str, folder: str) -> LabelledTasks:
    """Reads images and what annotators marked on them; regions are texts of `MarkedImage`, in UTF-8.

    Args: see `crowdzoo.records.instance_examples.read_labelled_instances`.
    """
    crowd = read_annotations(options, rejects)
    instances = read_instances_of(options, crowd, folder)
    names = name_texts(instances.tasks).tolist()
    rows = {name: row for row, name in enumerate(names)}
    codes = np.array([rows[str(task)] for task in crowd.tasks.tolist()], np.int64)
    crowd = replace(crowd, tasks=instances.tasks, task_ids=codes[crowd.task_ids])  # a task code is a row
    path = options.get("gold")
    gold = KIND.gold_of(crowd, path and Path(path), on_bad_rows=options.get("on_bad_rows", "error"))
    gold = np.full(len(names), "", object) if gold is None else gold
    ids, said = crowd.padded()
    texts = np.append(np.asarray(crowd.classes), "")  # at -1
    sized = ((name, file, text) for name, file, text in zip(names, instances.values, texts[said[:, 0]], strict=True))
    check_sizes(((name, file, text) for name, file, text in sized if text), options["instances"])
    split, change = split_of(instances, options)

    def example(row: int) -> tf.train.Example:
        made, there = tf.train.Example(), ids[row] >= 0
        feature = made.features.feature
        feature["task"].bytes_list.value.append(names[row].encode())
        add_instance(made, instances, row)
        feature["annotator_ids"].int64_list.value.extend(ids[row, there])
        feature["annotator_labels"].bytes_list.value.extend(text.encode() for text in texts[said[row, there]])
        if gold[row]:
            feature["gold"].bytes_list.value.append(gold[row].encode())
        return made

    return LabelledTasks(
        annotations=crowd,
        names=names,
        split=split,
        labelled=crowd.redundancy > 0,
        gold=[text or None for text in gold.tolist()],
        info={"classes": class_names(crowd), **instance_info(instances)},
        change_split=change,
        example=example,
        unit="image",
    )


@dataclass(frozen=True)
class ReadImages:
    """Images read back from Examples.

    Attributes:
        images: bytes of N files.
        annotations: kind "region"; tasks are numbered in the files' order.
        regions: those of the aggregation, N texts.
    """

    images: np.ndarray
    annotations: Annotations
    regions: list[str]


def read_examples(patterns: Sequence[str], info: dict[str, Any]) -> ReadImages:
    """Reads the split train as CrowdAggregator wrote it, whole.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: result of `read_dataset_info`: `annotators`.

    Raises:
        FileNotFoundError: no file fits.
    """
    images, regions, rows = list[bytes](), list[str](), list[Any]()
    for batch in read_batches(patterns, info, "train", others={**_SAID, "aggregated_label": _TEXT}):
        tasks, who, texts = said_of(batch)
        rows += zip((tasks + len(images)).tolist(), who.tolist(), texts.tolist(), strict=True)
        images += batch[INSTANCES].tolist()
        regions += [text.decode() for text in batch["aggregated_label"].tolist()]
    tasks, who, said = zip(*rows, strict=True)
    texts, labels = np.unique([text.decode() for text in said], return_inverse=True)
    names = np.arange(len(images)), np.array(info["annotators"], object), texts.astype(object)
    annotations = Annotations("region", np.array(tasks), np.array(who), labels, *names)
    return ReadImages(np.array(images, object), annotations, regions)
