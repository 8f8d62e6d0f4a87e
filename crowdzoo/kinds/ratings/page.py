"""rating_numbers: what the page of a report says of ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.quality import krippendorff_alpha, redundancy
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.quality.spread import Redundancy
from crowdzoo.report.page_parts import (
    DIGITS,
    NORMAL_975,
    Column,
    Numbers,
    PageTable,
    Warned,
    alpha_sentence,
    alpha_values,
    annotators_first,
    basic_warnings,
    look_first,
    median_seconds,
    noted,
    notes_of,
    plain,
    shares_of_flags,
    warned_of_flags,
)

__all__ = ["rating_numbers"]

MOST_VOTES = 20  # of a task
MOST_FAR = 10  # of an annotator
LARGE_BIAS = 0.75  # of the median error without bias, from which a bias is noted
SURELY = 3.3  # and how many of its own standard errors: one of a thousand has it by chance


def rating_numbers(
    annotations: Annotations,
    aggregation: RatingAggregation,
    most: int,
    *,
    metric: str | None = None,
    bootstrap: int = 200,
    seed: int = 0,
    on_sample: Callable[[], None] | None = None,
) -> Numbers:
    """Everything that the page shows of a crowd that gives ratings.

    Args:
        annotations: kind regression.
        aggregation: a result for the same annotations.
        most: annotators and tasks that the page shows.
        metric: see `krippendorff_alpha`.
        bootstrap: samples for the interval of alpha.
        seed: of the bootstrap.
        on_sample: is called after each sample.

    Raises:
        DataError: an aggregation of other tasks or annotators.
    """
    for name in ("tasks", "annotators"):
        if not np.array_equal(getattr(aggregation, name), getattr(annotations, name)):
            raise DataError(f"The aggregation is one of other {name} than the annotations.")
    annotations.check_no_repeats("A page of a report")
    sizes = annotations.redundancy
    several = (sizes > 1)[annotations.task_ids]
    alpha = None
    if several.any() and len(np.unique(annotations.labels[several])) > 1:
        alpha = krippendorff_alpha(annotations, metric, bootstrap=bootstrap, seed=seed, on_sample=on_sample)
    annotators, tasks = _annotators(annotations, aggregation), _tasks(annotations, aggregation)
    spread, first = redundancy(annotations), annotators_first(annotators, most)
    shown = np.argsort(-np.array([each or 0.0 for each in tasks["spread"]]), kind="stable")[:most].tolist()
    overall = _overall(annotations)
    warned = _warnings(alpha, annotations, aggregation, annotators, overall)
    return Numbers(
        kind="regression",
        verdict=_verdict(alpha, annotators, tasks, spread, warned),
        warnings=warned,
        values={
            **alpha_values(alpha),
            "annotations": len(annotations),
            "tasks": annotations.num_tasks,
            "annotators": annotations.num_annotators,
            "annotations_per_task": spread.tasks.mean,
            "tasks_with_one_share": overall["tasks_with_one"] / max(int((sizes > 0).sum()), 1),
            "rows_left_out": annotations.num_rejected,
            **shares_of_flags(annotators),
        },
        facts=_facts(alpha, annotations, spread, overall),
        tables={
            "annotators": PageTable(
                _annotator_columns(annotators), annotators, first, _annotator_details(annotations, aggregation, first)
            ),
            "tasks": PageTable(_TASK_COLUMNS, tasks, shown, _task_details(annotations, shown)),
        },
        summary={**overall, "krippendorff_alpha": None if alpha is None else asdict(alpha)},
    )


_TASK_COLUMNS = (
    Column("task", "task", "name"),
    Column("annotations", "annotations", "count"),
    Column("estimate", "estimate", "number", "The aggregated rating."),
    Column("standard_error", "standard error", "number", "Of the estimate, as the method's model has it."),
    Column("mean", "mean", "number", "Of the ratings."),
    Column("spread", "difficulty", "number", "Standard deviation of the ratings: how divided the annotators are."),
)


def _annotator_columns(annotators: dict[str, Any]) -> tuple[Column, ...]:
    ends = [abs(end) for name in ("low", "high") for end in annotators.get(f"bias_{name}", []) if end is not None]
    most = float(np.quantile(ends, 0.95)) if ends else 0.0
    return (
        Column("annotator", "annotator", "name"),
        Column("annotations", "annotations", "count"),
        Column(
            "bias", "bias", "interval",
            "How far the annotator's ratings lie above the truth, in the ratings' unit, and its interval of 95 %.",
            scale=(-(most or 1.0), most or 1.0),
        ),
        Column(
            "error", "error without bias", "number",
            "Standard deviation of the annotator's ratings about truth and bias, in the ratings' unit.",
        ),
        Column("notes", "notes", "flags"),
        Column(
            "correlation", "agreement", "interval",
            "Correlation with the mean of the others' ratings of the same tasks, and its interval of 95 %.",
            scale=(-1.0, 1.0),
        ),
        Column(
            "reliability", "reliability", "share",
            "Share of the variance of the annotator's ratings that the truth would make up; near 0 for ratings that "
            "have nothing to do with it.",
        ),
        Column("seconds", "seconds", "number", "Median time that an answer took, or that lay between two of them."),
    )  # fmt: skip


def _annotators(annotations: Annotations, aggregation: RatingAggregation) -> dict[str, Any]:
    who, ratings, number = annotations.annotator_ids, annotations.labels, annotations.num_annotators
    counts = np.bincount(who, minlength=number)
    correlation, shared = _correlations(annotations)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(who, ratings, number) / counts
        lowest, highest = np.full(number, np.inf), np.full(number, -np.inf)
        np.minimum.at(lowest, who, ratings)
        np.maximum.at(highest, who, ratings)
        # Fisher's transformation
        middle, width = np.arctanh(np.clip(correlation, -0.999999, 0.999999)), NORMAL_975 / np.sqrt(shared - 3.0)
        low, high = np.tanh(middle - width), np.tanh(middle + width)
    low[shared < 4], high[shared < 4] = np.nan, np.nan
    found: dict[str, Any] = {
        "annotator": annotations.annotators.tolist(),
        "annotations": counts.tolist(),
        "shared": shared.tolist(),
        "reliability": plain(np.where(counts > 0, aggregation.reliability, np.nan)),
        "mean": plain(mean),
        "correlation": plain(correlation),
        "correlation_low": plain(low),
        "correlation_high": plain(high),
    }
    if aggregation.precisions is not None:
        error = np.where(counts > 0, 1 / np.sqrt(aggregation.precisions), np.nan)
        found["error"] = plain(error)
    if aggregation.biases is not None:
        bias = np.where(counts > 0, aggregation.biases, np.nan)
        found["bias"] = plain(bias)
        if aggregation.precisions is not None:
            width = NORMAL_975 * error / np.sqrt(np.maximum(counts, 1))
            found |= {"bias_low": plain(bias - width), "bias_high": plain(bias + width)}
        else:
            found |= {"bias_low": plain(np.full(number, np.nan)), "bias_high": plain(np.full(number, np.nan))}
    if (seconds := median_seconds(annotations)) is not None:
        found["seconds"] = plain(seconds)
    found["copies"] = copies(annotations.annotators, annotations.task_ids, who, ratings)
    enough, constant = shared >= FEW, (counts >= FEW) & (lowest == highest)
    measured = correlation[enough & np.isfinite(correlation)]
    usual = np.median(measured) if measured.size else 0.0
    marks = {
        "bias": _biased(aggregation, counts) & ~constant,
        "against": enough & (high < 0),
        "random": enough & (low <= 0) & (high >= 0) & (high < usual) & ~constant,
        "constant": constant,
        "copy": np.array(found["copies"], bool),
        "alone": (shared == 0) & (counts > 0),
        "few": ~enough & (shared > 0),
    }
    found["notes"] = notes_of(marks, number)
    return found


def _biased(aggregation: RatingAggregation, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whose bias is far from zero by its error, and large beside the errors of the crowd, bool [R]."""
    if aggregation.biases is None or aggregation.precisions is None or not (counts >= FEW).any():
        return np.zeros(len(counts), bool)
    error = 1 / np.sqrt(aggregation.precisions)
    large = LARGE_BIAS * np.median(error[counts >= FEW])
    size = np.abs(aggregation.biases)
    return (counts >= FEW) & (size >= large) & (size > SURELY * error / np.sqrt(np.maximum(counts, 1)))


