"""TextPage: page of a report on free texts."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import numpy as np

from crowdzoo.aggregation.free_texts.edits import ERRORS, edits, error_rates
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.aggregation.free_texts.tokens import UNITS, Tokens
from crowdzoo.data.label_kinds import FREE_TEXT
from crowdzoo.errors import DataError
from crowdzoo.kinds.answer_page import AnswerPage
from crowdzoo.kinds.free_texts.scoring import TextScoring
from crowdzoo.kinds.model_answers import ModelAnswers
from crowdzoo.kinds.page import MOST_VOTES
from crowdzoo.kinds.page_parts import Details, as_lists, read_columns, rows_of
from crowdzoo.quality.figures import ratio
from crowdzoo.quality.krippendorff import Alpha, draw_tasks, with_interval

DRAWN = 100_000  # pairs of texts from any tasks, for the error rate by chance
MOST_TOKENS = 200  # of an aligned text
FORMS = {"equal": "{0}", "replace": "[{0} ← {1}]", "insert": "[+ {0}]", "delete": "[− {1}]"}


class TextPage(AnswerPage):
    """Page of a report on free texts."""

    kind, labels, subject = "free-text", FREE_TEXT, "free texts"
    own_columns = read_columns(__package__)
    metrics = ("edits",)
    not_metric = "the distance of two texts is their error rate; leave it out."
    own_values = ("error_rate",)
    task_column, model_value = "text", "model_error"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        result = self.aggregation
        self.texts = texts = TextTable.of(self.table, "A page of a report", result.unit, result.normalize)
        sizes, far = texts.sizes, texts.sums(texts.distances)
        means = ratio(texts.of_tasks(far), sizes * (sizes - 1))
        self.alpha = self._alpha(means)
        longer = np.max([texts.tokens.lengths[texts.said[side]] for side in texts.pairs], axis=0)
        near = 1.0 - texts.distances / getattr(self.alpha, "expected", 1.0)
        self.compare(texts.tasks, texts.who, texts.pairs, near, longer)
        self.measure_annotators()
        rate = float(texts.distances.mean()) if len(texts.distances) else None
        self.count(sizes, error_rate=rate, aggregation=result.method, unit=result.unit, normalize=result.normalize)
        self.tasks = as_lists(
            task=self.table.tasks,
            annotations=sizes,
            text=result.texts,
            confidence=result.confidence,
            error_rate=means,
            redo=self.redo,
        )
        self.rows = self.largest("error_rate")

    def _alpha(self, means: Any) -> Alpha | None:
        """Krippendorff's alpha with the error rate between texts as distance; None where undefined.

        The expected distance is that of random pairs of texts from any tasks; the bootstrap keeps it fixed.

        Args:
            means: mean distance within each task, [N].
        """
        texts, settings, several = self.texts, self.settings, self.texts.sizes > 1
        rows = np.flatnonzero(several[texts.tasks])
        if not len(rows):
            return None
        pair = np.random.default_rng(settings.seed).choice(rows, (2, DRAWN))
        expected = float(error_rates(texts.tokens, *texts.said[pair[:, pair[0] != pair[1]]]).mean())
        sizes, means = texts.sizes[several], means[several]
        observed = float(sizes @ means / sizes.sum())
        if expected == 0:
            return None
        alpha = Alpha(1 - observed / expected, "edits", observed, expected, len(sizes), len(rows))
        samples = draw_tasks(len(sizes), settings.bootstrap if len(sizes) > 1 else 0, settings.seed, settings.on_sample)
        return with_interval(alpha, [1 - float(part * sizes @ means / (part @ sizes)) / expected for part in samples])

    def measure_annotators(self) -> None:
        """Set the table of annotators; errors are counted against the text nearest to the others of the task."""
        texts, number = self.texts, self.table.num_annotators
        (left, right), far = texts.pairs, texts.distances
        rows, partners, apart = np.r_[left, right], np.r_[right, left], np.r_[far, far]
        weights = self.skill[texts.who] ** 2
        rest = texts.sums(far, weights)[partners] - apart * weights[rows]  # distance of the other text from the rest
        order = np.lexsort((partners, np.round(rest, 12), rows))
        rows, firsts = np.unique(rows[order], return_index=True)
        true = texts.said[partners[order][firsts]]
        wrong, annotators = edits(texts.tokens, texts.said[rows], true), texts.who[rows]
        tokens = np.bincount(annotators, texts.tokens.lengths[true], number)
        kinds = [ratio(np.bincount(annotators, errors, number), tokens) for errors in wrong.T]
        differs = [f"error rate {rate:.2f}" for rate in np.sum(kinds, axis=0)]
        rates: dict[str, Any] = dict(zip(ERRORS, kinds, strict=True))
        self.note(differs, **rates)

    def model_answers(self, predictions: Any) -> ModelAnswers:
        """See `KindPage.model_answers`; texts, empty without a prediction."""
        if not all(text is None or isinstance(text, str) for text in predictions):
            raise DataError("predictions: give a text for each task, '' without a prediction.")
        model = np.array([text or "" for text in predictions], object)
        table, result = self.table, self.aggregation
        scoring, answers = TextScoring(result.normalize, result.unit), np.asarray(table.values)[table.labels]
        crowd, metric = (result.texts, table.task_ids, answers), f"error rate of {result.unit}"
        return ModelAnswers(metric, scoring.sums, model, model != "", *crowd, lambda _, text: text, True)

    def aligned(self, task: int, code: int) -> str:
        """Align a text with that of its task: [one ← other] for replaced tokens, [+ added], [− missing]."""
        result, values = self.aggregation, np.asarray(self.table.values)
        tokens = Tokens.of([result.texts[task], values[code]], result.unit, result.normalize)
        codes = np.split(tokens.codes, tokens.starts[1:-1])
        true, answer = ([tokens.names[token] for token in part[:MOST_TOKENS].tolist()] for part in codes)
        blank = UNITS[result.unit]
        return blank.join(
            FORMS[what].format(blank.join(answer[first:last]), blank.join(true[start:end]))
            for what, start, end, first, last in SequenceMatcher(None, true, answer, False).get_opcodes()
        )

    def task_details(self) -> Details:
        """Annotators' texts, aligned with that of the task."""
        table = self.table
        rows = rows_of(table.task_ids, np.arange(len(table)), self.rows, MOST_VOTES)
        return [
            {"voters": [[self.names[table.annotator_ids[row]], self.aligned(task, table.labels[row])] for row in of]}
            for task, of in zip(self.rows, rows, strict=True)
        ]

    def background(self) -> str:
        """See `KindPage.background`."""
        if (rate := self.overall["error_rate"]) is None:
            return "No task has two texts"
        return f"Two texts of one task differ in {100 * rate:.0f} % of their {self.aggregation.unit}"
