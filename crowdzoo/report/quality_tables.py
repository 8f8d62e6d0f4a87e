"""Text tables of a quality report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import FLAGS, SERIOUS
from crowdzoo.kinds.quality_words import camp_warning, opening, replaces, tasks_a_person
from crowdzoo.process import is_reported
from crowdzoo.quality.rates import LEAST, SEEN
from crowdzoo.report.tables import print_table

if TYPE_CHECKING:
    from crowdzoo.quality import AlternativeAnnotator, QualityReport, Rate
    from crowdzoo.report.page import ReportPage

MOST_CLASSES = 20
MOST_NEEDED = 10_000  # tasks per person
MOST_AGREEMENTS = 60  # rows, one per model and class


def print_quality(report: QualityReport, top: int = 5, source: str | None = None) -> None:
    """Print the overall figures, the classes, and the annotators and tasks to check first.

    Annotators are those flagged by `crowdzoo report`, with the same notes, most active first. Tasks with the most
    divided votes come first, among them those with the least certain answer.

    Args:
        report: result of `crowdzoo.quality.quality_report`.
        top: number of annotators and tasks to print.
        source: see `opening`.
    """
    if report.overall["aggregation"] is not None:
        print("\n".join(opening(report.overall, source)) + "\n")
    print_table("quality", ("", ""), _overall(report))
    for note in report.notes:
        if not is_reported(note):
            print(f"note: {note}")
    for warning in camp_warning(report):
        print(f"note: {warning.about} {warning.finding}: {warning.fix}.")
    if report.alpha is None:
        print("No alpha or kappa: no two annotations of one task, or all that are there hold the same label.")
    cut = report.classes.num_rows > MOST_CLASSES
    title = f"the {MOST_CLASSES} most frequent of {report.classes.num_rows:,} classes" if cut else "classes"
    _print_list(title, _sort(report.classes, [("annotations", "descending")], MOST_CLASSES))
    if not top:
        return
    table = report.annotators
    notes = [[FLAGS[note].title for note in text.split(",") if note in SERIOUS] for text in table["notes"].to_pylist()]
    names = ("annotator", "annotations", "agreement", "reliability", "spammer_score", "top_share")
    table = table.select([name for name in names if name in table.column_names])
    table = table.append_column("notes", pa.array([", ".join(titles) for titles in notes], pa.string()))
    table = _sort(table.filter(pc.not_equal(table["notes"], "")), [("annotations", "descending")], top)
    _print_list("annotators to check", table)

    if report.camps is not None:
        _print_list("tasks on which the camps differ", report.camps[:top])
    table = report.tasks
    names = ("task", "annotations", "labels", "entropy", "label", "probability")
    keys = [("entropy", "descending"), ("annotations", "descending")]
    if "probability" in table.column_names:
        keys.insert(1, ("probability", "ascending"))
    table = table.filter(pc.greater(table["entropy"], 0))
    table = _sort(table.select([name for name in names if name in table.column_names]), keys, top)
    _print_list("tasks to look at: most divided votes", table)


def print_page(page: ReportPage, report: QualityReport, top: int) -> None:
    """Print the figures and warnings of a page, and the first rows of its sheets; see `page_sheets`."""
    numbers = page.numbers
    columns = kind_of(numbers.kind).page.own_columns
    print_table(
        "quality", ("", ""), [(name, f"{_cell(value)} {remark}") for name, value, _, remark, _ in numbers.facts]
    )
    for warning in numbers.warnings:
        print(f"note: {warning.about} {warning.finding}: {warning.fix}.")
    if report.classes.num_columns:
        table = _sort(report.classes, [("annotations", "descending")], MOST_CLASSES)
        titles = {column.key: column.title for column in columns["classes"] if column.key in table.column_names}
        _print_list(f"{titles['class']}s", table.select([*titles]).rename_columns([*titles.values()]))
    for title, first, table in (("annotators", "flag", report.annotators), ("tasks", "redo", report.tasks)):
        keys = (column.key for column in columns[title] if column.key in table.column_names)
        _print_list(title, table.select([*(name for name in keys if name not in ("notes", first)), first])[:top])


def print_replacements(tests: Sequence[AlternativeAnnotator]) -> None:
    """Print the result of the alternative annotator test for each model, and explain its columns.

    Args:
        tests: result of `crowdzoo.quality.alternative_annotator_test`.
    """
    rows = []
    for test in tests:
        counts = f"{test.people.num_rows:,}", f"{tasks_a_person(test):,.0f}"
        shares = _number(test.winning_rate), _number(test.advantage), f"{test.epsilon:g}"
        rows.append((test.model, *counts, *shares, replaces(test), _needed_tasks(test)))
    shares = "winning rate", "advantage", "epsilon"
    header = ("model", "people", "tasks per person", *shares, "may replace", "tasks that would decide")
    print_table("models in the place of people (alternative annotator test)", header, rows)
    verdicts = {replaces(test) for test in tests}
    print(_COLUMNS + "".join(text for verdict, text in _UNDECIDED.items() if verdict in verdicts), end="")


_COLUMNS = """\
winning rate: share of the people whom the model may replace; it passes from .5 on.
advantage: share of tasks on which it agrees with other people at least as well as the one left out does.
epsilon: how much less often than a person a model may agree with other people, because its labels cost less.
The verdict depends on it (--epsilon): .2 next to experts (default), .15 trained people, .1 crowd workers.
"""
_UNDECIDED = {
    "too few tasks": """\
