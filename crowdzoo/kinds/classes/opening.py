"""opening: how many labels of a crowd are settled, how many are correct, and how to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdzoo.kinds.page_parts import percent

SAMPLE = 50  # tasks to label


def opening(overall: Mapping[str, Any], source: str | None = None) -> list[str]:
    """The first sentences on labels that were aggregated; commands are in backticks.

    Args:
        overall: of a `QualityReport`; with `aggregate_accuracy`, its interval and `gold_tasks` where there is gold.
        source: file of the annotations and options of reading it, as a shell takes them; None in Python.
    """
    if (settled := overall["settled"]) is None:
        sentences = ["How many labels would stay the same with more answers is not estimated for so many answers."]
    else:
        changing = 100 - round(100 * settled)
        rest = f"the other {changing} %" if changing else "hardly any"
        change = f"more answers from this crowd would change {rest}"
        sentences = [f"{percent(settled)} of the labels are settled {between(overall, 'settled')}: {change}."]
        if changing and source is not None:
            sentences[0] += f" `crowdzoo next {source}` says which tasks are worth it."
    if (correct := overall.get("aggregate_accuracy")) is not None:
        number = overall["gold_tasks"]
        tasks = f"{number:,} task{'' if number == 1 else 's'} with gold"
        share = f"{percent(correct)} of the labels are correct {between(overall, 'aggregate_accuracy')}"
        return [*sentences, f"{share}, as measured on {tasks}."]
    unknown = "How many labels are correct cannot be told from answers alone"
    if "camps_statistic" in overall:
        unknown += ", and here two camps of annotators contradict each other"
    elif (usual := overall["expected_accuracy"]) is not None:
        ends = between(overall, "expected_accuracy", " in nine of ten of them")
        unknown += f"; in comparable crowds about {percent(usual)} were {ends}"
    number = min(SAMPLE, overall["tasks"] - overall["tasks_without_annotations"])
    if source is None:
        advice = f"To know, label {number} tasks yourself, drawn at random, and give them as gold."
    else:
        sample = f"crowdzoo next {source} --gold-sample {number} --out gold.csv"
        advice = f"To know, label {number} tasks yourself: `{sample}` draws them at random. Fill in the column gold, "
        advice += "and make this report again with `--gold gold.csv`."
    return [*sentences, f"{unknown}.", advice]


def between(overall: Mapping[str, Any], name: str, note: str = "") -> str:
    """The interval of a share in parentheses."""
    low, high = (f"{100 * overall[f'{name}_{end}']:.0f}" for end in ("low", "high"))
    return f"({low} to {high} %{note})"
