"""RatingPage: what the page of a report says of a crowd that gives ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGRESSION
from crowdzoo.kinds.kind_page import KindPage, below_and_at_chance, interval, scale_of
from crowdzoo.kinds.page_parts import DIGITS, listed, rows_of
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copy_families, family_names
from crowdzoo.quality.wilson import NORMAL_975

MOST_FAR = 10  # of an annotator
LARGE_BIAS = 0.75  # of the median error without bias, from which a bias is noted
NOISY = 2.0  # times the median error, from which an annotator is noted
SURELY = 3.3  # and how many of its own standard errors: one of a thousand has it by chance


class RatingPage(KindPage):
    """What the page of a report says of a crowd that gives ratings."""

    kind, labels, given = "regression", REGRESSION, "ratings"
    metrics = ("interval", "nominal", "ordinal", "ratio")
    compared, judged = "estimate", "correlation"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        table, found = self.table, self.aggregation
        table.check_no_repeats("A page of a report")
        sizes, tasks, ratings = table.redundancy, table.task_ids, table.labels
        self.alpha = self.alpha_of(table)
        lowest, highest = (float(ratings.min()), float(ratings.max())) if len(ratings) else (None, None)
        self.count(sizes, lowest=lowest, highest=highest)
        self.measure_annotators()
        mean = np.bincount(tasks, ratings, len(sizes)) / np.maximum(sizes, 1)
        spread = np.sqrt(np.bincount(tasks, (ratings - mean[tasks]) ** 2, len(sizes)) / np.maximum(sizes - 1, 1))
        self.tasks = listed({
            "task": table.tasks,
            "annotations": sizes,
            "estimate": found.estimates,
            "standard_error": found.standard_errors,
            "mean": np.where(sizes > 0, mean, np.nan),
            "spread": np.where(sizes > 1, spread, np.nan),
        })  # fmt: skip
        self.shown = self.most("spread")
        self.changed = {"bias": {"scale": scale_of(self.annotators, "bias")}}

    def measure_annotators(self) -> None:
        """Sets the table of annotators."""
        table, found = self.table, self.aggregation
        who, ratings, number = table.annotator_ids, table.labels, table.num_annotators
        counts = np.bincount(who, minlength=number)
        families = copy_families(number, table.task_ids, who, ratings)
        correlation, shared = _correlations(table, families)
        lowest, highest = np.full(number, np.inf), np.full(number, -np.inf)
        np.minimum.at(lowest, who, ratings)
        np.maximum.at(highest, who, ratings)
        with np.errstate(divide="ignore", invalid="ignore"):  # Fisher's transformation
            middle, width = np.arctanh(np.clip(correlation, -0.999999, 0.999999)), NORMAL_975 / np.sqrt(shared - 3.0)
            low, high = [np.where(shared < 4, np.nan, np.tanh(middle + end)) for end in (-width, width)]
            mean = np.bincount(who, ratings, number) / counts
        columns = {"reliability": found.skills, "mean": mean, **interval("correlation", correlation, low, high)}
        biased, noisy = np.zeros((2, number), bool)
        if found.precisions is not None:
            columns["error"] = error = 1 / np.sqrt(found.precisions)
            usual_error = np.median(error[counts >= FEW]) if (counts >= FEW).any() else np.inf
            surely = 1 - NORMAL_975 / np.sqrt(2 * np.maximum(counts, 1))  # lower end of a standard deviation
            noisy = (counts >= FEW) & (error * surely > NOISY * usual_error)
        if found.biases is not None:
            width = np.full(number, np.nan)
            if found.precisions is not None:
                own = error / np.sqrt(np.maximum(counts, 1))
                width, size = NORMAL_975 * own, np.abs(found.biases)
                biased = (counts >= FEW) & (size >= LARGE_BIAS * usual_error) & (size > SURELY * own)
            columns |= interval("bias", found.biases, found.biases - width, found.biases + width)
        columns = {name: np.where(counts > 0, each, np.nan) for name, each in columns.items()}
        constant = (counts >= FEW) & (lowest == highest)
        against, random = below_and_at_chance(correlation, low, high, shared >= FEW)
        noisy &= ~(against | random | constant)
        marks = {
            "bias": biased & ~constant,
            "against": against,
            "random": random & ~constant,
            "constant": constant,
            "far": noisy,
        }
        differs = [f"error {error[who]:.3g}, usually {usual_error:.3g}" if named else None
                   for who, named in enumerate(noisy.tolist())]  # fmt: skip
        copied = family_names(table.annotators, families)
        self.annotators = self.of_annotators(counts, shared, marks, copies=copied, differs=differs, **columns)

    def annotator_details(self, shown: list[int]) -> list[dict[str, Any]]:
        """The tasks whose rating is farthest from the estimate and the annotator's bias."""
        table, found = self.table, self.aggregation
        who, tasks, ratings = table.annotator_ids, table.task_ids, table.labels
        far = np.abs(ratings - (0.0 if found.biases is None else found.biases[who]) - found.estimates[tasks])
        estimates = np.round(found.estimates, DIGITS).tolist()
        return [
            {"far": [[str(table.tasks[tasks[row]]), float(ratings[row]), estimates[tasks[row]]] for row in rows]}
            for rows in rows_of(who, np.argsort(-far, kind="stable"), shown, MOST_FAR)
        ]

    def task_details(self) -> list[dict[str, Any]]:
        """Who said what."""
        return [{"voters": each} for each in self.voters(float)]

    def second(self) -> str:
        """See `KindPage.second`."""
        mean = self.overall["annotations_per_task"] or 0
        found = f"A task has {mean:.3g} annotation{'' if mean == 1 else 's'} on average"
        if spreads := [each for each in self.tasks["spread"] if each is not None]:
            found += f", with a standard deviation of {np.mean(spreads):.3g} within a task"
        pairs = zip(self.tasks["standard_error"], self.tasks["annotations"], strict=True)
        if errors := [error for error, number in pairs if number and error]:
            found += f"; the standard error of an estimate is {np.mean(errors):.3g} on average"
        return found


def _correlations(
    annotations: Annotations, families: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Correlation of each annotator's ratings with the mean of the others', [R], and of how many, int64 [R].

    The others are those from outside of the annotator's family of copies, see `copy_families`.
    NaN where it is not defined: fewer than four ratings of tasks that others rated, too, or all of them equal.
    """
    tasks, who, ratings, number = (
        annotations.task_ids, annotations.annotator_ids, annotations.labels, annotations.num_annotators,
    )  # fmt: skip
    ratings = ratings - (ratings.mean() if len(ratings) else 0.0)
    place = np.unique(tasks * number + families[who], return_inverse=True)[1]
    others = annotations.redundancy[tasks] - np.bincount(place)[place]
    rows = others > 0
    own = np.bincount(place, ratings)[place]
    rest = (np.bincount(tasks, ratings, annotations.num_tasks)[tasks] - own)[rows] / others[rows]
    mine, who = ratings[rows], who[rows]
    shared = np.bincount(who, minlength=number)

    def about_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values - (np.bincount(who, values, number) / np.maximum(shared, 1))[who]

    mine, rest = about_mean(mine), about_mean(rest)
    both = np.bincount(who, mine * rest, number)
    squares = np.bincount(who, mine**2, number) * np.bincount(who, rest**2, number)
    defined = (shared >= 4) & (squares > 1e-20)
    return np.divide(both, np.sqrt(squares), out=np.full(number, np.nan), where=defined), shared


PAGE = RatingPage
