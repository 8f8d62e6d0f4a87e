"""label_numbers: what the page of a report says where several labels may hold for a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.multi_label_aggregation import SEPARATOR, MultiLabelAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.several_labels.answers import LabelAnswers
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.report.page_parts import (
    DIGITS,
    NORMAL_975,
    SURE,
    Column,
    Numbers,
    PageTable,
    Warned,
    above_chance,
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
    wilson,
)

__all__ = ["label_numbers"]

MOST_VOTES = 20  # of a task
MOST_WARNED = 5  # labels in a warning
MOST_CHECKED = 3  # annotators in the row of a label
RARE = 10  # answers with a label, below which little can be said of it
LEAST_CHANCE = 5.0  # disagreements by chance on a label, from which an annotator is judged on it
NO_LABEL = "(none)"  # for tasks without one
ONE_ANSWER = 0.9  # share of one answer from which it is noted
EXCHANGE_BACK = (
    "ask whether names were exchanged, and exchange them back in the file: each label is a question of its own, so no "
    "method does that"
)


def label_numbers(
    annotations: Annotations,
    aggregation: MultiLabelAggregation,
    most: int,
    *,
    metric: str | None = None,
    bootstrap: int = 200,
    seed: int = 0,
    on_sample: Callable[[], None] | None = None,
) -> Numbers:
    """Everything that the page shows of a crowd that gives a task any number of labels.

    Each label is a question of yes or no to every annotator of a task.

    Args:
        annotations: kind classification; the labels that an annotator gave a task are one answer.
        aggregation: result of `MultiLabel` for the same annotations.
        most: annotators and tasks that the page shows.
        metric: None or "nominal".
        bootstrap: samples for the intervals of alpha; tasks are drawn.
        seed: of the bootstrap.
        on_sample: is called after each sample.

    Raises:
        ConfigError: another metric.
        DataError: an aggregation of other tasks, annotators or labels.
    """
    if metric not in (None, "nominal"):
        raise ConfigError(f"metric {metric}: a label holds or not; leave it out, or give nominal.")
    for name in ("tasks", "annotators"):
        if not np.array_equal(getattr(aggregation, name), getattr(annotations, name)):
            raise DataError(f"The aggregation is one of other {name} than the annotations.")
    classes = {str(name): code for code, name in enumerate(np.asarray(annotations.classes).tolist())}
    names = [str(name) for name in aggregation.label_names.tolist()]
    if lost := [name for name in names if name not in classes]:
        raise DataError(f"The aggregation has the label {lost[0]!r}, which no annotation gives.")
    answers = LabelAnswers.of(annotations, np.array([classes[name] for name in names], np.int64))
    alpha, alphas = answers.alphas(bootstrap, seed, on_sample)
    by_label = [answers.agreement(label) for label in range(len(names))]
    labels = _labels(aggregation, answers, alphas, names)
    annotators = _annotators(annotations, answers, by_label, names)
    _name_those_to_check(labels, annotators["annotator"], by_label)
    tasks = _tasks(annotations, aggregation, answers, names)
    overall = _overall(annotations, aggregation, answers, names)
    first = annotators_first(annotators, most)
    shown = np.argsort(-np.array([each or 0.0 for each in tasks["disagreement"]]), kind="stable")[:most].tolist()
    warned = _warnings(alpha, alphas, aggregation, annotators, labels, overall)
    return Numbers(
        kind="multi-label",
        verdict=_verdict(alpha, annotators, labels, overall, warned),
        warnings=warned,
        values={
            **alpha_values(alpha),
            "annotations": overall["annotations"],
            "tasks": overall["tasks"],
            "annotators": overall["annotators"],
            "annotations_per_task": overall["annotations_per_task"],
            "tasks_with_one_share": overall["tasks_with_one"] / max(int((answers.sizes > 0).sum()), 1),
            "rows_left_out": overall["rows_left_out"],
            **shares_of_flags(annotators),
            "labels": len(names),
            "labels_per_answer": overall["labels_per_answer"],
            "least_alpha": min((each.value for each in alphas if each is not None), default=None),
        },
        facts=_facts(alpha, overall),
        classes=names,
        tables={
            "classes": PageTable(_LABEL_COLUMNS, labels),
            "annotators": PageTable(
                _ANNOTATOR_COLUMNS, annotators, first, _annotator_details(aggregation, answers, by_label, first)
            ),
            "tasks": PageTable(_TASK_COLUMNS, tasks, shown, _task_details(annotations, aggregation, answers, shown)),
        },
        summary={
            **overall,
            "krippendorff_alpha": None if alpha is None else asdict(alpha),
            "krippendorff_alpha_of_labels": {
                name: None if each is None else asdict(each) for name, each in zip(names, alphas, strict=True)
            },
        },
    )  # fmt: skip


_LABEL_COLUMNS = (
    Column("class", "label", "name"),
    Column("annotations", "answers with it", "count"),
    Column("share", "share", "share", "Of all answers.", bar=True),
    Column(
        "alpha", "alpha", "interval", "Krippendorff's alpha of yes and no to the label, and its interval of 95 %. 1: "
        "all agree; 0: as labels drawn at random.", scale=(0.0, 1.0),
    ),
    Column(
        "agreement", "agreement on yes", "share", "If one annotator gives a task the label, how often another one "
        "does.", bar=True,
    ),
    Column("tasks", "tasks", "count", "For which it holds by the aggregation: a probability above one half."),
    Column("prevalence", "prevalence", "share", "Mean probability over the tasks."),
    Column("sure", "sure", "share", "Tasks on which yes or no has a probability of 95 % or more."),
    Column(
        "to_check", "annotators to check", "count", "Annotators who agree with the others on this label as by chance, "
        "or less, of those with answers enough to tell.",
    ),
    Column("check", "who", "name", "Those who agree least."),
)  # fmt: skip
_ANNOTATOR_COLUMNS = (
    Column("annotator", "annotator", "name"),
    Column("annotations", "answers", "count"),
    Column(
        "agreement", "agreement", "interval", "With the others who answered the same tasks, beyond chance, over all "
        "labels, and its interval of 95 %. 1: always as the others; 0: as by chance.", scale=(-0.5, 1.0),
    ),
    Column("notes", "notes", "flags"),
    Column("labels", "labels an answer", "number", "Mean."),
    Column("others_labels", "of the others", "number", "Mean of the others' answers to the same tasks."),
    Column("top_share", "same answer", "share", "Share of the most frequent answer, a set of labels."),
    Column("seconds", "seconds", "number", "Median time that an answer took, or that lay between two of them."),
)  # fmt: skip
_TASK_COLUMNS = (
    Column("task", "task", "name"),
    Column("annotations", "answers", "count"),
    Column("label", "labels", "name", "Those with a probability above one half."),
    Column("probability", "least sure", "share", "Probability of the yes or no that is least sure."),
    Column("disagreement", "disagreement", "number", "Labels that one of two annotators gives and the other does not, "
           "mean over the pairs of annotators."),
)  # fmt: skip


# === Tables ===


def _labels(
    aggregation: MultiLabelAggregation,
    answers: LabelAnswers,
    alphas: list[Alpha | None],
    names: list[str],
) -> dict[str, Any]:
    several = answers.sizes > 1
    sizes, yes = answers.sizes[several][:, None], answers.yes[several]
    other = (yes * (yes - 1) / np.maximum(sizes - 1, 1)).sum(axis=0)
    given = yes.sum(axis=0)
    some = answers.sizes > 0
    probabilities = aggregation.probabilities[some]
    sure = np.maximum(probabilities, 1 - probabilities) >= SURE
    values = [[None if each is None else getattr(each, end) for each in alphas] for end in ("value", "low", "high")]
    return {
        "class": names,
        "annotations": answers.said.sum(axis=0).tolist(),
        "share": plain(answers.said.mean(axis=0) if len(answers.said) else np.zeros(len(names))),
        **{key: [None if each is None else round(each, DIGITS) for each in column]
           for key, column in zip(("alpha", "alpha_low", "alpha_high"), values, strict=True)},
        "agreement": plain(np.divide(other, given, out=np.full(len(names), np.nan), where=given > 0)),
        "tasks": aggregation.chosen[some].sum(axis=0).tolist(),
        "prevalence": plain(probabilities.mean(axis=0)),
        "sure": plain(sure.mean(axis=0)),
    }  # fmt: skip


def _name_those_to_check(labels: dict[str, Any], annotators: list[Any], by_label: list[NDArray[np.float64]]) -> None:
    """Adds to the table of labels how many annotators to check there are, and those who agree least."""
    counts, named = [], []
    for found in by_label:
        who = np.flatnonzero(_by_chance(found, found[3] >= LEAST_CHANCE).any(axis=0))
        who = who[np.argsort(found[0][who], kind="stable")].tolist()
        more = f" and {len(who) - MOST_CHECKED:,} more" if len(who) > MOST_CHECKED else ""
        counts.append(len(who))
        named.append(", ".join(str(annotators[each]) for each in who[:MOST_CHECKED]) + more or None)
    labels.update(to_check=counts, check=named)


def _by_chance(found: NDArray[np.float64], enough: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Who agrees less than by chance, and who as by chance and clearly less than the crowd, bool [2, R]."""
    value, low, high = found[:3]
    known = enough & np.isfinite(low)
    usual = np.median(value[known]) if known.any() else 0.0
    with np.errstate(invalid="ignore"):
        return np.stack([known & (high < 0), known & (low <= 0) & (high >= 0) & (high < usual)])