def _correlations(annotations: Annotations) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Correlation of each annotator's ratings with the mean of the others', [R], and of how many, int64 [R].

    NaN where it is not defined: fewer than four ratings of tasks that others rated, too, or all of them equal.
    """
    tasks, who, ratings, number = (
        annotations.task_ids, annotations.annotator_ids, annotations.labels, annotations.num_annotators,
    )  # fmt: skip
    ratings = ratings - (ratings.mean() if len(ratings) else 0.0)
    others = annotations.redundancy[tasks] - 1
    rows = others > 0
    rest = (np.bincount(tasks, ratings, annotations.num_tasks)[tasks] - ratings)[rows] / others[rows]
    mine, who = ratings[rows], who[rows]
    shared = np.bincount(who, minlength=number)

    def about_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values - (np.bincount(who, values, number) / np.maximum(shared, 1))[who]

    mine, rest = about_mean(mine), about_mean(rest)
    both = np.bincount(who, mine * rest, number)
    squares = np.bincount(who, mine**2, number) * np.bincount(who, rest**2, number)
    defined = (shared >= 4) & (squares > 1e-20)
    return np.divide(both, np.sqrt(squares), out=np.full(number, np.nan), where=defined), shared


def _tasks(annotations: Annotations, aggregation: RatingAggregation) -> dict[str, Any]:
    sizes, tasks = annotations.redundancy, annotations.task_ids
    some = np.maximum(sizes, 1)
    mean = np.bincount(tasks, annotations.labels, len(sizes)) / some
    squares = np.bincount(tasks, (annotations.labels - mean[tasks]) ** 2, len(sizes))
    spread = np.sqrt(squares / np.maximum(sizes - 1, 1))
    return {
        "task": annotations.tasks.tolist(),
        "annotations": sizes.tolist(),
        "estimate": plain(aggregation.estimates),
        "standard_error": plain(aggregation.standard_errors),
        "mean": plain(np.where(sizes > 0, mean, np.nan)),
        "spread": plain(np.where(sizes > 1, spread, np.nan)),
    }


def _annotator_details(
    annotations: Annotations, aggregation: RatingAggregation, shown: list[int]
) -> list[dict[str, Any]]:
    """Of the annotators shown: the tasks whose rating is farthest from the estimate and the annotator's bias."""
    place = np.full(annotations.num_annotators, -1)
    place[shown] = np.arange(len(shown))
    who, tasks, ratings = annotations.annotator_ids, annotations.task_ids, annotations.labels
    biases = np.zeros(annotations.num_annotators) if aggregation.biases is None else aggregation.biases
    far = np.abs(ratings - biases[who] - aggregation.estimates[tasks])
    details: list[dict[str, Any]] = [{"far": []} for _ in shown]
    for row in np.argsort(-far, kind="stable").tolist():
        if place[who[row]] >= 0 and len(found := details[place[who[row]]]["far"]) < MOST_FAR:
            estimate = round(float(aggregation.estimates[tasks[row]]), DIGITS)
            found.append([str(annotations.tasks[tasks[row]]), float(ratings[row]), estimate])
    return details


