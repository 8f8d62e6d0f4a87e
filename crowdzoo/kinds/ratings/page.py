"""RatingPage: page of a report on ratings."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGRESSION
from crowdzoo.errors import DataError
from crowdzoo.kinds.model_answers import ModelAnswers
from crowdzoo.kinds.page import KindPage, below_and_at_chance, scale_of
from crowdzoo.kinds.page_parts import DIGITS, Details, as_lists, read_columns, rows_of
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.scoring import Codes, Floats
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copy_families, family_names
from crowdzoo.quality.figures import NORMAL_975, interval
from crowdzoo.quality.intraclass import intraclass_correlations

MOST_FAR = 10  # shown per annotator
LARGE_BIAS = 0.75  # ratio to the median error without bias, from which a bias is noted
NOISY = 2.0  # ratio to the median error, from which an annotator is noted
SURELY = 3.3  # standard errors required in addition; 1 in 1,000 exceeds this by chance
ICC = {f"icc_{form}{end}": f"ICC({form},{end or 1})" for form in (1, 2, 3) for end in ("", "k")}  # key -> name


class RatingPage(KindPage):
    """Page of a report on ratings."""

    kind, labels, subject = "regression", REGRESSION, "ratings"
    own_columns = read_columns(__package__)
    metrics = ("interval", "nominal", "ordinal", "ratio")
    own_values = tuple(ICC)
    task_column, annotator_column, model_value = "estimate", "correlation", "model_error"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        table, result = self.table, self.aggregation
        table.check_no_repeats("A page of a report")
        sizes, tasks, ratings = table.redundancy, table.task_ids, table.labels
        self.alpha = self.alpha_of(table)
        lowest, highest = (float(ratings.min()), float(ratings.max())) if len(ratings) else (None, None)
        self.count(sizes, lowest=lowest, highest=highest)
        self.measure_intraclass()
        self.measure_annotators()
        mean = np.bincount(tasks, ratings, len(sizes)) / np.maximum(sizes, 1)
        spread = np.sqrt(np.bincount(tasks, (ratings - mean[tasks]) ** 2, len(sizes)) / np.maximum(sizes - 1, 1))
        self.tasks = as_lists(
            task=table.tasks,
            annotations=sizes,
            estimate=result.estimates,
            standard_error=result.standard_errors,
            mean=np.where(sizes > 0, mean, np.nan),
            spread=np.where(sizes > 1, spread, np.nan),
        )
        self.rows = self.largest("spread")
        self.overrides = {"bias": {"scale": scale_of(self.annotators, "bias")}}

    def measure_intraclass(self) -> None:
        """Set the intraclass correlations, and the counts that they are based on."""
        sizes = self.table.redundancy
        several, whole = sizes[sizes > 1], int((sizes == self.table.num_annotators).sum())
        defined = len(several) > 1 and len(np.unique(self.table.labels[(sizes > 1)[self.table.task_ids]])) > 1
        correlations = intraclass_correlations(self.table) if defined else {}
        unbalanced = ", unbalanced" if len({*several.tolist()}) > 1 else ""
        for key, name in ICC.items():
            value = correlations.get(name)
            self.overall[key] = None if value is None else value.value
            if value is not None:
                of = f"{len(several):,} tasks{unbalanced}" if "_1" in key else f"{whole:,} tasks that all rated"
                self.remarks[key] = f"{value.low:.3f} to {value.high:.3f}, of {of}"
            elif correlations:
                self.remarks[key] = "needs two tasks that all annotators rated" if whole < 2 else "not defined"

    def measure_annotators(self) -> None:
        """Set the table of annotators."""
        table, result = self.table, self.aggregation
        annotators, ratings, number = table.annotator_ids, table.labels, table.num_annotators
        counts = np.bincount(annotators, minlength=number)
        families = copy_families(number, table.task_ids, annotators, ratings)
        correlation, shared = _correlations(table, families)
        lowest, highest = np.full(number, np.inf), np.full(number, -np.inf)
        np.minimum.at(lowest, annotators, ratings)
        np.maximum.at(highest, annotators, ratings)
        with np.errstate(divide="ignore", invalid="ignore"):  # Fisher's transformation
            middle, width = np.arctanh(np.clip(correlation, -0.999999, 0.999999)), NORMAL_975 / np.sqrt(shared - 3.0)
            low, high = [np.where(shared < 4, np.nan, np.tanh(middle + end)) for end in (-width, width)]
            mean = np.bincount(annotators, ratings, number) / counts
        columns = {"reliability": result.skills, "mean": mean, **interval("correlation", correlation, low, high)}
        biased, noisy = np.zeros((2, number), bool)
        if result.precisions is not None:
            columns["error"] = error = 1 / np.sqrt(result.precisions)
            usual_error = np.median(error[counts >= FEW]) if (counts >= FEW).any() else np.inf
            surely = 1 - NORMAL_975 / np.sqrt(2 * np.maximum(counts, 1))  # for the lower end of a standard deviation
            noisy = (counts >= FEW) & (error * surely > NOISY * usual_error)
        if result.biases is not None:
            width = np.full(number, np.nan)
            if result.precisions is not None:
                half = error / np.sqrt(np.maximum(counts, 1))
                width, size = NORMAL_975 * half, np.abs(result.biases)
                biased = (counts >= FEW) & (size >= LARGE_BIAS * usual_error) & (size > SURELY * half)
            columns |= interval("bias", result.biases, result.biases - width, result.biases + width)
        columns = {name: np.where(counts > 0, values, np.nan) for name, values in columns.items()}
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
        words = "error {:.3g}, usually {:.3g}"
        differs = [words.format(error[row], usual_error) if far else None for row, far in enumerate(noisy.tolist())]
        copied = family_names(table.annotators, families)
        self.annotators = self.of_annotators(counts, shared, marks, copies=copied, differs=differs, **columns)

    def annotator_details(self, codes: list[int]) -> Details:
        """Tasks whose rating is farthest from the estimate plus the annotator's bias."""
        table, result = self.table, self.aggregation
        annotators, tasks, ratings = table.annotator_ids, table.task_ids, table.labels
        far = np.abs(ratings - (0.0 if result.biases is None else result.biases[annotators]) - result.estimates[tasks])
        estimates = np.round(result.estimates, DIGITS).tolist()
        return [
            {"far": [[str(table.tasks[tasks[row]]), float(ratings[row]), estimates[tasks[row]]] for row in rows]}
            for rows in rows_of(annotators, np.argsort(-far, kind="stable"), codes, MOST_FAR)
        ]

    def task_details(self) -> Details:
        """Annotators' ratings."""
        return [{"voters": voters} for voters in self.voters(float)]

    def model_answers(self, predictions: Any) -> ModelAnswers:
        """See `KindPage.model_answers`; ratings, NaN without a prediction."""
        try:
            model = np.asarray(predictions, np.float64).reshape(self.table.num_tasks)
        except (TypeError, ValueError):
            raise DataError("predictions: give a number for each task, NaN without a prediction.") from None
        table, known = self.table, np.isfinite(model)
        crowd = self.aggregation.estimates, table.task_ids, table.labels
        return ModelAnswers("absolute difference", SCORING.sums, model, known, *crowd, lambda _, x: f"{x:.4g}", True)

    def background(self) -> str:
        """See `KindPage.background`."""
        mean = self.overall["annotations_per_task"] or 0
        text = f"A task has {mean:.3g} annotation{'' if mean == 1 else 's'} on average"
        if spreads := [spread for spread in self.tasks["spread"] if spread is not None]:
            text += f", with a standard deviation of {np.mean(spreads):.3g} within a task"
        pairs = zip(self.tasks["standard_error"], self.tasks["annotations"], strict=True)
        if errors := [error for error, number in pairs if number and error]:
            text += f"; the standard error of an estimate is {np.mean(errors):.3g} on average"
        return text


