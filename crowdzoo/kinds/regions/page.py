"""RegionPage: what the page of a report says of regions of images."""

from __future__ import annotations

import base64
import io
from collections import Counter
from itertools import chain, cycle
from typing import Any

import numpy as np

from crowdzoo.aggregation.regions.objects import Objects
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.label_kinds import REGION
from crowdzoo.data.regions import MarkedImage, mask_tools
from crowdzoo.kinds.kind_page import MOST_VOTES, KindPage, below_and_at_chance, interval
from crowdzoo.kinds.page_parts import listed
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.columns import ratio
from crowdzoo.quality.copies import copies
from crowdzoo.quality.wilson import NORMAL_975

SIDE, DRAWN = 240, 100  # pixels of a picture, and how many tasks have one
COLOURS = {"blue": (40, 90, 200), "red": (200, 40, 40), "orange": (230, 140, 20), "violet": (140, 50, 170)}


class RegionPage(KindPage):
    """What the page of a report says of regions of images."""

    kind, labels, given = "region", REGION, "regions of images"
    not_metric = "objects are there or not; leave it out."
    own_values = ("dice", "iou")
    compared, judged = "regions", "agreement"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        sizes, near = self.table.redundancy, np.full((2, self.table.num_tasks), np.nan)
        self.regions = regions = RegionTable.of(self.table, "A page of a report")
        self.objects, self.marked = Objects.of(regions), self.aggregation.marked
        self.alpha = self.alpha_of(self.objects.answers)
        for task, pairs in regions.pairs():
            near[:, task] = np.mean([pairs, [each / (2 - each) for each in pairs]], axis=1)
        means = near[:, sizes > 1].mean(axis=1).tolist() if (sizes > 1).any() else (None, None)
        found = dict(zip(self.own_values, means, strict=True))
        self.count(sizes, objects=len(self.objects.tasks), aggregation=self.aggregation.method, **found)
        self.tasks = listed({
            "task": self.table.tasks,
            "annotations": sizes,
            "regions": [_by_class(image) if image else "" for image in self.marked],
            "confidence": self.aggregation.confidence,
            **dict(zip(self.own_values, near, strict=True)),
        })  # fmt: skip
        self.shown = np.argsort(near[0], kind="stable")[: self.asked.most].tolist()
        self.measure_annotators()

    def measure_annotators(self) -> None:
        """Sets the table of annotators, who are compared with what half of the others of an image marked."""
        table, regions, number = self.table, self.regions, self.table.num_annotators
        sums, several = np.zeros((2, len(table))), (table.redundancy > 1)[regions.tasks]
        for _, rows in regions.images():
            for label in {label for row in rows for label in regions.marked[row].of_classes}:
                inside, lengths = regions.stack(rows, label)
                others = 2 * (inside.sum(axis=1, keepdims=True) - inside) >= len(rows) - 1
                sums[:, rows] += 2 * lengths @ (inside & others), lengths @ inside + lengths @ others
        near, who = np.where(sums[1] > 0, sums[0] / sums[1].clip(1), 1)[several], regions.who[several]
        shared = np.bincount(who, minlength=number)
        value = ratio(np.bincount(who, near, number), shared)
        width = NORMAL_975 * np.sqrt(ratio(np.bincount(who, (near - value[who]) ** 2, number), shared * (shared - 1)))
        against, random = below_and_at_chance(value, value - width, value + width, shared >= FEW)
        far = (shared >= FEW) & (value + width < (self.overall["dice"] or 0) / 2)
        self.annotators = self.of_annotators(
            np.bincount(table.annotator_ids, minlength=number), shared, {"random": random | against, "apart": far},
            **interval("agreement", value, value - width, np.minimum(value + width, 1)), **self._errors(),
            copies=copies(table.annotators, table.task_ids, table.annotator_ids, table.labels),
        )  # fmt: skip

    def _errors(self) -> dict[str, Any]:
        """How often annotators miss and invent objects, and how their boxes differ from the others', [R] each."""
        said, regions, number = self.objects.answers, self.regions, self.table.num_annotators
        who, marked, seen = said.annotator_ids, said.labels > 0, said.redundancy[said.task_ids]
        there = 2 * (np.bincount(said.task_ids, marked, said.num_tasks)[said.task_ids] - marked) >= seen - 1

        def mean(rows: Any, values: Any) -> Any:
            return ratio(np.bincount(rows, values, number), np.bincount(rows, minlength=number))

        one_of = (seen > 1) & there, (seen > 1) & marked
        misses, invents = mean(who[one_of[0]], ~marked[one_of[0]]), mean(who[one_of[1]], ~there[one_of[1]])
        owners, apart = np.empty(0, np.int64), np.empty((0, 3))
        for members in (members for members in self.objects.members if len(members) > 1):
            boxes = np.array([regions.marked[row].boxes[place] for row, place in members])
            boxes[:, :2] += boxes[:, 2:] / 2
            others = (boxes.sum(axis=0) - boxes) / (len(boxes) - 1)
            shifts, sides = (boxes - others)[:, :2] / others[:, 2:], np.log(boxes / others)[:, 2:]
            owners = np.r_[owners, regions.who[[row for row, _ in members]]]
            apart = np.r_[apart, np.c_[sides.sum(axis=1), shifts]]
        wider, *shifted = (mean(owners, each) for each in apart.T)
        return {"misses": misses, "invents": invents, "wider": np.expm1(wider), "shifted": np.hypot(*shifted)}

    def task_details(self) -> list[dict[str, Any]]:
        """Who marked what, and a picture: the aggregated regions filled, and the annotators' outlines."""
        rows_of, found = dict(self.regions.images()), []
        for place, task in enumerate(self.shown):
            rows = rows_of.get(task, [])[:MOST_VOTES]
            marked = [self.regions.marked[row] for row in rows]
            said = map("{}: {}".format, cycle(COLOURS), map(_by_class, marked))
            voters = [[self.names[self.regions.who[row]], text] for row, text in zip(rows, said, strict=True)]
            picture = {"image": _picture(self.marked[task], marked)} if rows and place < DRAWN else None
            found.append({"voters": voters, "instance": picture})
        return found

    def second(self) -> str:
        """See `KindPage.second`."""
        mean = self.overall["dice"]
        return "No image has two answers" if mean is None else f"Dice of two answers to an image is {mean:.2f}"


def _by_class(image: MarkedImage) -> str:
    counts = Counter(region.label for region in image.regions)
    return ", ".join(f"{count} {label}" for label, count in counts.items()) or "nothing"


def _picture(found: MarkedImage, marked: list[MarkedImage]) -> str:
    """A PNG file as a data URL."""
    from PIL import Image
    from scipy.ndimage import binary_erosion

    step, file = 1 + max(found.height, found.width) // SIDE, io.BytesIO()
    pixels = np.full((found.height, found.width, 3), 255, np.uint8)[::step, ::step]
    for colour, image in zip(chain([(205, 225, 205)], cycle(COLOURS.values())), [found, *marked], strict=False):
        for mask in image.masks:
            inside = mask_tools().decode(mask)[::step, ::step] > 0
            pixels[inside if image is found else inside & ~binary_erosion(inside)] = colour
    Image.fromarray(pixels).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


PAGE = RegionPage
