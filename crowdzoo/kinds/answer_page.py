"""AnswerPage: base class of pages on answers with degrees of similarity, such as texts and regions."""

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
HARDLY = 0.5  # usual reliability below which the page warns: two answers have a quarter in common
WORST = 0.5  # share of the usual agreement on a task, below which the task should be redone


class AnswerPage(KindPage):
    """Base class of pages on answers with degrees of similarity.

    Attributes:
        families: families of annotators who copy each other, see `copy_families`, [R].
        skill: skill of each annotator, see `fitted_skills`, [R].
        shared: number of each annotator's answers to tasks that others answered, [R].
        reliability: similarity of each annotator's answers to the others', weighted by their skill, divided by the
            others' similarity to the correct answers; with the ends of its interval, as columns of the table.
        usual: typical reliability, see `usual_of`.
        redo: reason why each task should be redone, objects [N].
    """

    def compare(self, tasks: Codes, annotators: Codes, pairs: Sequence[Codes], near: Floats, weights: Floats) -> None:
        """Set skills and reliability.

        Args:
            tasks: tasks of A answers, [A].
            annotators: annotators of these answers, [A].
            pairs: pairs of answers to the same task, two arrays of rows [P].
            near: similarity of the pairs, 0 by chance, 1 if equal, [P].
            weights: weights of the pairs, [P].
        """
        table, size, self.kept = self.table, len(annotators), np.ones(len(pairs[0]), bool)
        number = table.num_annotators
        self.families = copy_families(number, table.task_ids, table.annotator_ids, table.labels)
        # annotators who copy each other are not compared and count once
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
        """Median over annotators who can be judged, weighted by the cube of their skill; 1 without any.

        This is a typical value of good annotators even if most are bad (benchmarks/planted_crowds.py).
        """
        known = np.flatnonzero((self.shared >= FEW) & np.isfinite(values))
        order = known[np.argsort(values[known])]
        sums = np.cumsum(self.skill[order] ** 3)
        return float(values[order][np.searchsorted(sums, sums[-1] / 2)]) if len(order) else 1.0

    def of_tasks(self, values: Floats) -> Floats:
        """Mean over each task's pairs, [N]; without annotators who are far from the others, once they are known."""
        return means(self.of_pairs[self.kept], values[self.kept], self.table.num_tasks)

    def note(self, differs: list[str], worse: Flags = NOBODY, extent: Flags = NOBODY, **columns: Any) -> None:
        """Set the table of annotators, and the reasons to redo tasks.

        Args:
            differs: R descriptions of how annotators' answers differ from the others'.
            worse: annotators who are far from others for reasons other than their reliability, bool [R].
            extent: annotators who differ only in the extent of their regions, bool [R].
            **columns: further columns of the table.
        """
        table, (_, low, high) = self.table, self.reliability.values()
        known = (self.shared >= FEW) & np.isfinite(low)
        far = known & (high < np.where(worse, self.usual, self.usual - FAR))
        extent = extent & known & (low > 0) & ~(far & worse)
        self.doubted, self.judged = int((far | extent).sum()), int(known.sum())
        self.unclear = self.judged > 0 and (self.usual < HARDLY or 2 * self.doubted >= self.judged)
        far &= (known & ~far).sum() > 1  # if only one is not far, that one may err
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
