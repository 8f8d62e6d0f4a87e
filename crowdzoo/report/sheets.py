"""Tables for running a crowd: annotators with advice and payment due, and tasks to redo with the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.data.crowd_sequences import CrowdSequences, annotations_of
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import FLAGS, SERIOUS, hasty, median_seconds, share_and_ends
from crowdzoo.kinds.quality_words import camps_by_gold
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality import QualityReport, redundancy, worth_asking
from crowdzoo.quality.copies import LEAST_SHARED, SharedTasks, families_of
from crowdzoo.quality.figures import defined, interval, name_column, wilson
from crowdzoo.quality.krippendorff import Alpha
from crowdzoo.quality.settled import WORTH, with_range
from crowdzoo.report.left_out import left_out
from crowdzoo.report.tables import print_table

if TYPE_CHECKING:
    from crowdzoo.aggregation import Aggregation
    from crowdzoo.aggregation.base import Result
    from crowdzoo.data.annotations import Annotations
    from crowdzoo.report.page import ReportPage

SUMS = ("due", "further_answers", "cost")  # columns with totals in the summary
MOST_LEFT_OUT = 20  # annotators; each needs ten fits
FIRST = ("annotator", "flag", "reason", "advice", "annotations", "reliability", "reliability_low", "reliability_high")


def with_sheets(
    report: QualityReport,
    annotations: Annotations,
    aggregation: Aggregation | None = None,
    *,
    gold: Codes | None = None,
    prices: Floats | None = None,
    worth: float | None = None,
    target: float | None = None,
    seed: int = 0,
) -> QualityReport:
    """Add columns with advice to a report's tables of annotators and tasks, and sort them by urgency.

    Annotators with a serious note come first, then the least reliable. Further columns: `flag`, `reason` and `advice`
    (empty without a note); `seconds` (median per answer); `gold` (answers to tasks with gold), `gold_share` (share of
    correct ones) and its interval; `agrees_with` (who agrees most, among annotators who share seven tasks),
    `agrees_share`; `due` (annotations times price); for up to twenty flagged annotators `gain_without` and its interval
    (see `left_out`).

    Tasks that are worth further answers come first, starting with the least settled: `redo` gives the reason,
    `further_answers` the approximate number of answers that settle their label, and `cost` their cost at the mean price
    of annotators without a note. `overall` has the sums of `due`, `further_answers` and `cost` as `total_due` etc.

    Args:
        report: quality report on the annotations and the aggregation.
        annotations: kind classification, R annotators.
        aggregation: a result for them; without it no reliability and no tasks to redo.
        gold: true classes, codes [N], -1 where unknown.
        prices: price per answer of each annotator, [R].
        worth: value of a corrected label, in the unit of the prices; None is that of twenty answers.
        target: required share of settled labels; None redoes all tasks that are worth their answers.
        seed: seed of `left_out`.
    """
    notes = [text.split(",") if text else [] for text in report.annotators["notes"].to_pylist()]
    flagged = np.array([not SERIOUS.isdisjoint(names) for names in notes], bool)
    annotators, number, seconds = annotations.annotator_ids, annotations.num_annotators, median_seconds(annotations)
    people = _people(report.annotators, notes, flagged, None if seconds is None else seconds.tolist())
    if seconds is not None:
        people["seconds"] = defined(seconds, np.isfinite(seconds))
    overall = dict(report.overall)
    if gold is not None:
        if aggregation is not None:
            labelled = (gold >= 0) & (aggregation.annotations_per_task > 0)
            right = int((aggregation.labels == gold)[labelled].sum())
            ends = share_and_ends(right, int(labelled.sum()))
            overall |= {**interval("aggregate_accuracy", *ends), "gold_tasks": int(labelled.sum())}
        overall |= camps_by_gold(report, annotations, gold)
        known = gold[annotations.task_ids] >= 0
        right = known & (gold[annotations.task_ids] == annotations.labels)
        count = np.bincount(annotators[known], minlength=number)
        share = np.bincount(annotators[right], minlength=number) / np.maximum(count, 1)
        people["gold"] = pa.array(count)
        people |= interval("gold_share", *(defined(values, count > 0) for values in (share, *wilson(share, count))))
    people |= _agree_most(annotations)
    if prices is not None:
        people["due"] = pa.array(np.round(prices * np.bincount(annotators, minlength=number), 6))
    tasks = report.tasks
    if aggregation is not None:
        families = families_of(report.annotators["copies"].to_pylist())
        people |= _gains(annotations, aggregation, flagged, seed, families)
        if "settled" in tasks.column_names:  # not if tasks may have several labels
            tasks = _to_redo(report, aggregation.annotations_per_task, flagged, prices, worth, target)
    rest = {name: report.annotators[name] for name in report.annotators.column_names if name not in people}
    table = pa.table({**people, **rest})
    worst = report.annotators["reliability" if aggregation is not None else "agreement"].to_numpy()
    for part in (table, tasks):
        columns = (name for name in SUMS if name in part.column_names)
        overall |= {f"total_{name}": pc.sum(part[name]).as_py() or 0 for name in columns}
    return replace(report, annotators=table.take(np.lexsort((worst, ~flagged))), tasks=tasks, overall=overall)


def page_sheets(
    page: ReportPage, crowd: Annotations | CrowdSequences, result: Result, sure: float | None, price: float | None
) -> QualityReport:
    """Tables of a page for any kind of labels, with the columns `flag`, `reason`, `advice`, `due` and `redo`.

    The table of classes, labels or types is included if the page has one.

    Annotators are in the order of `with_sheets`; tasks to redo come first, in the order of the page.

    Args:
        page: page about the crowd and the result.
        crowd: result of `Reading.read`.
        result: result of an aggregation.
        sure: tasks below are to redo, for kinds that `crowdzoo next` supports; for all kinds tasks with one answer.
            None: of these kinds those whose answers differ most, see `AnswerPage.note`.
        price: of an answer; None is not known.
    """
    numbers = page.numbers
    table = annotations_of(crowd)
    people, tasks = (dict(numbers.tables[name].values) for name in ("annotators", "tasks"))
    notes, overall = people["notes"], {**numbers.summary}
    flagged = np.array([not SERIOUS.isdisjoint(names) for names in notes], bool)
    people["notes"] = [",".join(item) for item in notes]
    if price is not None:
        people["due"] = [round(price * count, 6) for count in people["annotations"]]
        overall["total_due"] = sum(people["due"])
    people = {**_people(pa.table(people), notes, flagged, people.get("seconds")), **people}
    worst = [-1.0 if item is None else item for item in people[numbers.annotator_column]]
    sizes = np.array(tasks["annotations"])
    reasons: Any = tasks.pop("redo", [""] * len(sizes))
    questions = kind_of(numbers.kind).questions
    if sure is not None and questions is not None:
        reasons = np.where(questions.find_sure(result, sure, table), "", f"less sure than {sure:g}")
    why = np.select([sizes == 0, sizes == 1], ["no answer", "one answer"], reasons).tolist()
    order = dict.fromkeys([*(numbers.tables["tasks"].rows or ()), *range(len(why))])
    rows = sorted(order, key=lambda row: not why[row])
    done = pa.table({"task": tasks["task"], "redo": why, **tasks}).take(rows)
    sheet = pa.table(people).take(np.lexsort((np.array(worst), ~flagged)))
    alpha = None if (values := overall.pop("krippendorff_alpha")) is None else Alpha(**values)
    classes = pa.table(numbers.tables["classes"].values if "classes" in numbers.tables else {})
    return QualityReport(overall, alpha, redundancy(table), done, sheet, classes, coincidences=None)


def _people(
    table: pa.Table, notes: list[list[str]], flagged: Flags, seconds: list[float | None] | None
) -> dict[str, Any]:
    """The first columns: the flag with its reason and advice; `seconds` are the median per annotator."""
    rows, haste = table.to_pylist(), {place: [text] for place, text in hasty(seconds).items() if flagged[place]}
    names = [sorted(flags, key=lambda note: note not in SERIOUS) for flags in notes]
    texts = {
        "flag": [", ".join(FLAGS[note].title for note in flags if note in SERIOUS) for flags in names],
        "reason": [
            ", ".join([*(_reason(note, row) for note in flags), *haste.get(place, ())])
            for place, (flags, row) in enumerate(zip(names, rows, strict=True))
        ],
        "advice": ["; ".join(FLAGS[note].describe(1)[1] for note in flags if note in SERIOUS) for flags in names],
    }
    columns = {name: table[name] for name in FIRST if name in table.column_names}
    columns |= {name: pa.array(values, pa.string()) for name, values in texts.items()}
    return {name: columns[name] for name in FIRST if name in columns}


def _reason(note: str, row: dict[str, Any]) -> str:
    """Reason of a note, with figures from the table, or in general words if the table lacks them."""
    try:
        words = FLAGS[note].words.format_map({name: value for name, value in row.items() if value is not None})
    except KeyError:
        words = ""
    return words or FLAGS[note].describe(1)[0]


def _agree_most(annotations: Annotations) -> dict[str, Any]:
    """The annotator that each agrees with most, by the lower end of Wilson's interval."""
    shared = SharedTasks.of(whole_block(annotations), annotations.num_annotators)
    enough = shared.shared >= LEAST_SHARED
    first, second = shared.left[enough], shared.right[enough]
    first, second = np.concatenate([first, second]), np.concatenate([second, first])
    share = np.tile(shared.agreement[enough], 2)
    order = np.argsort(wilson(share, np.tile(shared.shared[enough], 2))[0], kind="stable")
    best = np.full(annotations.num_annotators, -1)
    best[first[order]] = order  # the last one stays
    known = best >= 0
    with_whom = name_column(annotations.annotators).take(defined(np.append(second, 0)[best], known))
    return {"agrees_with": with_whom, "agrees_share": defined(np.append(share, 0.0)[best], known)}


