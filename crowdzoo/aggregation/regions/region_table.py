"""RegionTable: regions by image, and the runs of pixels within which no mask changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import check_annotations
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGION
from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.errors import SHOWN, DataError, DataWarning, Setting, short_repr

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RegionTable:
    """Regions sorted by image; within an image rows keep their order.

    Attributes:
        annotations: A answers to N images.
        tasks: image of each row, ascending, [A].
        who: annotator of each row, [A].
        marked: the annotator's regions, A of them; equal regions of an image are merged.
    """

    annotations: Annotations
    tasks: Codes
    who: Codes
    marked: list[MarkedImage]

    @classmethod
    def of(cls, annotations: Annotations, title: str) -> RegionTable:
        """Sorts annotations by image.

        Args:
            annotations: kind "region".
            title: title of the method, for messages.

        Raises:
            DataError: wrong kind, no annotations, several answers by one annotator to an image, or an image with two
                sizes; the message names image and annotators.

        Warns:
            DataWarning: an annotator marked the same region of an image twice, or images with one answer may have
                another name in other files; the message names the first.
        """
        check_annotations(annotations, title, REGION, "answer")
        annotations.check_no_repeats(title)
        order = np.argsort(annotations.task_ids, kind="stable")
        tasks, who = annotations.task_ids[order], annotations.annotator_ids[order]
        images = np.asarray(annotations.values)[annotations.labels[order]].tolist()
        marked, doubled = list[MarkedImage](), list[str]()
        for row, image in enumerate(images):
            task, annotator = (
                short_repr(name) for name in (annotations.tasks[tasks[row]], annotations.annotators[who[row]])
            )
            marked.append(image.distinct)
            doubled += [f"image {task} by annotator {annotator}"] * (len(image.regions) - len(marked[row].regions))
            first = images[place := int(np.searchsorted(tasks, tasks[row]))]
            if image.size != first.size:
                raise DataError(
                    f"image {task} has {image.height} x {image.width} pixels by annotator {annotator}, and "
                    f"{first.height} x {first.width} by {short_repr(annotations.annotators[who[place]])}. Correct one, "
                    "or leave it out."
                )
        alone = [str(annotations.tasks[task]) for task in np.flatnonzero(annotations.redundancy == 1)]
        if len(alone) < len(who) or annotations.num_annotators < 2:  # otherwise no two annotators share an image
            known = {*map(str, annotations.tasks.tolist())}
            alone = [name for name in alone if (last := PurePath(name).name) != name and last in known]
        if alone:
            text = f"{len(alone):,} of {annotations.num_tasks:,} images have one answer, such as {short_repr(alone[0])}"
            warnings.warn(f"{text}. Do the annotators' files use the same names for images?", DataWarning, stacklevel=1)
        if doubled:
            regions = "1 region occurs" if len(doubled) == 1 else f"{len(doubled):,} regions occur"
            text = f"{regions} twice, counted once: {', '.join([*dict.fromkeys(doubled)][:SHOWN])}."
            warnings.warn(text, DataWarning, stacklevel=1)  # always from this line, so that it is shown once
        return cls(annotations, tasks, who, marked)

    @cached_property
    def classes(self) -> list[str]:
        """Names of the marked classes, sorted."""
        return sorted({region.label for image in self.marked for region in image.regions})

    def refuse_points(self, title: str) -> None:
        """Raises an error for points, for methods that decide by pixel; `title` is that of the method.

        Raises:
            DataError: an annotator marked a point; the message names image and annotator.
        """
        for task, who, image in zip(self.tasks, self.who, self.marked, strict=True):
            if image.points:
                annotator, name = short_repr(self.annotations.annotators[who]), short_repr(self.annotations.tasks[task])
                use = Setting("method", "objects")
                text = f"{title} decides pixels, but annotator {annotator} marked points on image {name}. Use {use}."
                raise DataError(text, fix=use)

    def images(self) -> Iterator[tuple[int, list[int]]]:
        """Iterates over images with answers, and the rows of each."""
        tasks, starts = np.unique(self.tasks, return_index=True)
        rows = np.split(np.arange(len(self.tasks)), starts[1:])
        return zip(tasks.tolist(), (of_image.tolist() for of_image in rows), strict=True)

    def pairs(self, radius: float | None = None) -> tuple[Codes, Codes, NDArray[np.float64]]:
        """Rows of pairs of answers to the same image, the earlier first, and their Dice coefficients, [P] each.

        `radius` is as in `dice`.
        """
        pairs = [pair for _, rows in self.images() for pair in combinations(rows, 2)]
        overlaps = [dice(self.marked[left], self.marked[right], radius) for left, right in pairs]
        return *np.array(pairs, np.int64).reshape(-1, 2).T, np.array(overlaps)

    def stack(self, rows: list[int], label: str) -> tuple[NDArray[np.bool_], Codes]:
        """Returns runs of pixels, column by column, within which no mask of a class changes.

        Args:
            rows: n rows of one image.
            label: name of the class.

        Returns:
            Whether each run is in each mask, bool [runs, n], and the number of pixels per run.
        """
        image = self.marked[rows[0]]
        pixels = np.array([image.height * image.width])
        ends = [self.marked[row].ends.get(label, pixels) for row in rows]
        cuts = np.unique(np.concatenate(ends))
        lengths = np.diff(cuts, prepend=0)
        starts = (cuts - lengths)[lengths > 0]
        inside = [np.searchsorted(own_ends, starts, side="right") % 2 == 1 for own_ends in ends]
        return np.stack(inside, axis=1), lengths[lengths > 0]
