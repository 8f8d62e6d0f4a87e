"""Free texts: one text per task, written by annotators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from crowdzoo.aggregation.free_texts.tokens import NORMALIZATIONS, UNITS
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import FREE_TEXT
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.free_texts.scoring import SCORING
from crowdzoo.kinds.kind import FOR_CLASSES, OF_TABLES, Kind, KindOptions, Option, Prediction, loaded, made
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Codes, Objects, Rows
from crowdzoo.kinds.training import Training
from crowdzoo.reading.instances.gold import read_gold_texts

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation

OF_TEXTS = "is for --kind free-text; leave it out."


class TextAggregating(Aggregating[Annotations, "TextAggregation", Objects]):
    """Results have one text per task."""

    def rows(self, result: TextAggregation, crowd: Annotations, gold: Objects | None, used_gold: bool) -> Rows:
        """Confidence, and comparison with gold."""
        rows = [("mean confidence", f"{result.confidence.mean():.3f}")] if len(result.texts) else []
        if gold is None:
            return rows
        return rows + replace(SCORING, normalize=result.normalize).rows_of_known(gold, result.texts)

    def consensus(self, result: TextAggregation, crowd: Annotations, tasks: Codes) -> Iterable[tuple[str, float]]:
        """Texts."""
        return zip(map(str, result.texts[tasks]), result.confidence[tasks], strict=True)


# Gold is true texts, [N], empty where unknown
READING = Reading[Annotations, Objects](FREE_TEXT, "texts", read_gold_texts)
AGGREGATING = TextAggregating(FREE_TEXT, "text-rasa")
FREE_TEXTS = Kind(
    labels=FREE_TEXT,
    options=KindOptions(
        OF_TABLES,
        refused={
            **FOR_CLASSES,
            "classes": "texts have no classes; leave it out.",
            "image": "texts are named by a column of tasks; leave it out.",
            "use_gold": "no method for free texts takes known texts; leave it out.",
        },
        own=(
            Option(
                "normalize",
                "free texts: what does not count when they are compared: the number of blanks (default), case as well, "
                "punctuation as well, or both (words)",
                tuple(NORMALIZATIONS),
                refusal=OF_TEXTS,
            ),
            Option(
                "unit",
                "free texts: what is compared (characters: for scripts without blanks)",
                tuple(UNITS),
                refusal=OF_TEXTS,
            ),
        ),
        scale=("normalize", "unit"),
        needed=("annotations",),
    ),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=Training(FREE_TEXT, READING, AGGREGATING, SCORING),
    prediction=Prediction("text", ("task", "text")),
    load_page=loaded("crowdzoo.kinds.free_texts.page:TextPage"),
    load_measure=loaded("crowdzoo.kinds.free_texts.measure:TextMeasure"),
    load_questions=made("crowdzoo.kinds.free_texts.questions:TextQuestions"),
)