def _correlations(annotations: Annotations, families: Codes) -> tuple[Floats, Codes]:
    """Correlation of each annotator's ratings with the others' mean, [R], and number of ratings in it, int64 [R].

    The others exclude the annotator's family of copies, see `copy_families`. NaN where undefined: fewer than four
    ratings of tasks that others also rated, or all of them equal.
    """
    tasks, annotators = annotations.task_ids, annotations.annotator_ids
    ratings, number = annotations.labels, annotations.num_annotators
    ratings = ratings - (ratings.mean() if len(ratings) else 0.0)
    place = np.unique(tasks * number + families[annotators], return_inverse=True)[1]
    peers = annotations.redundancy[tasks] - np.bincount(place)[place]
    rows = peers > 0
    sums = np.bincount(place, ratings)[place]
    rest = (np.bincount(tasks, ratings, annotations.num_tasks)[tasks] - sums)[rows] / peers[rows]
    mine, annotators = ratings[rows], annotators[rows]
    shared = np.bincount(annotators, minlength=number)

    def about_mean(values: Floats) -> Floats:
        return values - (np.bincount(annotators, values, number) / np.maximum(shared, 1))[annotators]

    mine, rest = about_mean(mine), about_mean(rest)
    both = np.bincount(annotators, mine * rest, number)
    squares = np.bincount(annotators, mine**2, number) * np.bincount(annotators, rest**2, number)
    defined = (shared >= 4) & (squares > 1e-20)
    return np.divide(both, np.sqrt(squares), out=np.full(number, np.nan), where=defined), shared
