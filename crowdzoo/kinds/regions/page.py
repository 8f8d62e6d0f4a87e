"""RegionPage: page of a report on regions of images."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np

from crowdzoo.aggregation.regions.objects import Objects
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.label_kinds import REGION
from crowdzoo.data.regions import MarkedImage, mask_tools, radius_of
from crowdzoo.errors import DataError
from crowdzoo.kinds.answer_page import AnswerPage
from crowdzoo.kinds.model_answers import MOST_LISTED, ModelAnswers
from crowdzoo.kinds.page import MOST_VOTES
from crowdzoo.kinds.page_parts import (
    NOT_YET,
    UNKNOWN,
    Columns,
    Details,
    PageWarning,
    as_lists,
    percent,
    read_columns,
    warning,
)
from crowdzoo.kinds.quality_words import level_of
from crowdzoo.kinds.regions.differing_objects import differing_objects
from crowdzoo.kinds.regions.scoring import RegionScoring
from crowdzoo.quality.annotators import FAR, FEW
from crowdzoo.quality.figures import NORMAL_975, interval, means, ratio, wilson

# Overlap from which annotators' regions are one object; share of errors from which they are described
OVERLAP, SOME = 0.2, 0.1
WIDER, SHIFTED = np.log(1.5), 0.15  # differences of boxes from which extent is noted: log of the area, part of a side
# For points: multiple of the distance for one object when comparing annotators, and part of it that is noted
APART, POINTS_SHIFTED = 2.0, 0.3
SIDE, DRAWN = 240, 100  # pixels of a picture's side, and number of tasks with one
_OF_OBJECTS = "task", "finding", "label", "predicted", "overlap", "doubt"
RING = 3  # radius of an annotator's point, pixels of a picture
FILLED = 80, 170, 80, 90  # red, green, blue and opacity of the result's regions
COLOURS = {"blue": (40, 90, 200), "red": (200, 40, 40), "orange": (230, 140, 20), "violet": (140, 50, 170)}


class RegionPage(AnswerPage):
    """Page of a report on regions of images."""

    kind, labels, subject = "region", REGION, "regions of images"
    own_columns = read_columns(__package__)
    not_metric = "objects are there or not; leave it out."
    own_values = ("dice", "iou")
    task_column, model_value = "regions", "model_agreement"
    by_alpha = False  # all may mark every object, and alpha ignores edges

    def measure(self) -> None:
        """See `KindPage.measure`."""
        sizes = self.table.redundancy
        self.regions = regions = RegionTable.of(self.table, "A page of a report")
        shapes = [region for image in regions.marked for region in image.regions]
        self.are_points = bool(shapes) and all(region.is_point for region in shapes)
        if self.are_points:
            self.overrides, self.hidden = {"dice": {"title": "F1 of two answers"}}, {"iou", "wider"}
        self.predicted = np.full(len(sizes), None)
        self.distance: float | None = self.aggregation.distance
        objects, self.marked = Objects.of(regions, distance=self.distance), self.aggregation.marked.tolist()
        self.alpha, answers = self.alpha_of(objects.answers), objects.answers
        self.marks = answers.labels[(answers.redundancy > 1)[answers.task_ids]] > 0
        *pairs, dice = regions.pairs(self.distance)
        self.compare(regions.tasks, regions.who, pairs, dice, np.ones(len(dice)))
        near = {"dice": self.of_tasks(dice), "iou": self.of_tasks(dice / (2 - dice))}
        overall = {name: float(np.nanmean(values)) if len(dice) else None for name, values in near.items()}
        self.measure_annotators()
        self.count(sizes, objects=len(objects.tasks), aggregation=self.aggregation.method, **overall)
        self.tasks = as_lists(
            task=self.table.tasks,
            annotations=sizes,
            regions=[_by_class(image) if image else "" for image in self.marked],
            confidence=self.aggregation.confidence,
            **near,
            redo=self.redo,
        )
        self.rows = np.argsort(near["dice"], kind="stable")[: self.settings.most].tolist()

    def measure_annotators(self) -> None:
        """Set the table of annotators: how often they miss and invent objects, and how their boxes differ, [R] each.

        Regions with any overlap are the same object, even if their extents differ. An object exists if half of the
        other annotators, weighted by squared skill, marked it.
        """
        regions, number = self.regions, self.table.num_annotators
        answers = (objects := Objects.of(regions, OVERLAP, self.distance, APART)).answers
        annotators, marked, seen = answers.annotator_ids, answers.labels > 0, answers.redundancy[answers.task_ids]
        weights = self.skill[annotators] ** 2
        votes = weights * np.where(marked, 1, -1)
        present = np.bincount(answers.task_ids, votes, answers.num_tasks)[answers.task_ids] >= votes
        one_of = (seen > 1) & present, (seen > 1) & marked
        misses = means(annotators[one_of[0]], ~marked[one_of[0]], number)
        invents = means(annotators[one_of[1]], ~present[one_of[1]], number)
        size = answers.num_classes
        for_class = np.bincount(answers.task_ids * size + answers.labels, weights, answers.num_tasks * size)
        for_class = for_class.reshape(-1, size)[answers.task_ids].astype(np.float64)
        for_class[np.arange(len(annotators)), answers.labels] -= weights
        for_class[:, 0] = 0  # annotators who did not mark it
        named = marked & (for_class.sum(axis=1) > 0)
        renames = means(annotators[named], for_class[named].argmax(axis=1) != answers.labels[named], number)
        owners, apart = np.empty(0, np.int64), np.empty((0, 3))
        fewest = 3 if 2 * len(answers) > 5 * len(objects.tasks) else 2  # of two, either extent may be wrong
        for members in (members for members in objects.members if len(members) >= fewest):
            boxes = np.array([regions.marked[row].boxes[place] for row, place in members])
            boxes[:, :2] += boxes[:, 2:] / 2
            boxes[:, 2:][boxes[:, 2:] == 0] = radius_of(regions.marked[members[0][0]], self.distance)  # points
            medians = np.array([np.median(np.delete(boxes, place, axis=0), axis=0) for place in range(len(boxes))])
            shifts, sides = (boxes - medians)[:, :2] / medians[:, 2:], np.log(boxes / medians)[:, 2:]
            owners = np.r_[owners, regions.who[[row for row, _ in members]]]
            apart = np.r_[apart, np.c_[sides.sum(axis=1), shifts]]
        average = np.array([means(owners, column, number) for column in apart.T])
        count = np.bincount(owners, minlength=number)
        squares = [np.bincount(owners, column**2, number) for column in (apart - average.T[owners]).T]
        half = NORMAL_975 * np.sqrt([ratio(column, count * (count - 1)) for column in squares])
        wider, shifted = average[0], np.hypot(*average[1:])
        extent = (count >= FEW) & (misses < 0.5) & (invents < 0.5)
        side, most = ("the distance of one object", POINTS_SHIFTED) if self.are_points else ("a side", SHIFTED)
        extent &= (np.abs(wider) - half[0] > WIDER) | (shifted - np.hypot(*half[1:]) > most)
        counts = [np.bincount(annotators[rows], minlength=number) for rows in (*one_of, named)]
        rates = zip((misses, invents, renames), counts, strict=True)
        worse = [wilson(rate, numbers)[0] > self.usual_of(rate) + FAR for rate, numbers in rates]
        words = "other class {:.0%}", "misses {:.0%}", "invents {:.0%}", "area {:+.0%}", "shifted by {:.0%} of " + side
        area = np.where(np.abs(wider) > half[0], np.expm1(wider), 0.0)  # if significant
        rows = (zip(words, row, strict=True) for row in zip(renames, misses, invents, area, shifted, strict=True))
        differs = [", ".join(word.format(x).replace("%", " %") for word, x in row if abs(x) > SOME) for row in rows]
        differs = [text or "edges" for text in differs]
        sides = {} if self.are_points else interval("wider", *np.expm1([wider, wider - half[0], wider + half[0]]))
        self.note(differs, np.any(worse, axis=0), extent, misses=misses, invents=invents, shifted=shifted, **sides)

    def model_answers(self, predictions: Any) -> ModelAnswers:
        """See `KindPage.model_answers`; `MarkedImage`, None without a prediction."""
        if not all(image is None or isinstance(image, MarkedImage) for image in predictions):
            raise DataError("predictions: give a MarkedImage for each task, None without a prediction.")
        self.predicted = model = np.array([*predictions, None], object)[:-1]
        metric = "F1 of points" if self.are_points else "Dice coefficient"
        answers, scoring = np.asarray(self.table.values)[self.table.labels], RegionScoring(self.distance)
        crowd = self.aggregation.marked, self.table.task_ids, answers
        return ModelAnswers(metric, scoring.sums, model, model.astype(bool), *crowd, lambda _, image: _by_class(image))

    def task_details(self) -> Details:
        """Annotators' regions, and a picture of the aggregated regions (filled) and the annotators' outlines.

        The page overlays the picture on the photograph if there is one.
        """
        rows_of = dict(self.regions.images())
        for place, task in enumerate(self.rows):
            rows = rows_of.get(task, [])[:MOST_VOTES]
            marked = [self.regions.marked[row] for row in rows]
            texts = map("{}: {}".format, cycle(COLOURS), map(_by_class, marked))
            voters = [[self.names[self.regions.who[row]], text] for row, text in zip(rows, texts, strict=True)]
            picture = None
            if rows and place < DRAWN:
                picture = {"marks": _picture(self.marked[task], marked, self.distance, self.predicted[task])}
            yield {"voters": voters, "instance": picture}

    def own_warnings(self) -> Iterable[PageWarning]:
        """See `KindPage.own_warnings`."""
        return super().own_warnings() if self.overall["objects"] else [warning("no-regions", True)]

    def compare_model(self, answers: ModelAnswers) -> None:
        """See `KindPage.compare_model`; also the objects on which model and aggregated regions differ."""
        super().compare_model(answers)
        objects = [
            (task, *row)
            for task, image, model in zip(self.table.tasks.tolist(), self.marked, answers.model, strict=True)
            if image and model
            for row in differing_objects(image, model, self.distance)
        ]
        objects.sort(key=lambda row: -row[-1])
        columns: Columns = {name: [row[place] for row in objects] for place, name in enumerate(_OF_OBJECTS)}
        columns |= as_lists(**{name: np.array(columns[name], np.float64) for name in _OF_OBJECTS[-2:]})
        first = [*range(min(len(objects), MOST_LISTED))]
        self.model_tables["model_objects"] = self.table_of("model_objects", columns, first)

    def headline(self) -> str:
        """See `KindPage.headline`."""
        if (mean := self.overall["dice"]) is None:
            return f"{UNKNOWN}: agreement cannot be measured, because no image has two answers."
        what, score = ("points", "an F1") if self.are_points else ("regions", "a Dice coefficient")
        pair = f"the {what} of two answers to an image have {score} of {mean:.2f} (1: equal)"
        if not self.judged:
            return (
                f"{UNKNOWN}: {pair}, but too few images have two answers to tell how near they are to the right ones."
            )
        if self.unclear:
            return f"{NOT_YET}: {pair}, and answers alone do not tell which annotators are right."
        level, right = level_of(self.usual), f"the right {what}"
        return (
            f"Probably {level[0].lower()}{level[1:]}: {pair}; those of one annotator and {right} usually "
            f"{self.usual:.2f}, if annotators err independently."
        )

    def background(self) -> str:
        """See `KindPage.background`."""
        if not len(self.marks):
            return "No object can be compared"
        return f"{percent(self.marks.mean())} of those who saw an object's image marked it"


def _by_class(image: MarkedImage) -> str:
    counts = Counter(region.label for region in image.regions)
    return ", ".join(f"{count} {label}" for label, count in counts.items()) or "nothing"


def _picture(result: MarkedImage, marked: list[MarkedImage], distance: float | None, model: MarkedImage | None) -> str:
    """Draw a transparent PNG, as a data URL.

    Annotators' points are rings; those of the result are discs with the distance as radius.
    """
    from PIL import Image
    from scipy.ndimage import binary_erosion

    step, file = 1 + max(result.height, result.width) // SIDE, io.BytesIO()
    pixels = np.zeros((result.height, result.width, 4), np.uint8)[::step, ::step]
    y, x = np.ogrid[: result.height : step, : result.width : step]
    colours, black = cycle(COLOURS.values()), [] if model is None else [((0, 0, 0), model)]
    for colour, image in [(FILLED, result), *zip(colours, marked, strict=False), *black]:
        radius = radius_of(result, distance) if image is result else RING * step
        for region, mask, (left, top, *_) in zip(image.regions, image.masks, image.boxes.tolist(), strict=True):
            inside = mask_tools().decode(mask)[::step, ::step] > 0
            if region.is_point:
                inside = np.hypot(x - left, y - top) <= radius
            pixels[inside if image is result else inside & ~binary_erosion(inside)] = (*colour, 255)[:4]
    Image.fromarray(pixels).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
