"""AnswerPage: what pages have in common on answers that are more or less near each other, such as texts and regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crowdzoo.kinds.page import KindPage
from crowdzoo.kinds.page_parts import PageWarning, warning
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.annotators import FAR, FEW
from crowdzoo.quality.copies import copy_families, family_names, fitted_skills
from crowdzoo.quality.figures import NORMAL_975, interval, means, ratio

__all__ = ["AnswerPage", "Codes", "Flags", "Floats"]

NOBODY = np.zeros(1, bool)
HARDLY = 0.5  # the usual reliability below which the page warns: two answers have a quarter in common
WORST = 0.5  # of the usual agreement of a task's answers, below which it is to be done again


class AnswerPage(KindPage):
    """What pages have in common on answers that are more or less near each other.

    Attributes:
        families: of annotators who copy each other, see `copy_families`, [R].
        skill: of annotators, see `fitted_skills`, [R].
        shared: answers of each to tasks that others answered, [R].
        reliability: how near the answers of each are to those of the others, who weigh by their skill, over how near
            these are to the right ones; with the ends of its interval, columns of the table.
        usual: of the reliability, see `usual_of`.
        redo: of each task why it is to be done again, objects [N].
    """

    def compare(self, tasks: Codes, annotators: Codes, pairs: Sequence[Codes], near: Floats, weights: Floats) -> None:
        """Sets skills and reliability.

        Args:
            tasks: of A answers, [A].
            annotators: of these answers, [A].
            pairs: rows of answers to one task, two arrays [P].
            near: how near they are, 0 by chance, 1 where they are equal, [P].
            weights: of the pairs, [P].
        """
        table, size, self.kept = self.table, len(annotators), np.ones(len(pairs[0]), bool)
        number = table.num_annotators
        self.families = copy_families(number, table.task_ids, table.annotator_ids, table.labels)
        # annotators who copy each other are not compared, and count once
        first, second = (self.families[annotators[part]] for part in pairs)
        members = np.bincount(self.families, minlength=number)
        weights = weights * (first != second) / (members[first] * members[second])
        self.of_pairs, self.sides, self.near = tasks[pairs[0]], [annotators[part] for part in pairs], near
        rows, partners, twice = np.r_[pairs[0], pairs[1]], np.r_[pairs[1], pairs[0]], np.tile(weights, 2)
        self.skill = fitted_skills(annotators[rows], annotators[partners], np.tile(near, 2), twice, number)
        theirs = self.skill[annotators[partners]]
        sums, most = (np.bincount(rows, twice * theirs * part, size) for part in (np.tile(near, 2), theirs))
        self.shared = np.bincount(annotators[np.bincount(rows, twice, size) > 0], minlength=number)
        total = np.bincount(annotators, most, number)
        value = ratio(np.bincount(annotators, sums, number), total)
        residuals = np.nan_to_num(sums - value[annotators] * most)  # of a ratio of sums
        squares = np.bincount(annotators, residuals**2, number)
        width = NORMAL_975 * ratio(np.sqrt(squares * ratio(self.shared, self.shared - 1)), total)
        ends = np.minimum([value, value - width, value + width], 1)
        self.reliability, self.usual = interval("reliability", *ends), self.usual_of(ends[0])

    def usual_of(self, values: Floats) -> float:
        """The median of those who can be judged, who weigh by the cube of their skill; 1 without any.

        So it is that of the good ones, also where most are bad (benchmarks/planted_crowds.py).
        """
        known = np.flatnonzero((self.shared >= FEW) & np.isfinite(values))
        order = known[np.argsort(values[known])]
        sums = np.cumsum(self.skill[order] ** 3)
        return float(values[order][np.searchsorted(sums, sums[-1] / 2)]) if len(order) else 1.0

    def of_tasks(self, values: Floats) -> Floats:
        """Means of each task's pairs, [N]; without annotators who are far from the others, once these are known."""
        return means(self.of_pairs[self.kept], values[self.kept], self.table.num_tasks)

    def note(self, differs: list[str], worse: Flags = NOBODY, extent: Flags = NOBODY, **columns: Any) -> None:
        """Sets the table of annotators, and why tasks are to be done again.

        Args:
            differs: how answers differ from those of the others, in words, R of them.
            worse: annotators who are far from others for another reason than their reliability, bool [R].
            extent: annotators who are far by the extent of their regions alone, bool [R].
            **columns: further values.
        """
        table, (_, low, high) = self.table, self.reliability.values()
        known = (self.shared >= FEW) & np.isfinite(low)
        far = known & (high < np.where(worse, self.usual, self.usual - FAR))
        extent = extent & known & (low > 0) & ~(far & worse)
        self.doubted, self.judged = int((far | extent).sum()), int(known.sum())
        self.unclear = self.judged > 0 and (self.usual < HARDLY or 2 * self.doubted >= self.judged)
        far &= (known & ~far).sum() > 1  # one alone may be the one who errs
        marks = {"random": far & (low <= 0), "far": far & (low > 0) & ~extent, "extent": extent}
        columns["differs"] = [text if any(of) else None for text, *of in zip(differs, *marks.values(), strict=True)]
        columns["copies"] = family_names(table.annotators, self.families)
        counts = np.bincount(table.annotator_ids, minlength=table.num_annotators)
        self.annotators = self.of_annotators(counts, self.shared, marks, **self.reliability, **columns)
        self.kept = ~far[self.sides[0]] & ~far[self.sides[1]]
        agreement = self.of_tasks(self.near)
        few = np.bincount(table.task_ids, ~far[table.annotator_ids], table.num_tasks) < 2
        usual = float(np.median(agreement[np.isfinite(agreement)])) if np.isfinite(agreement).any() else 0.0
        words = np.array([f"agreement {mean:.2f}, usually {usual:.2f}" for mean in agreement.tolist()], object)
        worst = np.nan_to_num(agreement, nan=1.0) < WORST * usual
        alone = "fewer than two answers of annotators who are not far from others"
        self.redo = np.select([few, worst], [alone, words], "")

    def own_warnings(self) -> Iterable[PageWarning]:
        """See `KindPage.own_warnings`."""
        if self.unclear:
            yield warning("hardly", True, usual=f"{self.usual:.2f}", far=self.doubted)