def _opposed_on_one(by_label: list[NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Who agrees less than by chance on a label, with 95 % for all labels of an annotator together, bool [R]."""
    wider = NormalDist().inv_cdf(1 - 0.025 / len(by_label)) / NORMAL_975
    with np.errstate(invalid="ignore"):
        opposed = [
            (chance >= LEAST_CHANCE) & (value + wider * (high - value) < 0) for value, _, high, chance in by_label
        ]
    return np.any(opposed, axis=0)


def _annotators(
    annotations: Annotations, answers: LabelAnswers, by_label: list[NDArray[np.float64]], names: list[str]
) -> dict[str, Any]:
    who, number = answers.who, answers.num_annotators
    counts = np.bincount(who, minlength=number)
    several = answers.sizes[answers.tasks] > 1
    shared = np.bincount(who[several], minlength=number)
    found = answers.agreement()
    own = answers.said.sum(axis=1)
    others = (answers.yes.sum(axis=1)[answers.tasks] - own) / np.maximum(answers.sizes[answers.tasks] - 1, 1)
    _, pattern = np.unique(answers.said, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    pairs, times = np.unique(who * (pattern.max(initial=0) + 1) + pattern, return_counts=True)
    top, kind = np.zeros(number), np.zeros(number, np.int64)
    for place in np.argsort(times, kind="stable").tolist():  # the most frequent one is written last
        one, which = divmod(int(pairs[place]), int(pattern.max(initial=0)) + 1)
        top[one], kind[one] = times[place] / counts[one], which
    usual = np.bincount(pattern, minlength=1) / max(len(pattern), 1)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(who, own, number) / counts
        of_others = np.bincount(who[several], others[several], number) / shared
    against, random = _by_chance(found, shared >= FEW)
    questions = answers.tasks[:, None] * answers.said.shape[1] + np.arange(answers.said.shape[1])
    copied = copies(annotations.annotators, questions.ravel(), who.repeat(questions.shape[1]), answers.said.ravel())
    usual_agreement = np.median(found[0][np.isfinite(found[0])]) if np.isfinite(found[0]).any() else 0.0
    with np.errstate(invalid="ignore"):  # on two labels or more
        doubtful = (np.stack([each[1] for each in by_label]) < usual_agreement / 2).sum(axis=0) > 1
    pairs = answers.exchanged((shared >= FEW) & doubtful)
    exchange = np.isin(np.arange(number), [*pairs])
    words = {place: " and ".join(f"{names[one]} for {names[other]} and the other way round" for one, other in each)
             for place, each in pairs.items()}  # fmt: skip
    marks = {
        "exchange": exchange,
        "against": against & ~exchange,
        "random": random & ~exchange,
        "label": _opposed_on_one(by_label) & ~against & ~exchange,
        "same": (counts >= FEW) & (top >= ONE_ANSWER) & (wilson(top, counts)[0] > usual[kind]),
        "copy": np.array(copied, bool),
        "alone": (shared == 0) & (counts > 0),
        "few": (shared < FEW) & (shared > 0),
    }
    notes = notes_of(marks, number)
    values: dict[str, Any] = {
        "annotator": annotations.annotators.tolist(),
        "annotations": counts.tolist(),
        "shared": shared.tolist(),
        "agreement": plain(found[0]),
        "agreement_low": plain(found[1]),
        "agreement_high": plain(found[2]),
        "labels": plain(mean),
        "others_labels": plain(of_others),
        "top_share": plain(np.where(counts > 0, top, np.nan)),
        "notes": notes,
        "exchanges": [words.get(place) for place in range(number)],
        "copies": copied,
    }
    if (seconds := median_seconds(annotations)) is not None:
        values["seconds"] = plain(seconds)
    return values


def _tasks(
    annotations: Annotations, aggregation: MultiLabelAggregation, answers: LabelAnswers, names: list[str]
) -> dict[str, Any]:
    sizes, yes, some = answers.sizes, answers.yes, answers.sizes > 0
    pairs = np.maximum(sizes * (sizes - 1) / 2, 1)
    differing = (yes * (sizes[:, None] - yes)).sum(axis=1) / pairs
    least = np.maximum(aggregation.probabilities, 1 - aggregation.probabilities).min(axis=1)
    sets = [
        SEPARATOR.join(name for name, holds in zip(names, row, strict=True) if holds) or NO_LABEL
        for row in aggregation.chosen
    ]
    return {
        "task": annotations.tasks.tolist(),
        "annotations": sizes.tolist(),
        "label": [each if known else None for each, known in zip(sets, some.tolist(), strict=True)],
        "probability": plain(np.where(some, least, np.nan)),
        "disagreement": plain(np.where(sizes > 1, differing, np.nan)),
    }


def _annotator_details(
    aggregation: MultiLabelAggregation, answers: LabelAnswers, by_label: list[NDArray[np.float64]], shown: list[int]
) -> list[dict[str, Any]]:
    """Of the annotators shown, of each label: answers with it, agreement on it, sensitivity and specificity."""
    given = np.zeros((answers.num_annotators, answers.said.shape[1]), np.int64)
    np.add.at(given, answers.who, answers.said)
    agreement = np.stack([found[0] for found in by_label], axis=1)
    details = []
    for who in shown:
        columns = agreement[who], aggregation.sensitivity[who], aggregation.specificity[who]
        rows = zip(given[who].tolist(), *(plain(column) for column in columns), strict=True)
        details.append({"labels": [[label, *row] for label, row in enumerate(rows)]})
    return details


def _task_details(
    annotations: Annotations, aggregation: MultiLabelAggregation, answers: LabelAnswers, shown: list[int]
) -> list[dict[str, Any]]:
    """Of the tasks shown: votes and probability of the labels that somebody gave, and who gave which."""
    starts = np.searchsorted(answers.tasks, np.arange(len(answers.sizes) + 1))
    names, details = annotations.annotators.tolist(), []
    for task in shown:
        labels = np.flatnonzero((answers.yes[task] > 0) | aggregation.chosen[task])
        labels = labels[np.argsort(-answers.yes[task][labels], kind="stable")]
        rows = range(starts[task], min(starts[task + 1], starts[task] + MOST_VOTES))
        details.append({
            "labels": [
                [label, int(answers.yes[task, label]), round(float(aggregation.probabilities[task, label]), DIGITS)]
                for label in labels.tolist()
            ],
            "sets": [[str(names[answers.who[row]]), np.flatnonzero(answers.said[row]).tolist()] for row in rows],
        })  # fmt: skip
    return details


# === Figures, verdict and warnings ===


def _overall(
    annotations: Annotations, aggregation: MultiLabelAggregation, answers: LabelAnswers, names: list[str]
) -> dict[str, Any]:
    sizes = answers.sizes
    some = sizes > 0
    return {
        "annotations": len(answers.tasks),
        "rows_left_out": annotations.num_rejected,
        "tasks": annotations.num_tasks,
        "annotators": annotations.num_annotators,
        "labels": len(names),
        "tasks_without_annotations": int((~some).sum()),
        "tasks_with_one": int((sizes == 1).sum()),
        "tasks_without_label": int((~aggregation.chosen[some].any(axis=1)).sum()),
        "annotations_per_task": float(sizes.mean()) if len(sizes) else None,
        "labels_per_answer": float(answers.said.sum(axis=1).mean()) if len(answers.said) else None,
        "empty_answers": int((~answers.said.any(axis=1)).sum()),
    }


def _facts(alpha: Alpha | None, overall: dict[str, Any]) -> list[list[Any]]:
    beside = "" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}"
    return [
        ["answers", overall["annotations"], "count", ""],
        ["tasks", overall["tasks"], "count", ""],
        ["annotators", overall["annotators"], "count", ""],
        ["Krippendorff's alpha", None if alpha is None else alpha.value, "number", beside],
        ["labels", overall["labels"], "count", ""],
        ["labels an answer", overall["labels_per_answer"], "number", ""],
        ["answers without a label", overall["empty_answers"], "count", ""],
        ["tasks without a label", overall["tasks_without_label"], "count", "by the aggregation"],
        ["answers a task", overall["annotations_per_task"], "number", ""],
        ["tasks with one answer", overall["tasks_with_one"], "count", ""],
    ]


def _verdict(
    alpha: Alpha | None,
    annotators: dict[str, Any],
    labels: dict[str, Any],
    overall: dict[str, Any],
    warned: list[Warned],
) -> list[str]:
    start = f"Over the yes and no to all {overall['labels']:,} labels, " if overall["labels"] > 1 else ""
    first = alpha_sentence(alpha, start) if alpha is not None else alpha_sentence(None)
    mean, named = overall["annotations_per_task"] or 0, overall["labels_per_answer"] or 0
    second = f"A task has {mean:.3g} answer{'' if mean == 1 else 's'} on average, with "
    second += f"{named:.3g} label{'' if named == 1 else 's'} each"
    known = sorted(
        (value, name) for value, name in zip(labels["alpha"], labels["class"], strict=True) if value is not None
    )
    low = dict(zip(labels["class"], labels["alpha_low"], strict=True))
    clear = [each for each in known if low[each[1]] is None or low[each[1]] > 0]
    if len(known) > 1 and clear:
        (least, worst), (highest, best) = known[0], clear[-1]
        second += f"; annotators agree most on {best} (alpha {highest:.2f}) and least on {worst} ({least:.2f})"
    noticed = int(shares_of_flags(annotators)["noted_annotators"] or 0)
    return [first, f"{second}.", look_first(warned, noticed, otherwise="No annotator has to be checked.")]


def _warnings(
    alpha: Alpha | None,
    alphas: list[Alpha | None],
    aggregation: MultiLabelAggregation,
    annotators: dict[str, Any],
    labels: dict[str, Any],
    overall: dict[str, Any],
) -> list[Warned]:
    found = basic_warnings(alpha, overall, aggregation.method, aggregation.converged)
    for note in aggregation.notes:  # of a label, which stands before it
        name = next((each for each in labels["class"] if note.startswith(f"{each}: ")), None)
        if name is None:
            found.append(noted(note))
        else:
            found.append(replace(noted(note[len(name) + 2 :]), serious=False, about=name, link="classes"))
    names, counts = labels["class"], labels["annotations"]
    rare = [name for name, count in zip(names, counts, strict=True) if count < RARE]
    chance = [
        name for name, each, count in zip(names, alphas, counts, strict=True)
        if each is not None and not above_chance(each) and count >= RARE
    ]  # fmt: skip
    for which, finding, fix in (
        (chance, "annotators do not agree clearly more than by chance on whether it holds", "say in the instructions "
         "when it holds, with examples, or leave the label out"),
        (rare, f"fewer than {RARE} answers give it, which says little of annotators and tasks", "collect more answers "
         "before the label is used, or leave it out"),
    ):  # fmt: skip
        if which:
            more = f" and {len(which) - MOST_WARNED:,} more" if len(which) > MOST_WARNED else ""
            found.append(Warned(False, ", ".join(which[:MOST_WARNED]) + more, finding, fix, "classes"))
    of_flags = warned_of_flags(annotators, overall["annotations"])
    found += [replace(each, fix=EXCHANGE_BACK) if each.key == "exchange" else each for each in of_flags]
    return sorted(found, key=lambda warned: not warned.serious)