def _gains(
    annotations: Annotations, aggregation: Aggregation, flagged: Flags, seed: int, families: Codes
) -> dict[str, Any]:
    """Gain from leaving out each of the flagged annotators with the most annotations."""
    counts = np.bincount(annotations.annotator_ids, minlength=len(flagged))
    gains = np.full((3, len(flagged)), np.nan)
    for place in sorted(np.flatnonzero(flagged), key=lambda code: -counts[code])[:MOST_LEFT_OUT]:
        alone = np.arange(len(flagged)) == place
        gains[:, place] = left_out(annotations, aggregation.method, alone, seed, families=families) or np.nan
    return interval("gain_without", *(defined(values, np.isfinite(values)) for values in gains))


def _to_redo(
    report: QualityReport,
    sizes: Codes,
    flagged: Flags,
    prices: Floats | None,
    worth: float | None,
    target: float | None,
) -> pa.Table:
    """Table of tasks, those to redo first."""
    settled = report.tasks["settled"].to_numpy()
    further = report.tasks["answers_to_settle"].fill_null(-1).to_numpy()
    price = 1.0
    if prices is not None:
        price = prices[~flagged].mean() if not flagged.all() else prices.mean()
    redo = worth_asking(settled, further, worth=WORTH if worth is None else worth / price, target=target)
    tied = report.tasks["tied"].fill_null(False).to_numpy()
    reasons = np.select([sizes == 0, sizes == 1, tied], ["no answer", "one answer", "tied votes"], "not settled")
    columns: dict[str, Any] = {
        "task": report.tasks["task"],
        "redo": pa.array(np.where(redo, reasons, "").tolist(), pa.string()),
        "further_answers": pa.array(further, pa.int64(), mask=~redo),
    }
    if prices is not None:
        columns["cost"] = pa.array(np.round(further * price, 6), mask=~redo)
    shown = {*report.tasks.column_names} - {*columns, "answers_to_settle"}
    rest = {name: report.tasks[name] for name in report.tasks.column_names if name in shown}
    return pa.table({**columns, **rest}).take(np.lexsort((settled, ~redo)))


def print_sheets(report: QualityReport) -> None:
    """Print the totals of `with_sheets`: payments due, and answers and cost of the tasks to redo."""
    rows, overall = [], report.overall
    if "total_due" in overall:
        rows.append(("due for all annotations", f"{overall['total_due']:,.2f}"))
    if "redo" in report.tasks.column_names:
        to_redo = report.tasks.filter(pc.not_equal(report.tasks["redo"], ""))
        rows.append(("tasks to redo", f"{to_redo.num_rows:,}"))
        if overall.get("total_further_answers"):  # 0 if the value of an answer is unknown
            rows.append(("further answers, about", with_range(overall["total_further_answers"])))
        if overall.get("total_cost"):
            rows.append(("their cost", with_range(overall["total_cost"], 2)))
    if rows:
        print()
        print_table("what is due and what is left", ("", ""), rows)
