"""LabelPage: page of a report on several labels per task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from crowdzoo.aggregation.multi_label_aggregation import SEPARATOR
from crowdzoo.data.label_kinds import CLASSIFICATION
from crowdzoo.errors import DataError
from crowdzoo.kinds import page_parts as parts
from crowdzoo.kinds.page import MOST_VOTES, KindPage, below_and_at_chance
from crowdzoo.kinds.page_parts import DIGITS, Columns, Details, PageTable, PageWarning, as_lists, plain, read_columns
from crowdzoo.kinds.scoring import Flags, Floats
from crowdzoo.kinds.several_labels.answers import LabelAnswers
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies
from crowdzoo.quality.figures import NORMAL_975, interval, means, ratio, wilson
from crowdzoo.quality.next_annotation import SURE

MOST_CHECKED = 3  # annotators named in the row of a label
RARE = 10  # answers with a label, below which the label is called rare
LEAST_CHANCE = 5.0  # disagreements expected by chance on a label, from which an annotator is judged on it
NO_LABEL = "(none)"  # for tasks without one
ONE_ANSWER = 0.9  # share of a single answer from which it is noted
EXCHANGE_BACK = (
    "ask whether names were exchanged, and exchange them back in the file: each label is a question of its own, so no "
    "method does that"
)


class LabelPage(KindPage):
    """Page of a report on several labels per task, where each label is a yes-or-no question.

    The labels that an annotator gave a task are one answer.
    """

    kind, labels, subject = "multi-label", CLASSIFICATION, "several labels per task"
    own_columns = read_columns(__package__)
    not_metric = "a label holds or not; leave it out, or give nominal."
    own_values = ("labels", "labels_per_answer", "least_alpha")
    annotator_column = "agreement"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        result, settings = self.aggregation, self.settings
        classes = {str(name): code for code, name in enumerate(np.asarray(self.table.classes).tolist())}
        self.label_names = names = [str(name) for name in result.label_names.tolist()]
        if lost := [name for name in names if name not in classes]:
            raise DataError(f"The aggregation has the label {lost[0]!r}, which no annotation gives.")
        self.answers = answers = LabelAnswers.of(self.table, np.array([classes[name] for name in names], np.int64))
        self.alpha, self.alphas = answers.alphas(**settings.sampling)
        self.by_label = [answers.agreement(label) for label in range(len(names))]
        self.measure_annotators()
        self.of_labels = self.measure_labels()
        sizes, yes, some, counts = answers.sizes, answers.yes, answers.sizes > 0, answers.labels.sum(axis=1)
        differing = (yes * (sizes[:, None] - yes)).sum(axis=1) / np.maximum(sizes * (sizes - 1) / 2, 1)
        least = np.maximum(result.probabilities, 1 - result.probabilities).min(axis=1)
        chosen = ([name for name, holds in zip(names, row, strict=True) if holds] for row in result.chosen)
        sets = [SEPARATOR.join(labels) or NO_LABEL for labels in chosen]
        self.tasks = as_lists(
            task=self.table.tasks,
            annotations=sizes,
            label=[item if known else None for item, known in zip(sets, some.tolist(), strict=True)],
            probability=np.where(some, least, np.nan),
            disagreement=np.where(sizes > 1, differing, np.nan),
        )
        self.rows = self.largest("disagreement")
        self.count(
            sizes,
            labels=len(names),
            tasks_without_label=int((~result.chosen[some].any(axis=1)).sum()),
            labels_per_answer=float(counts.mean()) if len(counts) else None,
            empty_answers=int((counts == 0).sum()),
            least_alpha=min((item.value for item in self.alphas if item is not None), default=None),
        )
        self.remarks["tasks_without_label"] = "by the aggregation"
        self.extras = {"classes": names}

    def measure_labels(self) -> Columns:
        """Build the values of the table of labels."""
        answers, number, some = self.answers, len(self.label_names), self.answers.sizes > 0
        several = answers.sizes > 1
        sizes, yes = answers.sizes[several][:, None], answers.yes[several]
        pairs, sums = (yes * (yes - 1) / np.maximum(sizes - 1, 1)).sum(axis=0), yes.sum(axis=0)
        probabilities = self.aggregation.probabilities[some]
        ends = ([getattr(alpha, end, None) for alpha in self.alphas] for end in ("value", "low", "high"))
        counts, named = [], []
        for value, low, high, weight in self.by_label:
            places = np.flatnonzero(np.any(below_and_at_chance(value, low, high, weight >= LEAST_CHANCE), axis=0))
            places = places[np.argsort(value[places], kind="stable")]
            counts.append(len(places))
            named.append(parts.first_names([self.names[place] for place in places], MOST_CHECKED) or None)
        return as_lists(
            **{"class": self.label_names},
            annotations=answers.labels.sum(axis=0),
            share=answers.labels.mean(axis=0) if len(answers.labels) else np.zeros(number),
            **interval("alpha", *(np.array(values, float) for values in ends)),
            agreement=ratio(pairs, sums),
            tasks=self.aggregation.chosen[some].sum(axis=0),
            prevalence=probabilities.mean(axis=0),
            sure=(np.maximum(probabilities, 1 - probabilities) >= SURE).mean(axis=0),
            to_check=counts,
            check=named,
        )

    def measure_annotators(self) -> None:
        """Set the table of annotators."""
        answers, names = self.answers, self.label_names
        annotators, number, labels = answers.annotators, answers.num_annotators, answers.labels
        counts = np.bincount(annotators, minlength=number)
        several = answers.sizes[answers.tasks] > 1
        shared = np.bincount(annotators[several], minlength=number)
        agreement, sums = answers.agreement(), labels.sum(axis=1)
        peers = (answers.yes.sum(axis=1)[answers.tasks] - sums) / np.maximum(answers.sizes[answers.tasks] - 1, 1)
        pattern = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
        size = int(pattern.max(initial=0)) + 1
        pairs, times = np.unique(annotators * size + pattern, return_counts=True)
        order = np.argsort(times, kind="stable")  # the most frequent one comes last
        top, kind = np.zeros(number), np.zeros(number, np.int64)
        top[pairs[order] // size] = times[order] / counts[pairs[order] // size]
        kind[pairs[order] // size] = pairs[order] % size
        usual = np.bincount(pattern, minlength=1) / max(len(pattern), 1)
        mean, of_others = means(annotators, sums, number), means(annotators[several], peers[several], number)
        against, random = below_and_at_chance(agreement[0], agreement[1], agreement[2], shared >= FEW)
        questions = answers.tasks[:, None] * labels.shape[1] + np.arange(labels.shape[1])
        copied = copies(self.table.annotators, questions.ravel(), annotators.repeat(questions.shape[1]), labels.ravel())
        usual_agreement = np.median(agreement[0][np.isfinite(agreement[0])]) if np.isfinite(agreement[0]).any() else 0.0
        with np.errstate(invalid="ignore"):  # on at least two labels
            doubtful = (np.stack([values[1] for values in self.by_label]) < usual_agreement / 2).sum(axis=0) > 1
        exchanged = answers.exchanges((shared >= FEW) & doubtful)
        exchange = np.isin(np.arange(number), [*exchanged])
        words = {
            place: " and ".join(f"{names[first]} for {names[other]} and the other way round" for first, other in pairs)
            for place, pairs in exchanged.items()
        }
        marks = {
            "exchange": exchange,
            "against": against & ~exchange,
            "random": random & ~exchange,
            "label": _opposed_on_one(self.by_label) & ~against & ~exchange,
            "same": (counts >= FEW) & (top >= ONE_ANSWER) & (wilson(top, counts)[0] > usual[kind]),
        }
        columns = {**interval("agreement", *agreement[:3]), "labels": mean, "others_labels": of_others}
        columns |= {"top_share": np.where(counts > 0, top, np.nan), "exchanges": [*map(words.get, range(number))]}
        self.annotators = self.of_annotators(counts, shared, marks, **columns, copies=copied)

    def tables(self) -> dict[str, PageTable]:
        """See `KindPage.tables`."""
        return {"classes": self.table_of("classes", self.of_labels), **super().tables()}

    def annotator_details(self, codes: list[int]) -> Details:
        """For each label: number of answers with it, agreement, sensitivity and specificity."""
        counts = np.zeros((self.answers.num_annotators, len(self.label_names)), np.int64)
        np.add.at(counts, self.answers.annotators, self.answers.labels)
        agreement = np.stack([values[0] for values in self.by_label], axis=1)
        tables = agreement, self.aggregation.sensitivity, self.aggregation.specificity
        for annotator in codes:
            rows = zip(counts[annotator].tolist(), *(plain(table[annotator]) for table in tables), strict=True)
            yield {"labels": [[label, *row] for label, row in enumerate(rows)]}

    def task_details(self) -> Details:
        """Votes and probability of the given labels, and each annotator's labels."""
        answers, result = self.answers, self.aggregation
        annotators = answers.annotators
        starts = np.searchsorted(answers.tasks, np.arange(len(answers.sizes) + 1))
        for task in self.rows:
            labels = np.flatnonzero((answers.yes[task] > 0) | result.chosen[task])
            labels = labels[np.argsort(-answers.yes[task][labels], kind="stable")].tolist()
            rows = range(starts[task], min(starts[task + 1], starts[task] + MOST_VOTES))
            likely = np.round(result.probabilities[task], DIGITS).tolist()
            votes = [[label, int(answers.yes[task, label]), likely[label]] for label in labels]
            sets = [[self.names[annotators[row]], np.flatnonzero(answers.labels[row]).tolist()] for row in rows]
            yield {"labels": votes, "sets": sets}

    # === Words ===

    def headline(self) -> str:
        """See `KindPage.headline`."""
        number = self.overall["labels"]
        return parts.alpha_sentence(self.alpha, f"over the yes and no to all {number:,} labels, " if number > 1 else "")

    def background(self) -> str:
        """See `KindPage.background`."""
        mean, named = self.overall["annotations_per_task"] or 0, self.overall["labels_per_answer"] or 0
        text = f"A task has {mean:.3g} answer{'' if mean == 1 else 's'} on average, with {named:.3g} "
        text += f"label{'' if named == 1 else 's'} each"
        columns = (self.of_labels[key] for key in ("alpha", "class", "alpha_low"))
        known = sorted(row for row in zip(*columns, strict=True) if row[0] is not None)
        clear = [row for row in known if row[2] is None or row[2] > 0]
        if len(known) > 1 and clear:
            (least, worst, _), (highest, best, _) = known[0], clear[-1]
            text += f"; annotators agree most on {best} (alpha {highest:.2f}) and least on {worst} ({least:.2f})"
        return text

    def of_notes(self) -> Iterable[PageWarning]:
        """Warnings from the notes of the result; a note on a label begins with its name."""
        for note in self.aggregation.notes:
            name = next((label for label in self.label_names if note.startswith(f"{label}: ")), None)
            item = parts.note_warning(note if name is None else note[len(name) + 2 :])
            yield item if name is None else replace(item, serious=False, about=name, link="classes")

    def own_warnings(self) -> Iterable[PageWarning]:
        """Warnings about labels with agreement at chance, and about rare labels."""
        rows = list(zip(self.label_names, self.alphas, self.of_labels["annotations"], strict=True))
        chance = [name for name, alpha, count in rows if alpha and count >= RARE and not parts.above_chance(alpha)]
        if chance:
            yield parts.warning("label-by-chance", about=parts.first_names(chance))
        if rare := [name for name, _, count in rows if count < RARE]:
            yield parts.warning("label-rare", about=parts.first_names(rare), least=RARE)

    def all_warnings(self) -> list[PageWarning]:
        """See `KindPage.all_warnings`."""
        return [replace(item, fix=EXCHANGE_BACK) if item.key == "exchange" else item for item in super().all_warnings()]


def _opposed_on_one(by_label: list[Floats]) -> Flags:
    """Annotators who agree less than by chance on some label, at 95 % confidence over all labels, bool [R]."""
    wider = NormalDist().inv_cdf(1 - 0.025 / len(by_label)) / NORMAL_975
    with np.errstate(invalid="ignore"):
        upper = [(value + wider * (high - value), chance) for value, _, high, chance in by_label]
        return np.any([(chance >= LEAST_CHANCE) & (end < 0) for end, chance in upper], axis=0)
