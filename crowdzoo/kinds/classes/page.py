"""ClassPage: page of a report on classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION
from crowdzoo.errors import DataError
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.classes.learning_curve import learning_curve
from crowdzoo.kinds.classes.model_numbers import model_numbers
from crowdzoo.kinds.page import MOST_VOTES, KindPage
from crowdzoo.kinds.page_parts import Details, Figures, PageTable, PageWarning, percent, plain, read_columns, warning
from crowdzoo.kinds.quality_words import MOST_WARNED, camp_warning, camps_by_gold, opening, replaces, tasks_a_person
from crowdzoo.metrics import lost_classes
from crowdzoo.quality import coincidence_matrix, drift, quality_report
from crowdzoo.reading.instances.predictions import Predictions

MOST_CLASSES = 24  # in the figure of coincidences
MOST_CELLS = 60  # shown of an annotator's confusion matrix
STANDS_OUT = 1.5  # ratio of a pair's share to that expected if all classes were confused alike, from which to warn
UNEVEN = 0.8  # Gini coefficient of annotations per annotator

_BY_PEOPLE = (
    "Share of the labels that are right, as the other people who labelled the same tasks judge it, and its "
    "interval of 95 %."
)


class ClassPage(KindPage):
    """Page of a report on classes."""

    kind, labels, subject = "classification", CLASSIFICATION, "classes"
    own_columns = read_columns(__package__)
    metrics = ("nominal", "ordinal", "interval", "ratio")
    own_values = (
        "agreement", "fleiss_kappa", "gwet_ac1", "effective_votes", "tasks_tied_share", "settled", "settled_low",
        "settled_high", "expected_accuracy", "expected_accuracy_low", "expected_accuracy_high", "model_agreement",
        "aggregate_accuracy", "aggregate_ece", "model_accuracy", "model_ece",
    )  # fmt: skip
    calm = "No annotator has to be checked, and no pair of classes is often confused."

    def check(self) -> None:
        """Reject codes that do not match the tasks or classes."""
        table, settings = self.table, self.settings
        if not isinstance(settings.predictions, Predictions | None):
            raise DataError(
                "predictions: classes need a probability. Read them with crowdzoo.instances.read_predictions."
            )
        predicted = None if settings.predictions is None else settings.predictions.labels
        for name, codes in (("predictions", predicted), ("gold", settings.gold)):
            if codes is None:
                continue
            if np.shape(codes) != (table.num_tasks,):
                of_each = f"give one class for each of the {table.num_tasks:,} tasks"
                raise DataError(f"{name}: {of_each}, got shape {np.shape(codes)}.")
            if len(wrong := np.flatnonzero((codes < -1) | (codes >= table.num_classes))):
                raise DataError(
                    f"{name}: place {wrong[0]:,} holds {codes[wrong[0]]}; codes of the {table.num_classes} classes are "
                    f"0 to {table.num_classes - 1}, and -1 is unknown."
                )

    def measure(self) -> None:
        """See `KindPage.measure`."""
        table, settings, result = self.table, self.settings, self.aggregation
        options = {**settings.sampling, "models": settings.models, "epsilon": settings.epsilon}
        self.report = report = quality_report(table, result, metric=self.metric, **options)
        self.alpha, self.overall = report.alpha, dict(report.overall)
        self.against = model_numbers(table, result, settings.predictions, settings.gold)
        self.overall |= {
            "annotations_per_task": report.redundancy.tasks.mean,
            "tasks_tied_share": self.overall["tasks_tied"] / self.labelled,
            **self.against.values,
        }
        if (calibration := self.against.calibration) is not None:
            self.overall["gold_tasks"] = calibration["tasks"]
            for end in ("accuracy_low", "accuracy_high"):
                self.overall[f"aggregate_{end}"] = calibration["aggregated"][end]
            assert settings.gold is not None
            self.overall |= camps_by_gold(report, table, settings.gold)
        if (low := self.overall["effective_votes_low"]) is not None:
            self.remarks["effective_votes"] = f"{low:.2f} to {self.overall['effective_votes_high']:.2f}"
        if (model := self.against.model) is not None and model["agreement"] is not None:
            ends = (percent(model[f"agreement_{end}"]) for end in ("low", "high"))
            self.remarks["model_agreement"] = " to ".join(ends)
        else:
            self.hidden = {"model_agreement"}
        if report.camps is not None:
            self.hidden.add("reliability")  # one camp would be judged by the other
        self.classes = [str(name) for name in np.asarray(table.classes).tolist()]
        counts = report.coincidences
        self.pairs = parts.confused_pairs(np.zeros((1, 1)) if counts is None else counts, self.classes)
        self.annotators, self.tasks = parts.plain_columns(report.annotators), parts.plain_columns(report.tasks)
        self.annotators["notes"] = [notes.split(",") if notes else [] for notes in self.annotators["notes"]]
        if (seconds := parts.median_seconds(table)) is not None:
            self.annotators["seconds"] = plain(seconds)
        if report.agreements is not None:
            models = {test.model for test in report.replacements}
            self.annotators["source"] = ["model" if name in models else "person" for name in self.names]
            self.overrides = {"reliability": {"help": _BY_PEOPLE}}
        # most divided votes first, then least certain label
        entropy = np.array([value or 0.0 for value in self.tasks["entropy"]])
        order: list[int] = np.lexsort((np.array(self.tasks["probability"]), -entropy)).tolist()
        also = self.against.listed if len(order) > settings.most else []
        first = order[: settings.most - len(also)]
        self.rows = first + sorted({*also} - {*first}, key=also.index)
        few = counts is not None and len(self.classes) <= MOST_CLASSES
        self.extras = {
            "classes": self.classes,
            "coincidences": np.rint(counts).astype(int).tolist() if few else None,
            "model": self.against.model,
            "calibration": self.against.calibration,
            "curve": learning_curve(table, settings.gold, draws=settings.curve, seed=settings.seed),
        }

    def tables(self) -> dict[str, PageTable]:
        """See `KindPage.tables`."""
        tables, models = super().tables(), {}
        camps = self.report.camps
        if self.report.agreements is not None:
            tests = self.report.replacements
            figures = ("winning_rate", "advantage", "epsilon")
            values: dict[str, Any] = {
                "model": [test.model for test in tests],
                "people": [test.people.num_rows for test in tests],
                "tasks": [round(tasks_a_person(test)) for test in tests],
                **{name: plain(np.array([getattr(test, name) for test in tests])) for name in figures},
                "verdict": [replaces(test) for test in tests],
            }
            of_classes = parts.plain_columns(self.report.agreements)
            models = {
                "models": self.table_of("models", values),
                "model_classes": self.table_of("model_classes", of_classes),
            }
        return {
            "classes": self.table_of("classes", parts.plain_columns(self.report.classes)),
            "pairs": self.table_of("pairs", self.pairs),
            "annotators": tables["annotators"],
            **({} if camps is None else {"camps": self.table_of("camps", parts.plain_columns(camps))}),
            **self.over_time(),
            **models,
            "tasks": tables["tasks"],
            **{name: self.table_of(name, *table) for name, table in self.against.tables.items()},
        }

    def over_time(self) -> dict[str, PageTable]:
        """Table of periods, annotators whose agreement changes first; none without timestamps."""
        table = drift(self.table)
        if not table.num_rows:
            return {}
        columns = parts.plain_columns(table)
        columns["annotator"] = [self.names[place] for place in columns["annotator"]]
        for name in ("start", "end"):
            days = np.array(columns[name]).astype("datetime64[s]").astype("datetime64[D]")
            columns[name] = days.astype(str).tolist()
        order = np.argsort(~np.array(columns["changes"]), kind="stable").tolist()[: self.settings.most]
        return {"periods": self.table_of("periods", columns, order)}

    def summary(self) -> Figures:
        """See `KindPage.summary`."""
        return self.report.summary()

    def annotator_details(self, codes: list[int]) -> Details:
        """Confusion matrix of each annotator against the aggregate."""
        size, annotators = self.table.num_classes, self.table.annotator_ids
        cell = (annotators * size + self.aggregation.labels[self.table.task_ids]) * size + self.table.labels
        cells, counts = np.unique(cell[np.isin(annotators, codes)], return_counts=True)
        confusions: dict[int, list[list[int]]] = {code: [] for code in codes}
        for place in np.argsort(-counts, kind="stable").tolist():
            owner, pair = divmod(int(cells[place]), size * size)
            confusions[owner].append([*divmod(pair, size), int(counts[place])])
        return [{"confusion": cells[:MOST_CELLS]} for cells in confusions.values()]

    def task_details(self) -> Details:
        """Annotators' votes, and the probabilities of the classes."""
        _, labels = self.table.padded(self.rows)
        for task, row, voters in zip(self.rows, labels, self.voters(int), strict=True):
            votes = np.stack(np.unique(row[row >= 0], return_counts=True), axis=1).tolist()
            posterior = self.aggregation.posteriors[task]
            likely = [code for code in np.argsort(-posterior, kind="stable")[:5].tolist() if posterior[code] >= 0.005]
            most = sorted(votes, key=lambda vote: -vote[1])[:MOST_VOTES]
            shares = [[code, round(float(posterior[code]), 3)] for code in likely]
            yield {"votes": most, "voters": voters, "posterior": shares}

    # === Words ===

    def headline(self) -> str:
        """See `KindPage.headline`."""
        return opening(self.overall, self.settings.source)[0]

    def actions(self) -> list[str]:
        """See `KindPage.actions`."""
        return opening(self.overall, self.settings.source)[1:]

    def background(self) -> str:
        """See `KindPage.background`."""
        if self.alpha is None:
            return "Agreement cannot be measured, because annotators share no tasks or all labels are equal"
        mean, worth = self.overall["annotations_per_task"] or 0, self.overall["effective_votes"]
        if worth is None or worth >= mean:
            return ""
        answers = f"The {mean:.3g} annotation{'' if mean == 1 else 's'} that a task has on average"
        return f"{answers} tell as much as {worth:.3g} independent ones, because annotators make the same errors"

    def standing_out(self) -> list[str]:
        """The most confused pair of classes among those with a warning."""
        unclear = {item.about for item in self.unclear}
        rows = [row for row in parts.rows_confused(self.pairs) if f"{row[0]} / {row[1]}" in unclear]
        return [f"the classes {row[0]} and {row[1]}, with {percent(row[3])} of all disagreement" for row in rows[:1]]

    def of_notes(self) -> Iterable[PageWarning]:
        """See `KindPage.of_notes`."""
        return map(parts.note_warning, dict.fromkeys((*self.aggregation.notes, *self.report.notes)))

    def own_warnings(self) -> Iterable[PageWarning]:
        """Warnings of unclear pairs of classes, of classes that the model never predicts, and of uneven shares."""
        self.unclear, gini = [*islice(self.of_definitions(), MOST_WARNED)], self.report.redundancy.annotators.gini
        yield from (*camp_warning(self.report, self.settings.hashed), *self.unclear)
        if gini is not None and gini > UNEVEN:
            yield warning("uneven", gini=gini)
        if (predictions := self.settings.predictions) is not None:
            predicted = predictions.labels[(self.table.redundancy > 0) & (predictions.labels >= 0)]
            lost = lost_classes(predicted, self.table.labels, self.table.num_classes)
            yield from (warning("lost-class", about=self.classes[code]) for code in lost)

    def of_definitions(self) -> Iterator[PageWarning]:
        """Warnings of the pairs of classes confused most, not just by one annotator or by those with a serious note."""
        rows = parts.rows_confused(self.pairs)
        if len(self.classes) < 3 or not rows:  # with two classes, agreement already shows their confusion
            return
        shares = dict(zip(self.classes, self.report.classes["agreement"].to_pylist(), strict=True))
        named = np.array(parts.serious_notes(self.annotators), bool)
        rest = self.table.select_rows(~named[self.table.annotator_ids])
        for first, second, agreement, _ in rows:
            codes = self.classes.index(first), self.classes.index(second)
            if _is_shared(rest, *codes):
                least = min((first, second), key=lambda name: shares[name])
                about, on_least = f"{first} / {second}", f"{percent(shares[least])} on {least}"
                yield warning("definition", about=about, agreement=percent(agreement), least=on_least)


def _is_shared(annotations: Annotations, first: int, second: int) -> bool:
    """Whether a pair of classes is confused more than others, even without the annotator who confuses it most."""
    tasks, annotators, labels = annotations.task_ids, annotations.annotator_ids, annotations.labels
    votes = [np.bincount(tasks, labels == code, annotations.num_tasks)[tasks] for code in (first, second)]
    confused = np.bincount(annotators, np.select([labels == first, labels == second], votes[::-1], 0.0))
    without = annotations.select_rows(annotators != confused.argmax()) if len(confused) else annotations
    for part in (annotations, without):
        if not (part.redundancy > 1).any():
            return False
        matrix = coincidence_matrix(part)
        margins = matrix.sum(axis=1)
        same, apart = matrix[first, first] + matrix[second, second], 2 * matrix[first, second]
        # expected part of the pair in all disagreement, if disagreements followed the classes' shares
        part_of_pair = 2 * margins[first] * margins[second] / max(margins.sum() ** 2 - (margins**2).sum(), 1e-12)
        usual = part_of_pair * (matrix.sum() - np.trace(matrix))
        if apart <= 0 or same / (same + apart) >= parts.UNCLEAR or apart < STANDS_OUT * usual:
            return False
    return True