def _task_details(annotations: Annotations, shown: list[int]) -> list[dict[str, Any]]:
    """Of the tasks shown: who said what."""
    who, said = annotations.padded(shown)
    names = annotations.annotators.tolist()
    return [
        {
            "voters": [
                [str(names[who[row, one]]), float(said[row, one])]
                for one in np.flatnonzero(who[row] >= 0)[:MOST_VOTES].tolist()
            ]
        }
        for row in range(len(shown))
    ]


def _overall(annotations: Annotations) -> dict[str, Any]:
    sizes = annotations.redundancy
    return {
        "annotations": len(annotations),
        "rows_left_out": annotations.num_rejected,
        "tasks": annotations.num_tasks,
        "annotators": annotations.num_annotators,
        "tasks_without_annotations": int((sizes == 0).sum()),
        "tasks_with_one": int((sizes == 1).sum()),
    }


def _facts(
    alpha: Alpha | None, annotations: Annotations, spread: Redundancy, overall: dict[str, Any]
) -> list[list[Any]]:
    median = None if spread.annotators.quantiles is None else spread.annotators.quantiles[2]
    ratings = annotations.labels
    beside = "" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}"
    return [
        ["annotations", len(annotations), "count", ""],
        ["tasks", annotations.num_tasks, "count", ""],
        ["annotators", annotations.num_annotators, "count", ""],
        ["Krippendorff's alpha", None if alpha is None else alpha.value, "number", beside],
        ["lowest rating", float(ratings.min()) if len(ratings) else None, "number", ""],
        ["highest rating", float(ratings.max()) if len(ratings) else None, "number", ""],
        ["annotations a task", spread.tasks.mean, "number", ""],
        ["annotations an annotator, median", median, "count", ""],
        ["tasks with one annotation", overall["tasks_with_one"], "count", ""],
    ]


def _verdict(
    alpha: Alpha | None,
    annotators: dict[str, Any],
    tasks: dict[str, Any],
    spread: Redundancy,
    warned: list[Warned],
) -> list[str]:
    mean = spread.tasks.mean or 0
    second = f"A task has {mean:.3g} annotation{'' if mean == 1 else 's'} on average"
    spreads = [each for each in tasks["spread"] if each is not None]
    if spreads:
        second += f", with a standard deviation of {np.mean(spreads):.3g} within a task"
    pairs = zip(tasks["standard_error"], tasks["annotations"], strict=True)
    errors = [error for error, number in pairs if number and error]
    if errors:
        second += f"; the standard error of an estimate is {np.mean(errors):.3g} on average"
    noticed = int(shares_of_flags(annotators)["noted_annotators"] or 0)
    third = look_first(warned, noticed, otherwise="No annotator has to be checked.")
    return [alpha_sentence(alpha), f"{second}.", third]


def _warnings(
    alpha: Alpha | None,
    annotations: Annotations,
    aggregation: RatingAggregation,
    annotators: dict[str, Any],
    overall: dict[str, Any],
) -> list[Warned]:
    found = basic_warnings(alpha, overall, aggregation.method, aggregation.converged)
    found += [noted(note) for note in aggregation.notes]
    found += warned_of_flags(annotators, len(annotations))
    return sorted(found, key=lambda warned: not warned.serious)
