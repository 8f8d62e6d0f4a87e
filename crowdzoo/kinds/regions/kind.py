"""Regions of images: masks and boxes that annotators marked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import DataError, DataWarning, Setting, short_repr
from crowdzoo.files.writing import atomic_folder, csv_cell
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind
from crowdzoo.kinds.regions.masks import check_sizes, marked_images, write_png
from crowdzoo.kinds.regions.scoring import SCORING
from crowdzoo.kinds.scoring import Rows
from crowdzoo.kinds.training_set import TrainingSet
from crowdzoo.reading.instances.gold import check_shared, gold_by_task
from crowdzoo.reading.platforms.export import platform_of, task_of_picture
from crowdzoo.reading.platforms.export_file import ExportFile, export_files
from crowdzoo.reading.platforms.png_masks import read_mask
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.training.methods import AGGREGATED

if TYPE_CHECKING:
    from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation


class Regions(Kind):
    """Labels are regions of images."""

    name = "region"
    counted = "answers"
    inputs = ("annotations", "instances", "gold")
    reading = (*ROW_OPTIONS, *EXPORT_OPTIONS, *LAYOUT_OPTIONS, "image")
    gold_reading = ("on_bad_rows", "rename")
    training_reading = ("gold",)
    aggregation = "objects"
    metric = "dice"
    metric_title = "Dice coefficient"
    scoring = SCORING
    answer = "classes"
    header = ("task", "class", "share")
    fit_aggregated = "CrowdModel(base).fit(x, masks)"
    refused: ClassVar = {
        **RATINGS_ONLY,
        "classes": "classes are those of the regions; leave it out.",
        "calibrate": "calibration is for classes; leave it out.",
        "predictions": "a report compares with predictions of classes only; leave it out.",
        "use_gold": "no method for regions takes known ones; leave it out.",
    }

    def gold_of(
        self,
        crowd: Annotations,
        path: Path | None,
        layout: Layout | None = None,
        on_bad_rows: str = "error",
        rename: Mapping[str, str] | str | None = None,
    ) -> np.ndarray | None:
        """True regions as `MarkedImage`, objects [N], None where the file does not know.

        Args:
            crowd: what annotators marked.
            path: export of one annotator; a folder of PNG masks; or a table with the columns task and gold, as
                `crowdzoo convert` writes it.
            layout: of a table.
            on_bad_rows: "reject" leaves images out that cannot be read; not of tables.
            rename: classes that have another name there, as "1=cat" or a mapping.

        Raises:
            DataError: no regions, those of several annotators, other images, sizes or categories than the crowd's.
        """
        if path is None:
            return None
        if masks := export_files(path, (".png",)):
            known = _masks(masks, on_bad_rows)
        elif platform := platform_of(path):
            gold = Annotations.read(path, kind=self.name, platform=platform, on_bad_rows=on_bad_rows)
            if gold.num_annotators != 1:
                raise DataError(
                    f"{path}: has the regions of {gold.num_annotators:,} annotators. Give one file of true ones."
                )
            known = _by_task(gold)
        else:
            known = _table(path, layout)
        if rename:
            renames = Layout.of({"rename": rename}, ("rename",)).rename
            known = {task: image.rename(renames) for task, image in known.items()}
        answers = _by_task(crowd)
        known = _named_alike(path, known, {*map(str, crowd.tasks.tolist())})
        check_shared(path, known, crowd.tasks)
        strange = list[str]()
        for task in sorted(known.keys() & answers.keys()):
            if (size := known[task].size) != answers[task].size:
                marked = [*answers[task].size]
                strange.append(f"image {task!r} is of size {[*size]} there, and {marked} of the annotators.")
                del known[task]
        if strange and on_bad_rows == "error":
            fix = Setting("on_bad_rows", "reject")
            raise DataError(f"{path}: {strange[0]} Correct one of them, or leave it out: {fix}.", fix=fix)
        if strange and known.keys().isdisjoint(answers):
            raise DataError(
                f"{path}: no image has the size that annotators saw: {strange[0]} Give images of their size."
            )
        if strange:
            text = f"{path}: images of another size that are left out of gold: {len(strange):,}, such as {strange[0]}"
            warnings.warn(text, DataWarning, stacklevel=3)
        _check_categories(path, _categories(known.values()), _categories(np.asarray(crowd.values)))
        return np.array([known.get(str(task)) for task in crowd.tasks.tolist()], object)

    # === Aggregation ===

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """Regions, confidence, and how regions compare with gold."""
        number = sum(len(image.regions) for image in result.marked if image is not None)
        rows = [("regions", f"{number:,}"), ("mean confidence", f"{result.confidence.mean():.3f}")]
        if gold is None:
            return rows
        known = self.scoring.known(gold) & result.marked.astype(bool)
        return rows + self.scoring.rows(gold[known], result.marked[known])

    # === Training ===

    def split_method(self, method: str) -> tuple[str, str | None]:
        """See `Kind.split_method`; "aggregated" are masks of STAPLE (docs/papers/zhang.md)."""
        return super().split_method("staple" if method == AGGREGATED else method)

    def class_names(self, annotations: Annotations) -> list[str]:
        """Classes of pixels: the background first, then those that anybody marked, sorted.

        Raises:
            DataError: nobody marked anything.
        """
        names = sorted(_categories(np.asarray(annotations.values)))
        if not names:
            raise DataError("nobody marked a region, so there is nothing to learn.")
        return ["(background)" if "background" in names else "background", *names]

    def targets(self, result: RegionAggregation, annotations: Annotations) -> NDArray[Any]:
        """`MarkedImage`, objects [N]."""
        return result.marked

    def training_set(
        self, annotations: Path, instances: Path | None, *more: Any, gold: Path | None = None, **options: Any
    ) -> TrainingSet:
        """See `Kind.training_set`; `gold` is as for `gold_of`."""
        data = super().training_set(annotations, instances, *more, **options)
        values, labels = np.asarray(data.crowd.values), data.crowd.padded()[1]
        for task, codes, image in zip(data.crowd.tasks.tolist(), labels, data.x, strict=True):
            check_sizes(values[codes[codes >= 0]], image, task, instances)
        how = {name: options[name] for name in self.gold_reading if name in options}
        return replace(data, gold=self.gold_of(data.crowd, gold, **how))

    def gold_column(self, table: Any, crowd: Annotations, path: Path) -> None:
        """None: true regions are in a file of their own."""

    def train(
        self, settings: Any, x: Any, annotations: Annotations, *, targets: Any = None, crowd: Any = None, **how: Any
    ) -> tuple[Any, Any]:
        """See `Kind.train`."""
        from crowdzoo.kinds.regions.training import train_masks

        return train_masks(settings, x, annotations, self.class_names(annotations), targets, **how)

    # === Evaluation ===

    def model_answers(self, model: Any, x: Any, annotations: Annotations, gold: np.ndarray) -> np.ndarray:
        """`MarkedImage`, of the sizes that gold has."""
        masks = model.predict(x, verbose=0).argmax(axis=-1)
        return marked_images(masks, self.class_names(annotations), gold)

    # === Prediction ===

    def prediction_lines(self, tasks: Iterable[Any], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Kind.prediction_lines`; a line has the share of an image's pixels that a class has."""
        of_tasks = zip(tasks, outputs["label"], outputs["classes"], strict=True)
        return [
            f"{csv_cell(task)},{csv_cell(name)},{(mask == code).mean():.6f}"
            for task, mask, classes in of_tasks for code, name in enumerate(classes)
        ]  # fmt: skip

    def write_predictions(self, path: Path | None, instances: Any, outputs: Mapping[str, np.ndarray]) -> None:
        """Writes a folder with a PNG mask for each image, in its size; or a file, see `prediction_lines`."""
        if path is None or path.suffix == ".csv":
            return super().write_predictions(path, instances, outputs)
        with atomic_folder(path, replace=True) as folder:
            of_images = instances.tasks, instances.values, outputs["label"], outputs["classes"].tolist()
            for task, file, mask, classes in zip(*of_images, strict=True):
                values = write_png(mask, classes, folder / f"{task}.png", file)
        print("masks:", ", ".join(f"{value} is {name}" for value, name in zip(values, classes, strict=True)))


