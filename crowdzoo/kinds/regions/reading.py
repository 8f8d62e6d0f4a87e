"""RegionReading: reads regions of images, and gold."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import DataError, DataWarning, Setting, short_repr
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.files.regular import open_regular
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.regions.masks import categories
from crowdzoo.kinds.scoring import Objects
from crowdzoo.reading.instances.gold import check_shared, gold_by_task
from crowdzoo.reading.platforms.coco import regions_of
from crowdzoo.reading.platforms.export import platform_of, task_of_picture
from crowdzoo.reading.platforms.export_file import ExportFile, export_files
from crowdzoo.reading.platforms.png_masks import read_mask
from crowdzoo.reading.tables.layout import Layout

GOLD_OPTIONS = ("on_bad_rows", "rename")
LEAST_SCORE = 0.5  # minimum score of a model's region to be used


class RegionReading(Reading[Annotations, Objects]):
    """Gold is `MarkedImage`, [N], None where unknown."""

    def gold_of(
        self,
        crowd: Annotations,
        path: Path | None,
        layout: Layout | None = None,
        on_bad_rows: str = "error",
        rename: Mapping[str, str] | str | None = None,
    ) -> Objects | None:
        """Read true regions as `MarkedImage`, objects [N], None where the file has none.

        Args:
            crowd: the annotations.
            path: export of one annotator; a folder of PNG masks; or a table with the columns task and gold, as written
                by `crowdzoo convert`.
            layout: layout of a table.
            on_bad_rows: "reject" skips unreadable images; not for tables.
            rename: classes with another name in the file, as "1=cat" or a mapping.

        Raises:
            DataError: no regions, several annotators, or images, sizes or categories that differ from the crowd's.
        """
        if path is None:
            return None
        if masks := export_files(path, (".png",)):
            known = _masks(masks, on_bad_rows)
        elif platform := platform_of(path):
            gold = Annotations.read(path, kind=self.labels.name, platform=platform, on_bad_rows=on_bad_rows)
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
        _check_categories(path, categories(known.values()), categories(np.asarray(crowd.values)))
        return np.array([known.get(str(task)) for task in crowd.tasks.tolist()], object)

    def predictions_of(
        self, crowd: Annotations, path: Path, column: str, layout: Layout | None = None, **options: Any
    ) -> Objects:
        """See `Reading.predictions_of`.

        Args:
            crowd: the annotations.
            path: as for `gold_of`; or a COCO results file, a list of objects with image_id, category_id, bbox or
                segmentation, and score. Images without an object have no regions; objects with a score below
                `LEAST_SCORE` are left out. A category that annotators never marked is called, for example, "category
                4".
            column: not used.
            layout: layout of a table.
            **options: on_bad_rows and rename, as for `gold_of`.
        """
        if path.suffix == ".json":
            with open_regular(path) as file, contextlib.suppress(JsonError):
                entries = parse_json(file.read())
                if isinstance(entries, list) and any(isinstance(each, dict) and "image_id" in each for each in entries):
                    return _results(path, entries, crowd)
        gold = self.gold_of(crowd, path, layout, **options)
        assert gold is not None
        return gold


def _results(path: Path, entries: list[dict[str, Any]], crowd: Annotations) -> Objects:
    """Regions by image from COCO results; images and categories are identified by their numbers in the crowd."""
    answers = _by_task(crowd)
    names = {region.category_id: region.label for image in np.asarray(crowd.values) for region in image.regions}
    images = dict[int | None, list[dict[str, Any]]]({image.image_id: [] for image in answers.values()})
    points = {label for image in np.asarray(crowd.values) for label in image.points}
    objects = [entry for entry in entries if isinstance(entry, dict)]
    if any(entry.get("keypoints") and names.get(entry.get("category_id")) not in points for entry in objects):
        whole = "Give a whole file of COCO, with images, annotations and categories."
        raise DataError(f"{path}: has keypoints, whose names results of COCO do not say. {whole}")
    if None in images or {*names} == {None}:
        raise DataError(f"{path}: has numbers of images and categories, which only annotations in files of COCO have.")
    numbers = [entry.get("image_id") if isinstance(entry, dict) else None for entry in entries]
    if not any(type(number) is int and number in images for number in numbers):
        raise DataError(f"{path}: none of its images was annotated. Images are known by their image_id.")
    for place, (number, entry) in enumerate(zip(numbers, entries, strict=True), start=1):
        code, score = (entry.get(name) for name in ("category_id", "score")) if number is not None else (None, None)
        if [type(number), type(code)] != [int, int] or not isinstance(score, (int, float)):
            raise DataError(
                f"{path}, entry {place}: image_id {short_repr(number)}, category_id {short_repr(code)} and score "
                f"{short_repr(score)} cannot be used. Give two integers and a number."
            )
        if number in images and score >= LEAST_SCORE:
            name = names.get(code, f"category {code}")
            regions = regions_of(entry, {"name": name, "keypoints": [name]})
            images[number] += [{**region, "score": score} for region in regions]
    values = dict[str, MarkedImage]()
    for task, image in answers.items():
        try:
            values[task] = MarkedImage.of(image.size, images[image.image_id])
        except DataError as error:
            raise DataError(f"{path}, image {task!r}: {error}") from None
    return np.array([values.get(str(task)) for task in crowd.tasks.tolist()], object)


def _by_task(crowd: Annotations) -> dict[str, MarkedImage]:
    """One answer per task."""
    images = np.asarray(crowd.values)[crowd.labels].tolist()
    return dict(zip(map(str, crowd.tasks[crowd.task_ids].tolist()), images, strict=True))


def _table(path: Path, layout: Layout | None) -> dict[str, MarkedImage]:
    """Regions by image from a table of gold."""
    images = dict[str, MarkedImage]()
    for task, text in gold_by_task(path, layout).items():
        try:
            if text:
                images[task] = MarkedImage.parse(text)
        except DataError as error:
            raise DataError(f"{path}: image {task!r}: {error}") from None
    return images


def _masks(files: list[ExportFile], on_bad_rows: str) -> dict[str, MarkedImage]:
    """Regions by image from PNG masks."""
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
    """Reject gold in `path` without a category of the annotators, and warn of categories they never marked."""
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
    """Rename gold to the annotators' names of images, which may lack folder and suffix.

    Raises:
        DataError: an ambiguous image.

    Warns:
        DataWarning: an image was renamed; names it.
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
