"""Sentences on a `QualityReport`, shared by pages and `crowdzoo quality`."""

from __future__ import annotations

from collections import Counter

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import option_text
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.page_parts import (
    NOT_YET,
    UNKNOWN,
    USABLE,
    WITH_CARE,
    Figures,
    PageWarning,
    percent,
    share_and_ends,
    warning,
)
from crowdzoo.kinds.scoring import Codes
from crowdzoo.quality import AlternativeAnnotator, QualityReport
from crowdzoo.quality.figures import interval, name_column
from crowdzoo.quality.settled import with_range

SAMPLE = 50  # tasks to label
GOOD, FAIR = 0.9, 0.75  # shares of correct labels from which labels are usable, and usable with care
MOST_WARNED = 5  # pairs of classes
LEAST_OF_DISPUTED = 0.1  # share of the tasks on which camps differ, from which a pair of classes is named
MOST_LEFT_OUT = 20  # names in a suggested option


def opening(overall: Figures, source: str | None = None) -> list[str]:
    """First sentences on aggregated labels: whether they can be used, then what to do; commands are in backticks.

    Args:
        overall: figures of a `QualityReport`; with gold, including `aggregate_accuracy`, its interval and `gold_tasks`.
        source: file of the annotations and options for reading it, quoted for a shell; None in Python.
    """
    sentences = [_headline(overall)]
    if overall["annotators"] > 1 and "camps_statistic" not in overall:
        if (settled := overall["settled"]) is None:
            sentences.append("How many labels more answers would change is not estimated for so many answers.")
        else:
            stay = "more answers by these annotators would not change them"
            share = f"{percent(settled)} of the labels are settled {between(overall, 'settled')}: {stay}."
            sentences.append(f"{share} {further_answers(overall, source)}")
    if overall.get("aggregate_accuracy") is not None:
        return [*sentences, *gold_of_camps(overall)]
    number = min(SAMPLE, overall["tasks"] - overall["tasks_without_annotations"])
    tasks = f"{number} task{'' if number == 1 else 's'}"
    if source is None:
        return [
            *sentences,
            f"To measure how many are correct, label {tasks} yourself, drawn at random, and give them as gold.",
        ]
    sample = f"`crowdzoo next {source} --gold-sample {number} --out gold.csv` draws them at random"
    again = "Fill in the column gold, and make this report again with `--gold gold.csv`."
    return [*sentences, f"To measure how many are correct, label {tasks} yourself: {sample}. {again}"]


def _headline(overall: Figures) -> str:
    """Sentence on whether the labels can be used, and how many are correct."""
    if (correct := overall.get("aggregate_accuracy")) is not None:
        number = overall["gold_tasks"]
        tasks = f"{number:,} task{'' if number == 1 else 's'} with gold"
        share = f"{percent(correct)} of the labels are correct {between(overall, 'aggregate_accuracy')}"
        return f"{level_of(correct)}: {share}, as measured on {tasks}."
    if "camps_statistic" in overall:
        return (
            f"{NOT_YET}: two camps of annotators contradict each other. Find out which is right before you buy answers."
        )
    if overall["annotators"] == 1:
        return f"{UNKNOWN}: all answers are from one annotator. Have some tasks answered by others."
    copies = "annotators who always agree may be independent, or copies of one source"
    start = f"{UNKNOWN}: {copies}" if overall["agreement"] == 1 else ""
    if (usual := overall["expected_accuracy"]) is None:
        return f"{start or f'{UNKNOWN}: answers alone do not tell how many labels are correct'}."
    ends = between(overall, "expected_accuracy").rstrip(")")
    similar = f"about {percent(usual)} of the labels are correct {ends} in nine of ten similar real crowds)"
    if start:
        return f"{start}. If they are independent, {similar}."
    level = level_of(usual)
    return f"Probably {level[0].lower()}{level[1:]}: {similar}. If annotators err independently, more are correct."


def level_of(correct: float) -> str:
    """Level of the verdict for a share of correct labels."""
    return USABLE if correct >= GOOD else WITH_CARE if correct >= FAIR else NOT_YET


def further_answers(overall: Figures, source: str | None) -> str:
    """Sentence on the value of further answers, with the command that chooses them."""
    if not (number := overall["tasks_to_ask"]):
        return "No further answer is worth its cost, if a corrected label is worth twenty answers."
    tasks = "1 task" if number == 1 else f"{number:,} tasks"
    command = "" if source is None else f": `crowdzoo next {source} --out batch.csv` chooses the first of them"
    return f"About {with_range(overall['answers_to_ask'])} further answers on {tasks} are worth their cost{command}."