def _by_task(crowd: Annotations) -> dict[str, MarkedImage]:
    """An answer to each task."""
    images = np.asarray(crowd.values)[crowd.labels].tolist()
    return dict(zip(map(str, crowd.tasks[crowd.task_ids].tolist()), images, strict=True))


def _table(path: Path, layout: Layout | None) -> dict[str, MarkedImage]:
    """Image -> its regions, of a table of gold."""
    images = dict[str, MarkedImage]()
    for task, text in gold_by_task(path, layout).items():
        try:
            if text:
                images[task] = MarkedImage.parse(text)
        except DataError as error:
            raise DataError(f"{path}: image {task!r}: {error}") from None
    return images


def _masks(files: list[ExportFile], on_bad_rows: str) -> dict[str, MarkedImage]:
    """Image -> its regions, of PNG masks."""
    images = {}
    for file in files:
        try:
            images[file.annotator] = MarkedImage.of(*read_mask(file)[:2])
        except DataError as error:
            if on_bad_rows == "error":
                fix = Setting("on_bad_rows", "reject")
                raise DataError(f"{file.name} {error} Or leave it out: {fix}.", fix=fix) from None
            warnings.warn(f"{file.name} is left out: it {error}", DataWarning, stacklevel=4)
    return images


def _check_categories(path: Path, names: set[str], others: set[str]) -> None:
    """Refuses gold in `path` that shares no category with the annotators, and warns of those that they never marked."""
    if strange := sorted(names - others) if others else []:
        near = max(sorted(others), key=lambda name: SequenceMatcher(None, strange[0].lower(), name.lower()).ratio())
        message = (
            f"{path}: has the categories {short_repr(strange)}, and annotators have {short_repr(sorted(others))} "
            f"alone. If they are the same, name them alike, such as {Setting('rename', {strange[0]: near})}."
        )
        if names.isdisjoint(others):
            raise DataError(message)
        warnings.warn(message, DataWarning, stacklevel=3)


