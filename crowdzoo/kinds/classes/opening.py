"""opening: how many labels of a crowd are settled, how many are correct, and how to know."""

from __future__ import annotations

from crowdzoo.kinds.page_parts import Figures, percent
from crowdzoo.quality.settled import with_range

SAMPLE = 50  # tasks to label


def opening(overall: Figures, source: str | None = None) -> list[str]:
    """The first sentences on labels that were aggregated; commands are in backticks.

    Args:
        overall: of a `QualityReport`; with `aggregate_accuracy`, its interval and `gold_tasks` where there is gold.
        source: file of the annotations and options of reading it, as a shell takes them; None in Python.
    """
    if overall["annotators"] == 1:
        sentences = [
            "All answers are from one annotator: have some tasks answered by others, to see whether they agree."
        ]
    elif (settled := overall["settled"]) is None:
        sentences = ["How many labels would stay the same with more answers is not estimated for so many answers."]
    else:
        stay = "they would stay the same if many more of these annotators answered"
        sentences = [
            f"About {percent(settled)} of the labels are settled {between(overall, 'settled')}: {stay}. "
            + further_answers(overall, source)
        ]
    if (correct := overall.get("aggregate_accuracy")) is not None:
        number = overall["gold_tasks"]
        tasks = f"{number:,} task{'' if number == 1 else 's'} with gold"
        share = f"{percent(correct)} of the labels are correct {between(overall, 'aggregate_accuracy')}"
        return [*sentences, f"{share}, as measured on {tasks}."]
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


def between(overall: Figures, name: str, note: str = "") -> str:
    """The interval of a share in parentheses."""
    low, high = (f"{100 * overall[f'{name}_{end}']:.0f}" for end in ("low", "high"))
    return f"({low} to {high} %{note})"