def gold_of_camps(overall: Figures) -> list[str]:
    """Sentence on the camp that gold agrees with, on tasks where two camps' labels differ; none without camps."""
    if "camp_gold_tasks" not in overall:
        return []
    number = overall["camp_gold_tasks"]
    if not number:
        return ["None of the tasks with gold is one on which the camps differ: label some of these yourself."]
    names = [f"camp_{camp}_gold" for camp in (1, 2)]
    first, second = (f"{percent(overall[name])} {between(overall, name)}" for name in names)
    right = [camp for camp in (1, 2) if overall[f"camp_{camp}_gold_low"] > overall[f"camp_{3 - camp}_gold_high"]]
    verdict = f"it supports camp {right[0]}" if right else "that does not tell which is right: label more of them"
    tasks = "the task" if number == 1 else f"{number:,} tasks"
    shares = f"gold agrees with camp 1 in {first} and with camp 2 in {second}"
    return [f"On {tasks} with gold on which the camps differ, {shares}: {verdict}."]


def between(overall: Figures, name: str) -> str:
    """Format the interval of a share in parentheses."""
    low, high = (f"{100 * overall[f'{name}_{end}']:.0f}" for end in ("low", "high"))
    return f"({low} to {high} %)"


def camps_by_gold(report: QualityReport, annotations: Annotations, gold: Codes) -> Figures:
    """Count tasks with gold on which two camps' labels differ, and how often each camp agrees with gold.

    Args:
        report: report on the annotations.
        annotations: annotations of N tasks.
        gold: true classes, codes [N], -1 where unknown.

    Returns:
        `camp_gold_tasks`, and `camp_1_gold` and `camp_2_gold` with `_low` and `_high`; nothing without camps.
    """
    if report.camps is None:
        return {}
    tasks, classes = (name_column(np.asarray(names)).to_pylist() for names in (annotations.tasks, annotations.classes))
    truth = {tasks[place]: classes[gold[place]] for place in np.flatnonzero(gold >= 0)}
    rows = [row for row in report.camps.to_pylist() if row["task"] in truth]
    figures: Figures = {"camp_gold_tasks": len(rows)}
    for camp in ("camp_1", "camp_2"):
        right = sum(row[camp] == truth[row["task"]] for row in rows)
        figures |= interval(f"{camp}_gold", *share_and_ends(right, len(rows)))
    return figures


def camp_warning(report: QualityReport, hashed: bool = False) -> list[PageWarning]:
    """Warning of two camps, with options that leave out one of them; none without camps.

    Args:
        report: report on the crowd.
        hashed: whether names are hashes, which options do not accept.
    """
    if report.camps is None:
        return []
    names = report.annotators.select(["annotator", "camp"]).to_pylist()
    camps = [[str(row["annotator"]) for row in names if row["camp"] == camp] for camp in (1, 2)]
    pairs = Counter(zip(*(report.camps[name].to_pylist() for name in ("camp_1", "camp_2")), strict=True)).most_common()
    frequent = [row for row in pairs[:MOST_WARNED] if row[1] >= LEAST_OF_DISPUTED * report.camps.num_rows]
    left, right = (f"{len(camp):,} say" for camp in camps)
    which = [f"{right} {second} where {left} {first}, on {number:,} tasks" for (first, second), number in frequent]
    if rest := report.camps.num_rows - sum(number for _, number in frequent):
        which.append(f"other classes on {rest:,}")
    leave = ""
    if not hashed:
        named = [",".join(map(csv_cell, camp)) for camp in camps if len(camp) <= MOST_LEFT_OUT]
        options = [option_text("--exclude", names_of) for names_of in named]
        leave = f", or leave out the camp that you find wrong: {' or '.join(options)}" if options else ""
    return [warning("camps", True, which="; ".join(which), leave=leave)]


def replaces(test: AlternativeAnnotator) -> str:
    """Whether the model may replace people: "yes", "no", "too few tasks" or "too few people"."""
    if test.passes or test.decided:
        return "yes" if test.passes else "no"
    return "too few tasks" if test.shared else "too few people"


def tasks_a_person(test: AlternativeAnnotator) -> float:
    """Median number of tasks that people share with the model and others; the maximum if all are too few."""
    return float(np.median(test.people["tasks"])) if test.people.num_rows else test.shared
