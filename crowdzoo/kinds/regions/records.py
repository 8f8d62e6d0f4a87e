"""Images and annotators' regions as tf.Examples."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.data.vocabulary import is_among
from crowdzoo.kinds.records import Crowds, Fit, Records, TrainingFiles, instance_scores
from crowdzoo.kinds.regions.masks import check_sizes, class_names, marked_images
from crowdzoo.kinds.regions.reading import GOLD_OPTIONS, RegionReading
from crowdzoo.kinds.regions.scoring import SCORING
from crowdzoo.kinds.regions.training import train_masks
from crowdzoo.kinds.scoring import Scores
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.example_files import DatasetInfo, GenOptions, LabelledTasks
from crowdzoo.records.instance_features import INSTANCES
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.settings import MaskSettings, Settings

_LABELS = tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)
OF_REGIONS = {**SAID, "annotator_labels": _LABELS, "aggregated_label": tf.io.FixedLenFeature([], tf.string)}


class RegionRecords(Records):
    """Regions of images, stored in Examples as UTF-8 text."""

    def read(self, options: GenOptions, rejects: str, folder: str) -> LabelledTasks:
        """Read images and annotators' regions; Examples store regions as UTF-8 text.

        Args: see `Records.read`.
        """
        images = super().read(options, rejects, folder)
        rows = {name: row for row, name in enumerate(images.names)}
        codes = np.array([rows[str(task)] for task in images.annotations.tasks.tolist()], np.int64)
        crowd = replace(  # codes are rows
            images.annotations, tasks=np.array(images.names, object), task_ids=codes[images.annotations.task_ids]
        )
        path = options.get("gold") and Path(options["gold"])
        gold = RegionReading(crowd.label_kind, "answers").gold_of(
            crowd, path, **{name: options[name] for name in GOLD_OPTIONS if name in options}
        )
        known = images.gold if gold is None else [image and image.text for image in gold.tolist()]

        def example(row: int) -> tf.train.Example:
            record = images.example(row)
            feature = record.features.feature
            answers = np.asarray(crowd.values)[list(feature["annotator_labels"].int64_list.value)].tolist()
            check_sizes(answers, feature[INSTANCES].bytes_list.value[0], images.names[row], options["instances"])
            feature["annotator_labels"].bytes_list.value.extend(image.text.encode() for image in answers)
            feature["gold"].bytes_list.value.extend(text.encode() for text in known[row : row + 1] if text)
            return record

        info = {**images.info, "classes": class_names(crowd)}
        return replace(images, annotations=crowd, gold=known, info=info, example=example, unit="image")

    def train(self, settings: Settings, files: TrainingFiles) -> Trained:
        """Train on images, which are read completely.

        Args: see `Records.train`.
        """
        info = files.info
        images, regions, answers = list[bytes](), list[str](), list[tuple[int, int, str]]()
        for batch in read_batches(files.patterns, info, "train", others=OF_REGIONS):
            tasks, who, texts = said_of(batch)
            answers += zip((tasks + len(images)).tolist(), who.tolist(), [text.decode() for text in texts], strict=True)
            images += batch[INSTANCES].tolist()
            regions += [text.decode() for text in batch["aggregated_label"].tolist()]
        rows, names = range(len(images)), range(len(info["annotators"]))
        columns = zip(*answers, strict=True)
        annotations = Annotations.from_arrays(*columns, kind="region", tasks=rows, annotators=names)
        content, how = np.array(images, object), {"checkpoint": files.checkpoint, "verbose": 2}
        masks, aggregated = cast(MaskSettings, settings), map(MarkedImage.parse, regions)
        model, encoder = train_masks(masks, content, annotations, info["classes"], aggregated, **how)
        return Trained(model, model.history, encoder, content[:WARMUP])

    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """See `Records.model_scores`."""

        def images(masks: np.ndarray, gold: np.ndarray) -> np.ndarray:
            return marked_images(masks, info["classes"], gold)

        return instance_scores(SCORING, models, files, info, "label", tf.string, images, 32, MarkedImage.parse)

    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Fit to train; regions of eval are from a fit to both splits.

        Args: see `Records.aggregate`.
        """
        fitted, tables = fit(crowds["train"]), dict[str, Any]()
        for split, result in (("train", fitted), ("eval", fit(crowds[BOTH]))):
            own = is_among(result.tasks, crowds[split].tasks) & result.marked.astype(bool)
            texts = [image.text.encode() for image in result.marked[own].tolist()]
            tables[split] = answers_table(result.tasks[own], np.array(texts, object))
        return CrowdAnswers(fitted, tables, [], b"")
