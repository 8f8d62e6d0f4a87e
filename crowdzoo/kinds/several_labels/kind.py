"""Several labels: each of J labels applies to a task or not; an annotator's answer is a set of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, MULTI_LABEL
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.classes.kind import AGGREGATING as OF_CLASSES
from crowdzoo.kinds.classes.kind import CLASSES
from crowdzoo.kinds.kind import Kind, KindOptions, loaded, made
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Codes, Rows
from crowdzoo.kinds.several_labels.scoring import SCORING
from crowdzoo.kinds.training import Training
from crowdzoo.plugins import Table
from crowdzoo.reading.instances.gold import read_gold_labels
from crowdzoo.reading.tables.layout import Layout

if TYPE_CHECKING:
    from crowdzoo.aggregation.multi_label import MultiLabel
    from crowdzoo.aggregation.multi_label_aggregation import MultiLabelAggregation

NO_LABEL = "(none)"  # the answer that no label applies
LabelGold = Mapping[object, Codes]  # label -> 1 if it applies, 0 if not, -1 if unknown, [N]


class LabelReading(Reading[Annotations, LabelGold]):
    """Files have one row per label of an answer; gold is by label, as for `MultiLabel.fit`."""

    def read(self, annotations: str | Path, *, no_label: str | None = None, **options: Any) -> Annotations:
        """See `Reading.read`."""
        return CLASSES.reading.read(annotations, **{**options, "on_duplicate": "all", "no_label": no_label or NO_LABEL})

    def gold_of(
        self,
        crowd: Annotations,
        path: Path | None,
        layout: Layout | None = None,
        no_label: str = NO_LABEL,
        label_separator: str = "|",
    ) -> LabelGold | None:
        """See `Reading.gold_of`; a cell contains all labels that apply."""
        if path is None:
            return None
        labels = [name for name in np.asarray(crowd.classes).tolist() if str(name) != no_label]
        return read_gold_labels(path, crowd.tasks, labels, no_label, label_separator, layout)

    def size_rows(self, crowd: Annotations, what: str = "") -> Rows:
        """See `Reading.size_rows`; an answer counts once."""
        answers = len(np.unique(crowd.task_ids * max(crowd.num_annotators, 1) + crowd.annotator_ids))
        return [(f"{self.counted}{what}", f"{answers:,}"), *super().size_rows(crowd, what)[1:]]


class LabelAggregating(Aggregating[Annotations, "MultiLabelAggregation", LabelGold]):
    """A method for classes treats each label as a yes-or-no question."""

    remark = "Agreement is Krippendorff's alpha of the yes and no to each label."

    def methods(self) -> Table:
        """The methods for classes."""
        return OF_CLASSES.methods()

    def make(self, method: str, *, no_label: str | None = None, **settings: Any) -> MultiLabel:
        """See `Aggregating.make`; `no_label` is the answer that no label applies."""
        from crowdzoo.aggregation.multi_label import MultiLabel

        of_label: Any = OF_CLASSES.make(method, **settings)  # rejects unknown settings
        return MultiLabel(method, none=no_label or NO_LABEL, settings=getattr(of_label, "get_params", dict)())

    def title(self, result: MultiLabelAggregation) -> str:
        """See `Aggregating.title`."""
        return f"{result.method}, label by label"

    def fit_options(self, gold: LabelGold | None, used: bool, calibrated: bool) -> dict[str, Any]:
        """See `Aggregating.fit_options`; labels are calibrated one by one during the fit."""
        return {"gold": gold, "calibrated": calibrated} if used or calibrated else {}

    def calibrate(
        self, result: MultiLabelAggregation, crowd: Annotations, gold: LabelGold, seed: int
    ) -> MultiLabelAggregation:
        """The result unchanged, since `fit` calibrates it."""
        return result

    def rows(self, result: MultiLabelAggregation, crowd: Annotations, gold: LabelGold | None, used_gold: bool) -> Rows:
        """Number of tasks, agreement and accuracy per label."""
        from crowdzoo.kinds.several_labels.answers import LabelAnswers

        names = result.label_names.tolist()
        classes = np.asarray(crowd.classes).tolist()
        answers = LabelAnswers.of(crowd, np.array([classes.index(name) for name in names], np.int64))
        alphas = answers.alphas(bootstrap=0, seed=0)[1]
        corrected = result.accuracy_intervals
        measured = result.accuracy(gold) if gold and not used_gold and corrected is None else {}
        rows = Rows()
        for place, held in enumerate(result.chosen.sum(axis=0).tolist()):
            name, alpha = names[place], alphas[place]
            agreement = "not defined" if alpha is None else f"{alpha.value:.3f}"
            text = f"holds for {held:,} task{'s' * (held != 1)}; agreement {agreement}"
            if name in measured:
                text += f"; accuracy {measured[name]:.4f}"
            if corrected is not None:
                text += "; accuracy of the others {:.4f} ({:.4f} to {:.4f})".format(*corrected[place])
            rows.append((f"label {name}", text))
        if gold:
            rows.append(("tasks with gold", f"{(next(iter(gold.values())) >= 0).sum():,}"))
        return [*rows, ("no label", f"{(~result.chosen.any(axis=1)).sum():,} tasks")]

    def consensus(
        self, result: MultiLabelAggregation, crowd: Annotations, tasks: Codes
    ) -> Iterable[tuple[list[str], float]]:
        """Names of the labels of each task, with the probability of the least certain one."""
        sure = np.maximum(result.probabilities, 1 - result.probabilities).min(axis=1, initial=1)
        names = result.label_sets
        return (([str(name) for name in names[task]], sure[task]) for task in tasks.tolist())


READING = LabelReading(CLASSIFICATION, "answers")
AGGREGATING = LabelAggregating(MULTI_LABEL, OF_CLASSES.default, OF_CLASSES.quick)
SEVERAL_LABELS = Kind(
    labels=MULTI_LABEL,
    options=KindOptions(CLASSES.options.reading, refused={}, scale=("no_label",), gold=("no_label", "label_separator")),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=Training(MULTI_LABEL, READING, AGGREGATING, SCORING),
    prediction=CLASSES.prediction,
    load_page=loaded("crowdzoo.kinds.several_labels.page:LabelPage"),
    load_measure=loaded("crowdzoo.kinds.several_labels.measure:LabelMeasure"),
    load_questions=made("crowdzoo.kinds.several_labels.questions:LabelQuestions"),
)
