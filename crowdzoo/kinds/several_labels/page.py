"""LabelPage: what the page of a report says where several labels may hold for a task."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.multi_label_aggregation import SEPARATOR
from crowdzoo.data.label_kinds import CLASSIFICATION
from crowdzoo.errors import DataError
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.kind_page import MOST_VOTES, KindPage, below_and_at_chance, interval
from crowdzoo.kinds.page_parts import DIGITS, PageTable, Warned, listed, plain
from crowdzoo.kinds.several_labels.answers import LabelAnswers
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.columns import ratio
from crowdzoo.quality.copies import copies
from crowdzoo.quality.next_annotation import SURE
from crowdzoo.quality.wilson import NORMAL_975, wilson

MOST_CHECKED = 3  # annotators in the row of a label
RARE = 10  # answers with a label, below which little can be said of it
LEAST_CHANCE = 5.0  # disagreements by chance on a label, from which an annotator is judged on it
NO_LABEL = "(none)"  # for tasks without one
ONE_ANSWER = 0.9  # share of one answer from which it is noted
EXCHANGE_BACK = (
    "ask whether names were exchanged, and exchange them back in the file: each label is a question of its own, so no "
    "method does that"
)


class LabelPage(KindPage):
    """What the page of a report says where several labels may hold for a task: each is a question of yes or no.

    The labels that an annotator gave a task are one answer.
    """

    kind, labels, given = "multi-label", CLASSIFICATION, "several labels a task"
    not_metric = "a label holds or not; leave it out, or give nominal."
    own_values = ("labels", "labels_per_answer", "least_alpha")
    judged = "agreement"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        found, asked = self.aggregation, self.asked
        classes = {str(name): code for code, name in enumerate(np.asarray(self.table.classes).tolist())}
        self.label_names = names = [str(name) for name in found.label_names.tolist()]
        if lost := [name for name in names if name not in classes]:
            raise DataError(f"The aggregation has the label {lost[0]!r}, which no annotation gives.")
        self.answers = answers = LabelAnswers.of(self.table, np.array([classes[name] for name in names], np.int64))
        self.alpha, self.alphas = answers.alphas(asked.bootstrap, asked.seed, asked.on_sample)
        self.by_label = [answers.agreement(label) for label in range(len(names))]
        self.measure_annotators()
        self.of_labels = self.measure_labels()
        sizes, yes, some, given = answers.sizes, answers.yes, answers.sizes > 0, answers.said.sum(axis=1)
        differing = (yes * (sizes[:, None] - yes)).sum(axis=1) / np.maximum(sizes * (sizes - 1) / 2, 1)
        least = np.maximum(found.probabilities, 1 - found.probabilities).min(axis=1)
        sets = [SEPARATOR.join(name for name, holds in zip(names, row, strict=True) if holds) or NO_LABEL
                for row in found.chosen]  # fmt: skip
        self.tasks = listed({
            "task": self.table.tasks,
            "annotations": sizes,
            "label": [each if known else None for each, known in zip(sets, some.tolist(), strict=True)],
            "probability": np.where(some, least, np.nan),
            "disagreement": np.where(sizes > 1, differing, np.nan),
        })  # fmt: skip
        self.shown = self.most("disagreement")
        self.count(
            sizes,
            labels=len(names),
            tasks_without_label=int((~found.chosen[some].any(axis=1)).sum()),
            labels_per_answer=float(given.mean()) if len(given) else None,
            empty_answers=int((given == 0).sum()),
            least_alpha=min((each.value for each in self.alphas if each is not None), default=None),
        )
        self.beside["tasks_without_label"] = "by the aggregation"
        self.more = {"classes": names}

    def measure_labels(self) -> dict[str, list[Any]]:
        """Values of the table of labels."""
        answers, number, some = self.answers, len(self.label_names), self.answers.sizes > 0
        several = answers.sizes > 1
        sizes, yes = answers.sizes[several][:, None], answers.yes[several]
        other, given = (yes * (yes - 1) / np.maximum(sizes - 1, 1)).sum(axis=0), yes.sum(axis=0)
        probabilities = self.aggregation.probabilities[some]
        ends = [[np.nan if each is None or getattr(each, end) is None else getattr(each, end) for each in self.alphas]
                for end in ("value", "low", "high")]  # fmt: skip
        counts, named = [], []
        for found in self.by_label:
            who = np.flatnonzero(
                np.any(below_and_at_chance(found[0], found[1], found[2], found[3] >= LEAST_CHANCE), axis=0)
            )
            who = who[np.argsort(found[0][who], kind="stable")]
            counts.append(len(who))
            named.append(parts.more_than([self.names[each] for each in who], MOST_CHECKED) or None)
        return listed({
            "class": self.label_names,
            "annotations": answers.said.sum(axis=0),
            "share": answers.said.mean(axis=0) if len(answers.said) else np.zeros(number),
            **interval("alpha", *map(np.array, ends)),
            "agreement": ratio(other, given),
            "tasks": self.aggregation.chosen[some].sum(axis=0),
            "prevalence": probabilities.mean(axis=0),
            "sure": (np.maximum(probabilities, 1 - probabilities) >= SURE).mean(axis=0),
            "to_check": counts,
            "check": named,
        })  # fmt: skip

    def measure_annotators(self) -> None:
        """Sets the table of annotators."""
        answers, names = self.answers, self.label_names
        who, number, said = answers.who, answers.num_annotators, answers.said
        counts = np.bincount(who, minlength=number)
        several = answers.sizes[answers.tasks] > 1
        shared = np.bincount(who[several], minlength=number)
        found, own = answers.agreement(), said.sum(axis=1)
        others = (answers.yes.sum(axis=1)[answers.tasks] - own) / np.maximum(answers.sizes[answers.tasks] - 1, 1)
        pattern = np.unique(said, axis=0, return_inverse=True)[1].ravel()
        size = int(pattern.max(initial=0)) + 1
        pairs, times = np.unique(who * size + pattern, return_counts=True)
        order = np.argsort(times, kind="stable")  # the most frequent one is written last
        top, kind = np.zeros(number), np.zeros(number, np.int64)
        top[pairs[order] // size] = times[order] / counts[pairs[order] // size]
        kind[pairs[order] // size] = pairs[order] % size
        usual = np.bincount(pattern, minlength=1) / max(len(pattern), 1)
        mean = ratio(np.bincount(who, own, number), counts)
        of_others = ratio(np.bincount(who[several], others[several], number), shared)
        against, random = below_and_at_chance(found[0], found[1], found[2], shared >= FEW)
        questions = answers.tasks[:, None] * said.shape[1] + np.arange(said.shape[1])
        copied = copies(self.table.annotators, questions.ravel(), who.repeat(questions.shape[1]), said.ravel())
        usual_agreement = np.median(found[0][np.isfinite(found[0])]) if np.isfinite(found[0]).any() else 0.0
        with np.errstate(invalid="ignore"):  # on two labels or more
            doubtful = (np.stack([each[1] for each in self.by_label]) < usual_agreement / 2).sum(axis=0) > 1
        exchanged = answers.exchanged((shared >= FEW) & doubtful)
        exchange = np.isin(np.arange(number), [*exchanged])
        words = {place: " and ".join(f"{names[one]} for {names[other]} and the other way round" for one, other in each)
                 for place, each in exchanged.items()}  # fmt: skip
        marks = {
            "exchange": exchange,
            "against": against & ~exchange,
            "random": random & ~exchange,
            "label": _opposed_on_one(self.by_label) & ~against & ~exchange,
            "same": (counts >= FEW) & (top >= ONE_ANSWER) & (wilson(top, counts)[0] > usual[kind]),
        }
        self.annotators = self.of_annotators(
            counts, shared, marks, **interval("agreement", *found[:3]), labels=mean, others_labels=of_others,
            top_share=np.where(counts > 0, top, np.nan), exchanges=[words.get(place) for place in range(number)],
            copies=copied,
        )  # fmt: skip

    def tables(self) -> dict[str, PageTable]:
        """See `KindPage.tables`."""
        return {"classes": self.table_of("classes", self.of_labels), **super().tables()}

    def annotator_details(self, shown: list[int]) -> list[dict[str, Any]]:
        """Of each label: answers with it, agreement on it, sensitivity and specificity."""
        given = np.zeros((self.answers.num_annotators, len(self.label_names)), np.int64)
        np.add.at(given, self.answers.who, self.answers.said)
        agreement = np.stack([found[0] for found in self.by_label], axis=1)
        details = []
        for who in shown:
            columns = agreement[who], self.aggregation.sensitivity[who], self.aggregation.specificity[who]
            rows = zip(given[who].tolist(), *(plain(column) for column in columns), strict=True)
            details.append({"labels": [[label, *row] for label, row in enumerate(rows)]})
        return details

    def task_details(self) -> list[dict[str, Any]]:
        """Votes and probability of the labels that somebody gave, and who gave which."""
        answers, found, details = self.answers, self.aggregation, []
        starts = np.searchsorted(answers.tasks, np.arange(len(answers.sizes) + 1))
        for task in self.shown:
            labels = np.flatnonzero((answers.yes[task] > 0) | found.chosen[task])
            labels = labels[np.argsort(-answers.yes[task][labels], kind="stable")].tolist()
            rows = range(starts[task], min(starts[task + 1], starts[task] + MOST_VOTES))
            likely = np.round(found.probabilities[task], DIGITS).tolist()
            details.append({
                "labels": [[label, int(answers.yes[task, label]), likely[label]] for label in labels],
                "sets": [[self.names[answers.who[row]], np.flatnonzero(answers.said[row]).tolist()] for row in rows],
            })  # fmt: skip
        return details

    # === Words ===

    def first(self) -> str:
        """See `KindPage.first`."""
        number = self.overall["labels"]
        return parts.alpha_sentence(self.alpha, f"Over the yes and no to all {number:,} labels, " if number > 1 else "")

    def second(self) -> str:
        """See `KindPage.second`."""
        mean, named = self.overall["annotations_per_task"] or 0, self.overall["labels_per_answer"] or 0
        found = f"A task has {mean:.3g} answer{'' if mean == 1 else 's'} on average, with {named:.3g} "
        found += f"label{'' if named == 1 else 's'} each"
        columns = (self.of_labels[key] for key in ("alpha", "class", "alpha_low"))
        known = sorted(row for row in zip(*columns, strict=True) if row[0] is not None)
        clear = [row for row in known if row[2] is None or row[2] > 0]
        if len(known) > 1 and clear:
            (least, worst, _), (highest, best, _) = known[0], clear[-1]
            found += f"; annotators agree most on {best} (alpha {highest:.2f}) and least on {worst} ({least:.2f})"
        return found

    def of_notes(self) -> list[Warned]:
        """Warnings of the notes of the result; of one on a label this stands before it."""
        found = []
        for note in self.aggregation.notes:
            name = next((each for each in self.label_names if note.startswith(f"{each}: ")), None)
            own = parts.noted(note if name is None else note[len(name) + 2 :])
            found.append(own if name is None else replace(own, serious=False, about=name, link="classes"))
        return found

    def own_warnings(self) -> list[Warned]:
        """Labels on which annotators agree as by chance, and rare ones."""
        rows = list(zip(self.label_names, self.alphas, self.of_labels["annotations"], strict=True))
        chance = [name for name, alpha, count in rows if alpha and count >= RARE and not parts.above_chance(alpha)]
        by_chance = parts.warning("label-by-chance", about=parts.more_than(chance))
        rare = [name for name, _, count in rows if count < RARE]
        too_few = parts.warning("label-rare", about=parts.more_than(rare), least=RARE)
        return [each for each in (by_chance, too_few) if each.about]

    def warned(self) -> list[Warned]:
        """See `KindPage.warned`."""
        return [replace(each, fix=EXCHANGE_BACK) if each.key == "exchange" else each for each in super().warned()]


def _opposed_on_one(by_label: list[NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Who agrees less than by chance on a label, with 95 % for all labels of an annotator together, bool [R]."""
    wider = NormalDist().inv_cdf(1 - 0.025 / len(by_label)) / NORMAL_975
    with np.errstate(invalid="ignore"):
        opposed = [
            (chance >= LEAST_CHANCE) & (value + wider * (high - value) < 0) for value, _, high, chance in by_label
        ]
    return np.any(opposed, axis=0)


PAGE = LabelPage
