"""Regions of images: masks, boxes and points marked by annotators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGION
from crowdzoo.data.regions import MarkedImage
from crowdzoo.files.writing import atomic_folder, csv_cell
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.kind import FOR_CLASSES, OF_IMAGES, Kind, KindOptions, Option, Prediction, loaded, made
from crowdzoo.kinds.regions.masks import check_sizes, class_names, predict_images, write_png
from crowdzoo.kinds.regions.reading import GOLD_OPTIONS, RegionReading
from crowdzoo.kinds.regions.scoring import SCORING, RegionScoring
from crowdzoo.kinds.scoring import Codes, Objects, Rows
from crowdzoo.kinds.training import Targets, TrainedModel, Training, TrainingSet
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import MaskSettings, Settings

if TYPE_CHECKING:
    from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples


class RegionAggregating(Aggregating[Annotations, "RegionAggregation", Objects]):
    """Results have regions per image."""

    def consensus(
        self, result: RegionAggregation, crowd: Annotations, tasks: Codes
    ) -> Iterable[tuple[MarkedImage, float]]:
        """Marked images."""
        return ((result.marked[task], result.confidence[task]) for task in tasks.tolist())

    def rows(self, result: RegionAggregation, crowd: Annotations, gold: Objects | None, used_gold: bool) -> Rows:
        """Number of regions, confidence, and comparison with gold."""
        number = sum(len(image.regions) for image in result.marked if image is not None)
        rows = [("regions", f"{number:,}"), ("mean confidence", f"{result.confidence.mean():.3f}")]
        if gold is None:
            return rows
        known = SCORING.known(gold) & result.marked.astype(bool)
        return rows + RegionScoring(result.distance).rows(gold[known], result.marked[known])


class RegionTraining(Training[Annotations, "RegionAggregation", Objects]):
    """Models are segmentation networks."""

    fit = "CrowdModel(base, {layer}).fit(x, masks)"
    fit_aggregated = "CrowdModel(base).fit(x, masks)"

    def split_method(self, method: str) -> tuple[str, str | None]:
        """See `Training.split_method`; "aggregated" uses masks of STAPLE (docs/papers/zhang.md)."""
        return super().split_method("staple" if method == AGGREGATED else method)

    def class_names(self, annotations: Annotations) -> list[str]:
        """See `class_names`."""
        return class_names(annotations)

    def targets(self, result: RegionAggregation, annotations: Annotations) -> Objects:
        """`MarkedImage`, [N]."""
        return result.marked

    def read(
        self, annotations: Path, instances: Path | None, *more: Any, gold: Path | None = None, **options: Any
    ) -> TrainingSet[Annotations, Objects]:
        """See `Training.read`; `gold` is as for `RegionReading.gold_of`."""
        data = super().read(annotations, instances, *more, **options)
        values, labels = np.asarray(data.crowd.values), data.crowd.padded()[1]
        for task, codes, image in zip(data.crowd.tasks.tolist(), labels, data.x, strict=True):
            check_sizes(values[codes[codes >= 0]], image, task, instances)
        how = {name: options[name] for name in GOLD_OPTIONS if name in options}
        return replace(data, gold=READING.gold_of(data.crowd, gold, **how))

    def train(
        self, settings: Settings, x: Examples, crowd: Annotations, targets: Targets | None = None, **how: Any
    ) -> TrainedModel:
        """See `Training.train`."""
        from crowdzoo.kinds.regions.training import train_masks

        settings, images = cast(MaskSettings, settings), cast(Objects, x)
        regions = cast("Iterable[MarkedImage]", () if targets is None else targets)
        return train_masks(settings, images, crowd, class_names(crowd), regions, **how)

    def answers(self, model: CrowdModel, x: Examples, annotations: Annotations, gold: Objects) -> Objects:
        """`MarkedImage` in the sizes of gold."""
        return predict_images(model, x, annotations, gold)


class RegionPrediction(Prediction):
    """Masks."""

    def lines(self, tasks: Iterable[object], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Prediction.lines`; a line has a class's share of an image's pixels."""
        of_tasks = zip(tasks, outputs["label"], outputs["classes"], strict=True)
        return [
            f"{csv_cell(task)},{csv_cell(name)},{(mask == code).mean():.6f}"
            for task, mask, classes in of_tasks for code, name in enumerate(classes)
        ]  # fmt: skip

    def write(self, path: Path | None, instances: Instances, outputs: Mapping[str, np.ndarray]) -> None:
        """Write a folder with a PNG mask per image, in its size; or a file, see `lines`."""
        if path is None or path.suffix == ".csv":
            return super().write(path, instances, outputs)
        with atomic_folder(path, replace=True) as folder:
            of_images = instances.tasks, instances.values, outputs["label"], outputs["classes"].tolist()
            for task, file, mask, classes in zip(*of_images, strict=True):
                values = write_png(mask, classes, folder / f"{task}.png", file)
        print("masks:", ", ".join(f"{value} is {name}" for value, name in zip(values, classes, strict=True)))


READING = RegionReading(REGION, "answers")
AGGREGATING = RegionAggregating(REGION, "objects")
REGIONS = Kind(
    labels=REGION,
    options=KindOptions(
        OF_IMAGES,
        refused={
            **FOR_CLASSES,
            "classes": "classes are those of the regions; leave it out.",
            "use_gold": "no method for regions takes known ones; leave it out.",
        },
        own=(
            Option(
                "distance",
                "points: pixels up to which two are one object (default: 3 %% of the image's diagonal)",
                metavar="PX",
                is_number=True,
                refusal="a distance of points belongs to --kind region.",
            ),
        ),
        scale=("distance",),
        gold=GOLD_OPTIONS,
        training=("gold",),
        inputs=("annotations", "instances", "gold"),
    ),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=RegionTraining(REGION, READING, AGGREGATING, SCORING),
    prediction=RegionPrediction("classes", ("task", "class", "share")),
    load_page=loaded("crowdzoo.kinds.regions.page:RegionPage"),
    load_measure=loaded("crowdzoo.kinds.regions.measure:RegionMeasure"),
    load_questions=made("crowdzoo.kinds.regions.questions:RegionQuestions"),
    load_records=made("crowdzoo.kinds.regions.records:RegionRecords"),
)
