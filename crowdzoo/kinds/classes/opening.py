"""opening: how many labels of a crowd are settled, how many are correct, and how to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdzoo.kinds.page_parts import percent

SAMPLE = 50  # tasks to label


def opening(overall: Mapping[str, Any], source: str | None = None) -> list[str]:
    """The first sentences on labels that were aggregated.

    Args:
        overall: of a `QualityReport`; with `aggregate_accuracy`, its interval and `gold_tasks` where there is gold.
        source: file of the annotations and options of reading it, as a shell takes them; None in Python.
    """
    if (settled := overall["settled"]) is None:
        found = ["How many labels more answers would change is not estimated where annotators gave a task several "
                 "labels, or for so many tasks."]  # fmt: skip
    else:
        changing = 100 - round(100 * settled)
        others = f"the other {changing} %" if changing else "hardly any"
        found = [f"{percent(settled)} of the labels are settled {between(overall, 'settled')}: more answers from this "
                 f"crowd would change {others}."]  # fmt: skip
    if (correct := overall.get("aggregate_accuracy")) is not None:
        number = overall["gold_tasks"]
        tasks = f"{number:,} task{'' if number == 1 else 's'} with gold"
        return [*found, f"{percent(correct)} of the labels are correct {between(overall, 'aggregate_accuracy')}, as "
                        f"measured on {tasks}."]  # fmt: skip
    text = "How many are correct cannot be told from answers alone"
    if (usual := overall["expected_accuracy"]) is not None:
        ends = between(overall, "expected_accuracy", " in nine of ten")
        text += f"; in comparable crowds it was about {percent(usual)} {ends}"
    number = min(SAMPLE, overall["tasks"] - overall["tasks_without_annotations"])
    if source is None:
        advice = f"label {number} tasks, drawn at random, yourself, and give them as gold"
    else:
        sample = f"crowdzoo next {source} --gold-sample {number} --out gold.csv"
        advice = (f"label {number} tasks yourself. `{sample}` draws them at random; fill in the column gold, and "
                  "repeat this command with `--gold gold.csv`")  # fmt: skip
    return [*found, f"{text}. To know, {advice}."]


def between(overall: Mapping[str, Any], name: str, more: str = "") -> str:
    """The interval of a share in parentheses."""
    low, high = (f"{100 * overall[f'{name}_{end}']:.0f}" for end in ("low", "high"))
    return f"({low} to {high} %{more})"
