"""class_numbers: what the page of a report says of classes, from the report on quality and an aggregation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.metrics import lost_classes
from crowdzoo.quality import cohen_kappas, coincidence_matrix, sure_tasks
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.report import QualityReport
from crowdzoo.reading.instances.predictions import Predictions
from crowdzoo.report.model_numbers import model_numbers
from crowdzoo.report.page_parts import (
    DIGITS,
    SURE,
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
    percent,
    plain,
    plain_columns,
    serious_notes,
    shares_of_flags,
    warned_of_flags,
)
from crowdzoo.report.quality_tables import replaces, tasks_a_person

__all__ = ["class_numbers"]

MOST_CLASSES = 24  # of a picture of who says what
MOST_CELLS = 60  # of an annotator's confusion matrix
MOST_COUNTED = 10_000_000  # cells of all matrices that are counted without sorting
MOST_VOTES = 20  # of a task, by name
MOST_WARNED = 5  # pairs of classes
MOST_PAIRS = 5_000_000  # of annotations by two annotators, to say who agrees with whom
UNCLEAR = 0.75  # agreement of a pair of classes below which their definition is called unclear
MUCH = 0.1  # share of all disagreement from which a pair of classes is warned of
STANDS_OUT = 1.5  # and how often the share that it would have if all were confused alike
UNEVEN = 0.8  # Gini coefficient of annotations an annotator


def class_numbers(
    report: QualityReport,
    annotations: Annotations,
    aggregation: Aggregation,
    most: int,
    predictions: Predictions | None = None,
    gold: NDArray[np.int64] | None = None,
) -> Numbers:
    """Everything that the page shows of a crowd that names classes.

    Args:
        report: on the quality of the annotations, made with the aggregation.
        annotations: kind classification.
        aggregation: a result for the same annotations.
        most: annotators and tasks that the page shows.
        predictions: of a model, to compare with; None where there is none.
        gold: true classes, -1 where unknown, [N]; None where there are none.
    """
    classes = [str(name) for name in np.asarray(annotations.classes).tolist()]
    beside_people, models = _beside_people(report), {test.model for test in report.replacements}
    annotators, columns = _annotators(report, annotations), _ANNOTATOR_COLUMNS
    if beside_people:
        annotators["source"] = ["model" if str(name) in models else "person" for name in annotators["annotator"]]
        columns = tuple(replace(each, help=_BY_PEOPLE) if each.key == "reliability" else each for each in columns)
    tasks = plain_columns(report.tasks)
    against = model_numbers(annotations, aggregation, predictions, gold)
    pairs, values = _class_pairs(report, classes), {**_values(report, aggregation, annotators), **against.values}
    first = annotators_first(annotators, most)
    tasks_first = _tasks_first(tasks, most, against.listed)
    few_classes = report.coincidences is not None and len(classes) <= MOST_CLASSES
    warned = _warnings(report, annotations, aggregation, annotators, pairs)
    if predictions is not None:
        warned = warned + _lost(predictions, annotations, classes)
    return Numbers(
        kind="classification",
        verdict=_verdict(report, values, pairs, warned),
        warnings=warned,
        values=values,
        facts=_facts(report) + _model_fact(against.model),
        classes=classes,
        coincidences=np.rint(report.coincidences).astype(int).tolist()
        if few_classes and report.coincidences is not None
        else None,
        tables={
            "classes": PageTable(_CLASS_COLUMNS, plain_columns(report.classes)),
            "pairs": PageTable(_PAIR_COLUMNS, pairs),
            "annotators": PageTable(columns, annotators, first, _annotator_details(annotations, aggregation, first)),
            **beside_people,
            "tasks": PageTable(_TASK_COLUMNS, tasks, tasks_first, _task_details(annotations, aggregation, tasks_first)),
            **against.tables,
        },
        summary=report.summary(),
        model=against.model,
        calibration=against.calibration,
    )


_CLASS_COLUMNS = (
    Column("class", "class", "name"),
    Column("annotations", "annotations", "count"),
    Column("share", "share", "share", "Share of all annotations that name the class.", bar=True),
    Column(
        "agreement",
        "agreement",
        "share",
        "If one annotation names the class, how often another one does, too.",
        bar=True,
    ),
)
_PAIR_COLUMNS = (
    Column("first", "class", "name"),
    Column("second", "and class", "name"),
    Column(
        "agreement", "agreement", "share",
        "Of two annotations of a task that both name one of the two classes, how often they name the same.", bar=True,
    ),
    Column("disagreement", "share of disagreement", "share", "Share of all disagreement.", bar=True),
)  # fmt: skip
_ANNOTATOR_COLUMNS: tuple[Column, ...] = (
    Column("annotator", "annotator", "name"),
    Column("source", "source", "name"),
    Column("annotations", "annotations", "count"),
    Column(
        "reliability", "reliability", "interval",
        "Share of the labels that are right, as the others who labelled the same tasks judge it (where the method "
        "learns no confusion matrices: share of equal labels), and its interval of 95 %.",
    ),
    Column("notes", "notes", "flags"),
    Column("agreement", "agreement", "share", "Share of the others' labels of the same tasks that are the same."),
    Column(
        "spammer_score", "spammer score", "number",
        "0: the answer does not depend on the task. 1: the annotator distinguishes all classes. Unreliable below ten "
        "annotations of each class.",
    ),
    Column("top_label", "says most", "name"),
    Column("top_share", "how often", "share", "Share of the annotator's most frequent label."),
    Column("seconds", "seconds", "number", "Median time that an answer took, or that lay between two of them."),
)  # fmt: skip
_BY_PEOPLE = (
    "Share of the labels that are right, as the other people who labelled the same tasks judge it, and its interval of "
    "95 %."
)
_TASK_COLUMNS = (
    Column("task", "task", "name"),
    Column("annotations", "annotations", "count"),
    Column("label", "label", "name", "The aggregated label."),
    Column("probability", "probability", "share", "Of the aggregated label."),
    Column("support", "votes for it", "share", "Share of the votes for the aggregated label."),
    Column("entropy_normalised", "difficulty", "share", "How divided the votes are: 0 all agree, 1 all differ."),
    Column("difficulty", "difficulty by method", "number", "What the method of aggregation says."),
)
_MODEL_COLUMNS = (
    Column("model", "model", "name"),
    Column("people", "people", "count", "With whom it is compared."),
    Column("tasks", "tasks a person", "count", "Median of those that the person, the model and other people labelled."),
    Column("winning_rate", "winning rate", "share", "Share of the people whom it may replace; it passes from 50 % on."),
    Column(
        "advantage", "advantage", "share", "Share of tasks on which it agrees with other people at least as well as "
        "the person does.",
    ),
    Column(
        "epsilon", "epsilon", "number", "How much less often than a person a model may agree with other people, as its "
        "labels cost less. The verdict depends on it: 0.2 beside experts, 0.15 trained people, 0.1 crowd workers.",
    ),
    Column(
        "verdict", "may replace people", "name", "By the alternative annotator test. Too few tasks: it cannot be "
        "decided, which is not a no.",
    ),
)  # fmt: skip
_MODEL_CLASS_COLUMNS = (
    Column("model", "model", "name"),
    Column("class", "class", "name"),
    Column("found", "found", "share", "Of the labels by people that name the class, those on which the model agrees.",
           bar=True),
    Column("confirmed", "confirmed", "share", "Of the model's labels that name the class, those on which a person "
           "agrees.", bar=True),
    Column("people", "two people", "share", "If one person names the class, how often another one does, too.",
           bar=True),
)  # fmt: skip


# === Tables ===


def _beside_people(report: QualityReport) -> dict[str, PageTable]:
    """Models beside people; empty where no models are named."""
    if report.agreements is None:
        return {}
    tests = report.replacements
    found: dict[str, Any] = {
        "model": [test.model for test in tests],
        "people": [test.people.num_rows for test in tests],
        "tasks": [round(tasks_a_person(test)) for test in tests],
        **{
            name: plain(np.array([getattr(test, name) for test in tests]))
            for name in ("winning_rate", "advantage", "epsilon")
        },
        "verdict": [replaces(test) for test in tests],
    }
    return {
        "models": PageTable(_MODEL_COLUMNS, found),
        "model_classes": PageTable(_MODEL_CLASS_COLUMNS, plain_columns(report.agreements)),
    }


def _annotators(report: QualityReport, annotations: Annotations) -> dict[str, Any]:
    """Values of the table."""
    found = plain_columns(report.annotators)
    if (seconds := median_seconds(annotations)) is not None:
        found["seconds"] = plain(seconds)
    found["notes"] = [notes.split(",") if notes else [] for notes in found["notes"]]
    return found


def _tasks_first(tasks: dict[str, Any], most: int, also: list[int]) -> list[int]:
    """The tasks that the page shows, also those of `also`: the most divided first, then the least certain label."""
    entropy = np.array([0.0 if value is None else value for value in tasks["entropy"]])
    order: list[int] = np.lexsort((np.array(tasks["probability"]), -entropy)).tolist()
    if len(order) <= most:
        return order
    first = order[: most - len(also)]
    return first + sorted({*also} - {*first}, key=also.index)


def _class_pairs(report: QualityReport, classes: list[str]) -> dict[str, Any]:
    """Pairs of classes that are confused, the largest share of the disagreement first."""
    found: dict[str, list[Any]] = {"first": [], "second": [], "agreement": [], "disagreement": [], "pairs": []}
    if report.coincidences is None:
        return found
    counts = report.coincidences
    total = counts.sum() - np.trace(counts)
    one, other = np.triu_indices(len(classes), 1)
    between = 2 * counts[one, other]
    for place in np.argsort(-between, kind="stable").tolist():
        if between[place] <= 0 or len(found["first"]) == 100:
            break
        both = counts[one[place], one[place]] + counts[other[place], other[place]]
        found["first"].append(classes[one[place]])
        found["second"].append(classes[other[place]])
        found["agreement"].append(round(float(both / (both + between[place])), DIGITS))
        found["disagreement"].append(round(float(between[place] / total), DIGITS))
        found["pairs"].append(round(float(between[place]), DIGITS))
    return found


def _annotator_details(annotations: Annotations, aggregation: Aggregation, shown: list[int]) -> list[dict[str, Any]]:
    """Of the annotators shown: what they say where the aggregate says something, and with whom they agree."""
    number, size = annotations.num_annotators, annotations.num_classes
    place = np.full(number, -1)
    place[shown] = np.arange(len(shown))
    rows = np.flatnonzero(place[annotations.annotator_ids] >= 0)
    mine = annotations.select_rows(rows)
    cell = (place[mine.annotator_ids] * size + aggregation.labels[mine.task_ids]) * size + mine.labels
    if len(shown) * size * size <= MOST_COUNTED:
        every = np.bincount(cell)
        cells = np.flatnonzero(every)
        counts = every[cells]
    else:
        cells, counts = np.unique(cell, return_counts=True)
    details: list[dict[str, Any]] = [{"confusion": [], "peers": []} for _ in shown]
    for index in np.argsort(-counts, kind="stable").tolist():
        who, pair = divmod(int(cells[index]), size * size)
        if len(details[who]["confusion"]) < MOST_CELLS:
            details[who]["confusion"].append([*divmod(pair, size), int(counts[index])])
    if int((mine.redundancy * (mine.redundancy - 1) // 2).sum()) <= MOST_PAIRS:
        _add_peers(details, mine, place)
    return details


def _add_peers(details: list[dict[str, Any]], mine: Annotations, place: NDArray[np.int64]) -> None:
    """Adds the three with whom each annotator agrees most, and the three with whom least, beyond chance."""
    codes = {name: code for code, name in enumerate(mine.annotators.tolist())}
    table = cohen_kappas(mine)
    table = table.filter(pc.and_(pc.greater_equal(table["tasks"], FEW), pc.is_valid(table["kappa"])))
    found: list[list[tuple[float, str, int]]] = [[] for _ in details]
    for row in table.to_pylist():
        for one, other in (("first", "second"), ("second", "first")):
            peer = (round(row["kappa"], 3), str(row[other]), row["tasks"])
            found[place[codes[row[one]]]].append(peer)
    for detail, peers in zip(details, found, strict=True):
        peers.sort(key=lambda peer: -peer[0])
        detail["peers"] = [list(peer) for peer in (peers if len(peers) <= 6 else [*peers[:3], *peers[-3:]])]


def _task_details(annotations: Annotations, aggregation: Aggregation, shown: list[int]) -> list[dict[str, Any]]:
    """Of the tasks shown: who said what, and the probabilities of the classes."""
    who, said = annotations.padded(shown)
    names = annotations.annotators.tolist()
    details = []
    for row, task in enumerate(shown):
        voters = np.flatnonzero(who[row] >= 0)
        codes, counts = np.unique(said[row][voters], return_counts=True)
        posterior = aggregation.posteriors[task]
        likely = [code for code in np.argsort(-posterior, kind="stable")[:5].tolist() if posterior[code] >= 0.005]
        details.append(
            {
                "votes": sorted(([code, count] for code, count in zip(codes.tolist(), counts.tolist(), strict=True)),
                    key=lambda vote: -vote[1])[:MOST_VOTES],
                "voters": [[str(names[who[row, one]]), int(said[row, one])] for one in voters[:MOST_VOTES].tolist()],
                "posterior": [[code, round(float(posterior[code]), 3)] for code in likely],
            }
        )  # fmt: skip
    return details


# === Words ===


def _values(report: QualityReport, aggregation: Aggregation, annotators: dict[str, Any]) -> dict[str, float | None]:
    overall = report.overall
    labelled = overall["tasks"] - overall["tasks_without_annotations"]
    return {
        **alpha_values(report.alpha),
        "agreement": overall["agreement"],
        "fleiss_kappa": overall["fleiss_kappa"],
        "annotations": overall["annotations"],
        "tasks": overall["tasks"],
        "annotators": overall["annotators"],
        "annotations_per_task": report.redundancy.tasks.mean,
        "effective_votes": overall["effective_votes"],
        "tasks_with_one_share": overall["tasks_with_one"] / max(labelled, 1),
        "tasks_tied_share": overall["tasks_tied"] / max(labelled, 1),
        "sure_share": float(sure_tasks(aggregation).sum()) / labelled if labelled else None,
        "rows_left_out": overall["rows_left_out"],
        **shares_of_flags(annotators),
    }


def _facts(report: QualityReport) -> list[list[Any]]:
    overall, spread = report.overall, report.redundancy
    median = None if spread.annotators.quantiles is None else spread.annotators.quantiles[2]
    alpha = report.alpha
    return [
        ["annotations", overall["annotations"], "count", ""],
        ["tasks", overall["tasks"], "count", ""],
        ["annotators", overall["annotators"], "count", ""],
        ["classes", overall["classes"], "count", ""],
        [
            "Krippendorff's alpha", None if alpha is None else alpha.value, "number",
            "" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}",
        ],
        ["agreement of two annotations", overall["agreement"], "share", ""],
        ["annotations a task", spread.tasks.mean, "number", ""],
        [
            "worth independent ones", overall["effective_votes"], "number",
            "" if overall["effective_votes_low"] is None
            else f"{overall['effective_votes_low']:.2f} to {overall['effective_votes_high']:.2f}",
        ],
        ["annotations an annotator, median", median, "count", ""],
        ["tasks with one annotation", overall["tasks_with_one"], "count", ""],
        ["tasks with tied votes", overall["tasks_tied"], "count", ""],
    ]  # fmt: skip


def _model_fact(model: dict[str, Any] | None) -> list[list[Any]]:
    if model is None or model["agreement"] is None:
        return []
    interval = f"{percent(model['agreement_low'])} to {percent(model['agreement_high'])}"
    return [["tasks on which the model agrees", model["agreement"], "share", interval]]


def _verdict(
    report: QualityReport, values: dict[str, float | None], pairs: dict[str, Any], warned: list[Warned]
) -> list[str]:
    overall, mean = report.overall, report.redundancy.tasks.mean
    agreement, worth, sure = overall["agreement"], overall["effective_votes"], values["sure_share"]
    start = "" if agreement is None else f"Two annotators of a task agree in {percent(agreement)} of cases; "
    second = f"A task has {mean or 0:.3g} annotation{'' if mean == 1 else 's'} on average"
    if worth is not None and mean is not None and worth < mean:
        second += f", which are worth {worth:.3g} independent ones"
    if sure is not None:
        known = overall["tasks"] - overall["tasks_without_annotations"]
        of_tasks = f"{percent(sure)} of the tasks ({round(sure * known):,} of {known:,})"
        second += f"; {overall['aggregation']} is sure ({percent(SURE)} or more) of the label of {of_tasks}"
    if (right := values.get("aggregate_accuracy")) is not None:
        second += f"; {percent(right)} of the labels with gold are right"
    parts = []
    about = [f"{first} / {second}" for first, second in zip(pairs["first"], pairs["second"], strict=True)]
    if unclear := [each.about for each in warned if each.key == "definition"]:
        place = about.index(unclear[0])
        pair = f"the classes {pairs['first'][place]} and {pairs['second'][place]}"
        parts.append(f"{pair}, with {percent(pairs['disagreement'][place])} of all disagreement")
    none = "No annotator has to be checked, and no pair of classes stands out."
    third = look_first(warned, int(values["noted_annotators"] or 0), parts, none)
    return [alpha_sentence(report.alpha, start), f"{second}.", third]


def _warnings(
    report: QualityReport,
    annotations: Annotations,
    aggregation: Aggregation,
    annotators: dict[str, Any],
    pairs: dict[str, Any],
) -> list[Warned]:
    overall, alpha, found = report.overall, report.alpha, []
    found += basic_warnings(alpha, overall, aggregation.method, aggregation.converged)
    found += [noted(note) for note in dict.fromkeys((*aggregation.notes, *report.notes))]
    found += _unclear(report, annotations, annotators, pairs)
    found += warned_of_flags(annotators, len(annotations))
    gini = report.redundancy.annotators.gini
    if gini is not None and gini > UNEVEN:
        finding = f"a few made most annotations (Gini {gini:.2f}), so their errors are the errors of the data"
        found.append(Warned(False, "annotators", finding, "check the most active ones first", "annotators"))
    return sorted(found, key=lambda warned: not warned.serious)


def _lost(predictions: Predictions, annotations: Annotations, classes: list[str]) -> list[Warned]:
    """Warnings of classes that the model never gives."""
    predicted = predictions.labels[(annotations.redundancy > 0) & (predictions.labels >= 0)]
    finding = "a fair share of the votes is for it, and the model gives it to no task"
    fix = "train the model on the votes first (majority_epochs: 5 of its method), or longer"
    lost = lost_classes(predicted, annotations.labels, annotations.num_classes)
    return [Warned(False, classes[code], finding, fix, "model_pairs") for code in lost]


def _unclear(
    report: QualityReport, annotations: Annotations, annotators: dict[str, Any], pairs: dict[str, Any]
) -> list[Warned]:
    """Warnings of pairs of classes that the crowd confuses: not one annotator alone, nor those who are named."""
    names = [str(name) for name in report.classes["class"].to_pylist()]
    shares = dict(zip(names, report.classes["agreement"].to_pylist(), strict=True))
    found: list[Warned] = []
    if len(names) < 3:  # two classes are confused or not: that is what agreement says
        return found
    keys = ("first", "second", "agreement", "disagreement")
    rows = [row for row in zip(*(pairs[key] for key in keys), strict=True) if row[2] < UNCLEAR and row[3] >= MUCH]
    if not rows:
        return found
    named = np.array(serious_notes(annotators), bool)
    others = annotations.select_rows(~named[annotations.annotator_ids])
    for first, second, agreement, _ in rows:
        one, other = names.index(first), names.index(second)
        if len(found) < MOST_WARNED and _shared(others, one, other):
            least = min((first, second), key=lambda name: shares[name])
            between = f"{percent(agreement)} agreement between the two, {percent(shares[least])} on {least}"
            fix = "say in the instructions what tells them apart, with examples; or merge them"
            about, finding = f"{first} / {second}", f"the definition is unclear; {between}"
            found.append(Warned(False, about, finding, fix, "pairs", "definition"))
    return found


def _shared(annotations: Annotations, one: int, other: int) -> bool:
    """Whether a pair of classes is confused more than others are, also without the annotator who confuses it most."""
    tasks, who, labels = annotations.task_ids, annotations.annotator_ids, annotations.labels
    votes = [np.bincount(tasks, labels == code, annotations.num_tasks)[tasks] for code in (one, other)]
    confused = np.bincount(who, np.select([labels == one, labels == other], votes[::-1], 0.0))
    without = annotations.select_rows(who != confused.argmax()) if len(confused) else annotations
    for part in (annotations, without):
        if not (part.redundancy > 1).any():
            return False
        matrix = coincidence_matrix(part)
        margins = matrix.sum(axis=1)
        same, apart = matrix[one, one] + matrix[other, other], 2 * matrix[one, other]
        # of all disagreement, the pair's part if disagreements were drawn by the classes' shares
        part_of_pair = 2 * margins[one] * margins[other] / max(margins.sum() ** 2 - (margins**2).sum(), 1e-12)
        usual = part_of_pair * (matrix.sum() - np.trace(matrix))
        if apart <= 0 or same / (same + apart) >= UNCLEAR or apart < STANDS_OUT * usual:
            return False
    return True
