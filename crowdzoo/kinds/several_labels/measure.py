"""Comparison of methods for several labels per task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.multi_label import MultiLabel
from crowdzoo.aggregation.multi_label_aggregation import MultiLabelAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.classes.measure import ClassMeasure
from crowdzoo.kinds.measure import Measure, Scores
from crowdzoo.kinds.scoring import Codes, Flags
from crowdzoo.kinds.several_labels.scoring import SCORING

if TYPE_CHECKING:
    from crowdzoo.training.pair_rows import Examples
    from crowdzoo.training.settings import Settings


class LabelMeasure(Measure[Annotations, MultiLabelAggregation]):
    """Compare by F1 of labels over all tasks. A row of answers has the probability of each label.

    Args:
        crowd: annotations, with possibly several classes per task and annotator.
        gold: label -> 1 if it applies, 0 if not, -1 if unknown, int [N]; as for `MultiLabel.fit`.
    """

    scoring = SCORING
    title = "F1 of labels"
    baseline = ClassMeasure.baseline
    quick = ClassMeasure.quick

    def check(self, gold: object) -> Codes:
        """Codes, [N, J]; -1 for labels without gold."""
        codes_of = cast(Mapping[object, Codes], gold)
        if not all(map(np.ndim, codes_of.values())):
            raise DataError(
                "compare: gold has one value for each key, so its keys seem to be tasks. For one class a task write "
                "[gold.get(task, -1) for task in annotations.tasks], with codes of classes; for several labels "
                "gold is {label: [1, 0 or -1 for each task]}."
            )
        labels = [*MultiLabel(none=self.scale.get("no_label", MultiLabel.none)).tables(self.crowd)]
        for label, codes in codes_of.items():
            if label not in labels or not np.isin(self.array_of(codes), (-1, 0, 1)).all():
                text = f"compare: gold of label {label!r} has to be 1, 0 or -1 for each task"
                raise DataError(f"{text}, and the label one of {', '.join(map(repr, labels))}.")
        unknown = np.full(self.num_tasks, -1)
        return np.stack([np.asarray(codes_of.get(label, unknown)) for label in labels], axis=1)

    def answers(self, result: MultiLabelAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Probabilities of the labels."""
        return np.asarray(result.probabilities[tasks])

    @classmethod
    def pair(
        cls, settings: Settings, x: Examples, crowd: Annotations, tasks: ArrayLike | None
    ) -> tuple[Examples, Annotations]:
        """Not supported.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            "compare: no deep method learns several labels at once. Leave out instances; or compare yes and no to each "
            "label as classes, by crowdzoo.models.label_pairs."
        )
