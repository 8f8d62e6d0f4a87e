"""page_sheets: the tables of a page, for those who run a crowd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from crowdzoo.kinds.page_parts import COLUMNS, FLAGS
from crowdzoo.kinds.parts import has_part, part_of
from crowdzoo.quality import QualityReport, redundancy
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.report.sheets import people_columns, print_sheets
from crowdzoo.report.tables import print_table

if TYPE_CHECKING:
    from crowdzoo.report.report_page import ReportPage

_CELLS = {"count": "{:,.0f}", "number": "{:.3f}", "share": "{:.3f}", "interval": "{:.3f}"}


def page_sheets(page: ReportPage, crowd: Any, aggregation: Any, sure: float, price: float | None) -> QualityReport:
    """The tables of annotators and tasks of a page, the first rows first, as `with_sheets` has them for classes.

    Annotators with a serious note come first, then those who agree least. Further columns: `flag`, `reason` and
    `advice`, and `due` (annotations by price). Tasks that should be done again come first, in the order of the page;
    `redo` says why.

    Args:
        page: on the crowd and the aggregation.
        crowd: what `Kind.read` gave.
        aggregation: a result for it.
        sure: tasks below are to be done again, where `crowdzoo next` asks about labels of this kind.
        price: of an answer, or None.
    """
    numbers, table = page.numbers, getattr(crowd, "annotations", crowd)
    kind, (annotators, tasks) = numbers.kind, (numbers.tables[name] for name in ("annotators", "tasks"))
    notes = annotators.values["notes"]
    flagged = np.array([any(FLAGS[note].serious for note in each) for each in notes], bool)
    plain = pa.table({**annotators.values, "notes": [",".join(each) for each in notes]})
    people = people_columns(plain, notes, flagged)
    overall = {name: value for name, value in numbers.summary.items() if name != "krippendorff_alpha"}
    if price is not None:
        due = np.round(price * np.array(annotators.values["annotations"]), 6)
        people["due"], overall["total_due"] = pa.array(due), float(due.sum())
    people |= {name: plain[name] for name in plain.column_names if name not in people}
    worst = np.array([each if each is not None else -1.0 for each in annotators.values[numbers.judged]])

    sizes = np.array(tasks.values["annotations"])
    few = [sizes == 0, sizes == 1]
    still = few[0] | few[1]
    if has_part(kind, "questions"):
        still = still | ~part_of(kind, "questions").sure(aggregation, sure, crowd)
    reasons = np.select(few, ["no answer", "one answer"], f"less sure than {sure:g}")
    redo = pa.array(np.where(still, reasons, "").tolist(), pa.string())
    values = {"task": tasks.values["task"], "redo": redo, **tasks.values}
    shown = sorted(dict.fromkeys([*(tasks.shown or ()), *range(len(sizes))]), key=lambda task: not still[task])
    found = numbers.summary["krippendorff_alpha"]
    return QualityReport(
        overall=overall,
        alpha=None if found is None else Alpha(**found),
        redundancy=redundancy(table),
        tasks=pa.table({**values, "redo": redo}).take(shown),
        annotators=pa.table(people).take(np.lexsort((worst, ~flagged))),
        classes=pa.table({}),
        coincidences=None,
    )


def print_page_sheets(page: ReportPage, report: QualityReport, top: int) -> None:
    """Prints the figures of a page, and the first annotators and tasks of its sheets; see `page_sheets`."""
    numbers = page.numbers
    rows = [(title, f"{_cell(value, form)} {beside}".strip()) for title, value, form, beside in numbers.facts]
    print_table("quality", ("", ""), rows)
    for warned in numbers.warnings:
        print(f"note: {warned.about} {warned.finding}: {warned.fix}.")
    for name, title, table in (
        ("annotators", "annotators", report.annotators),
        ("tasks", "tasks to look at", report.tasks),
    ):
        columns = [
            each for each in COLUMNS[numbers.kind, name] if each.key in table.column_names and each.key != "notes"
        ]
        more = {"flag": "flag"} if name == "annotators" else {"redo": "redo"}
        header = [*(each.title for each in columns), *more]
        cells = [[*(_cell(row[each.key], each.form) for each in columns), *(row[key] for key in more)]
                 for row in table.slice(0, top).to_pylist()]  # fmt: skip
        if cells:
            print()
            print_table(title, header, cells)
    print_sheets(report)


def _cell(value: Any, form: str) -> str:
    return "-" if value is None else _CELLS.get(form, "{}").format(value)
