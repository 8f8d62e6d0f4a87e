"""What pages and `crowdzoo quality` both say of a `QualityReport`."""

from __future__ import annotations

from collections import Counter

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import option_text
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.page_parts import Figures, PageWarning, percent, share_and_ends, warning
from crowdzoo.kinds.scoring import Codes
from crowdzoo.quality import AlternativeAnnotator, QualityReport
from crowdzoo.quality.columns import name_column
from crowdzoo.quality.settled import with_range

SAMPLE = 50  # tasks to label
MOST_WARNED = 5  # pairs of classes
LEAST_OF_DISPUTED = 0.1  # share of the tasks on which camps differ, for a pair of classes to be named
MOST_LEFT_OUT = 20  # names that an option to paste has


def opening(overall: Figures, source: str | None = None) -> list[str]:
    """The first sentences on labels that were aggregated; commands are in backticks.

    Args:
        overall: of a `QualityReport`; with `aggregate_accuracy`, its interval and `gold_tasks` where there is gold.
        source: file of the annotations and options of reading it, as a shell takes them; None in Python.
    """
    if overall["annotators"] == 1:
        alone = "All answers are from one annotator: have some tasks answered by others, to see whether they agree."
        sentences = [alone]
    elif (settled := overall["settled"]) is None:
        sentences = ["How many labels would stay the same with more answers is not estimated for so many answers."]
    else:
        stay = "they would stay the same if many more of these annotators answered"
        share = f"About {percent(settled)} of the labels are settled {between(overall, 'settled')}"
        sentences = [f"{share}: {stay}. {further_answers(overall, source)}"]
    if (correct := overall.get("aggregate_accuracy")) is not None:
        number = overall["gold_tasks"]
        tasks = f"{number:,} task{'' if number == 1 else 's'} with gold"
        share = f"{percent(correct)} of the labels are correct {between(overall, 'aggregate_accuracy')}"
        return [*sentences, f"{share}, as measured on {tasks}.", *gold_of_camps(overall)]
    if overall["agreement"] == 1:
        sentences.append("Annotators who always agree may be independent or copies of one source: answers do not tell.")
    unknown = "How many labels are correct cannot be told from answers alone"
    if "camps_statistic" in overall:
        unknown += ", and here two camps of annotators contradict each other"
    elif (usual := overall["expected_accuracy"]) is not None:
        ends = between(overall, "expected_accuracy", " in nine of ten of them")
        unknown += f"; in real crowds that look similar about {percent(usual)} were {ends}"
        unknown += "; more if annotators err independently"
    number = min(SAMPLE, overall["tasks"] - overall["tasks_without_annotations"])
    tasks = f"{number} task{'' if number == 1 else 's'}"
    if source is None:
        advice = f"To know, label {tasks} yourself, drawn at random, and give them as gold."
    else:
        sample = f"crowdzoo next {source} --gold-sample {number} --out gold.csv"
        advice = f"To know, label {tasks} yourself: `{sample}` draws them at random. Fill in the column gold, "
        advice += "and make this report again with `--gold gold.csv`."
    return [*sentences, f"{unknown}.", advice]


def further_answers(overall: Figures, source: str | None) -> str:
    """What more answers would bring, and the command that chooses them."""
    if "camps_statistic" in overall:
        return "But two camps of annotators contradict each other: find out which is right before you buy answers."
    if not (number := overall["tasks_to_ask"]):
        return "No task is worth a further answer, if a label put right is worth twenty."
    tasks = "1 task is" if number == 1 else f"{number:,} tasks are"
    command = "" if source is None else f": `crowdzoo next {source} --out batch.csv` chooses the first of them"
    return f"{tasks} worth about {with_range(overall['answers_to_ask'])} further answers{command}."


def gold_of_camps(overall: Figures) -> list[str]:
    """With which of two camps gold agrees, on tasks on which their labels differ; nothing without camps."""
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


def between(overall: Figures, name: str, note: str = "") -> str:
    """The interval of a share in parentheses."""
    low, high = (f"{100 * overall[f'{name}_{end}']:.0f}" for end in ("low", "high"))
    return f"({low} to {high} %{note})"


def camps_by_gold(report: QualityReport, annotations: Annotations, gold: Codes) -> Figures:
    """How many tasks on which the labels of two camps differ have gold, and how often each camp agrees with it.

    Args:
        report: of the annotations.
        annotations: N tasks.
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
        for end, value in zip(("", "_low", "_high"), share_and_ends(right, len(rows)), strict=True):
            figures[f"{camp}_gold{end}"] = value
    return figures


def camp_warning(report: QualityReport, hashed: bool = False) -> list[PageWarning]:
    """The warning that a crowd has two camps, with options that leave one of them out; none without camps.

    Args:
        report: of a crowd.
        hashed: whether names are hashes, which no option takes.
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
    """Tasks that a person shares with the model and other people: the median, or the most where all are too few."""
    return float(np.median(test.people["tasks"])) if test.people.num_rows else test.shared