def _named_alike(path: Path, known: dict[str, MarkedImage], tasks: set[str]) -> dict[str, MarkedImage]:
    """Gold under the annotators' names of the images, which may be those without the folder and the ending.

    Raises:
        DataError: an image may be several others.

    Warns:
        DataWarning: names an image that has another name.
    """
    sides: list[dict[str, list[str]]] = [{}, {}]
    for by_stem, names in zip(sides, (known.keys() - tasks, tasks - known.keys()), strict=True):
        for name in sorted(names):
            by_stem.setdefault(task_of_picture(name), []).append(name)
    renamed = {}
    for stem in sorted(sides[0].keys() & sides[1].keys()):
        if len(both := sides[0][stem] + sides[1][stem]) > 2:
            raise DataError(f"{path}: {short_repr(both)} may be one image. Name images as the annotators' files do.")
        renamed[both[0]] = both[1]
    if renamed:
        first = "{!r} is {!r}".format(*next(iter(renamed.items())))
        text = f"{path}: {len(renamed):,} images have their names without folder or ending: {first} of the annotators."
        warnings.warn(text, DataWarning, stacklevel=4)
    return {renamed.get(name, name): image for name, image in known.items()}


def _categories(images: Iterable[MarkedImage]) -> set[str]:
    """Those that anybody used."""
    return {region.label for image in images for region in image.regions}


KIND = Regions()