too few tasks: it cannot be decided, which is not a no. The last column has about how many tasks per person
would decide, if the model does as well on more of them; 30 is the least that is tested.
""",
    "too few people": "too few people: no task of the model was labelled by two people, so a person cannot be compared "
    "with it.\n",
}


def print_rate(rate: Rate, of: str) -> None:
    """Print a rate.

    Args:
        rate: result of `crowdzoo.quality.rate`.
        of: classes that are counted, or "mean".
    """
    rows = [
        (f"people alone, {rate.num_labelled:,} tasks", str(rate.people)),
        (f"with {rate.num_judges:,} models, {rate.num_tasks:,} tasks", str(rate)),
        ("as much as people alone tell with", f"{rate.worth:,.0f} tasks"),
    ]
    print_table("mean" if of == "mean" else f"rate of {of}", ("", ""), rows if rate.num_judges else rows[:1])
    if not rate.num_judges:
        print(
            f"Models do not count: they do not help here, or people labelled too little ({LEAST} tasks are needed, of "
            f"which {SEEN} pass and {SEEN} do not)."
        )


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


def _needed_tasks(test: AlternativeAnnotator) -> str:
    """Approximate number of tasks per person needed for a decision, with two digits."""
    if test.decided or not test.shared:
        return "-"
    if not test.people.num_rows:
        return "30 or more"
    needed = max(test.tasks_needed, float(np.median(test.people["tasks"])) + 1)
    return f"over {MOST_NEEDED:,}" if needed > MOST_NEEDED else f"{float(f'{needed:.2g}'):,.0f}"


def print_class_agreement(table: pa.Table) -> None:
    """Print how often each model agrees with people, by class.

    Args:
        table: result of `crowdzoo.quality.class_agreement`.
    """
    rows = [[_cell(value) for value in row.values()] for row in table.slice(0, MOST_AGREEMENTS).to_pylist()]
    rest = "" if table.num_rows <= MOST_AGREEMENTS else f", the first {MOST_AGREEMENTS} of {table.num_rows:,} rows"
    header = ("model", "class", "said by people", "said by model", "found", "confirmed", "people among themselves")
    print_table(f"agreement of models with people{rest}", header, rows)


def _overall(report: QualityReport) -> list[tuple[str, str]]:
    overall, spread = report.overall, report.redundancy
    left_out = [("rows left out", f"{overall['rows_left_out']:,}")] if overall["rows_left_out"] else []
    median = None if spread.annotators.quantiles is None else spread.annotators.quantiles[2]
    metric = "" if report.alpha is None else f", {report.alpha.metric}"
    return [
        ("annotations", f"{overall['annotations']:,}"),
        *left_out,
        ("tasks", f"{overall['tasks']:,}"),
        ("annotators", f"{overall['annotators']:,}"),
        ("annotations per task", _figure(spread.tasks.mean, 2)),
        (
            "annotations per task, worth independent ones",
            _figure(overall["effective_votes"], 2) + _interval(overall, "effective_votes"),
        ),
        ("annotations per annotator, median", _figure(median, 0)),
        ("annotations per annotator, Gini", _figure(spread.annotators.gini)),
        ("tasks without annotations", f"{overall['tasks_without_annotations']:,}"),
        ("tasks with one annotation", f"{overall['tasks_with_one']:,}"),
        ("tasks with tied votes", f"{overall['tasks_tied']:,}"),
        ("agreement of two annotations", _figure(overall["agreement"])),
        (f"Krippendorff's alpha{metric}", "-" if report.alpha is None else str(report.alpha)),
        ("Fleiss' kappa", _figure(overall["fleiss_kappa"])),
        ("Gwet's AC1", _figure(overall["gwet_ac1"]) + _interval(overall, "gwet_ac1", 3)),
        ("entropy of a task's votes (0: all agree)", _figure(overall["mean_entropy"])),
    ]


def _sort(table: pa.Table, keys: list[tuple[str, str]], number: int) -> pa.Table:
    """The first rows in the order of the keys; classes keep their order if all are shown."""
    if "class" in table.column_names and table.num_rows <= number:
        return table
    return table.take(pc.sort_indices(table, sort_keys=keys)[:number])


def _print_list(title: str, table: pa.Table) -> None:
    if table.num_rows:
        print()
        cells = [[_cell(value) for value in row.values()] for row in table.to_pylist()]
        print_table(title, [name.replace("_", " ") for name in table.column_names], cells)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, float):
        return _figure(value)
    return str(value)


def _figure(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _interval(overall: dict[str, Any], name: str, digits: int = 2) -> str:
    low, high = overall[f"{name}_low"], overall[f"{name}_high"]
    return "" if low is None else f" ({low:.{digits}f} to {high:.{digits}f})"
