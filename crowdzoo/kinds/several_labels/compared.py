"""How methods for several labels per task are compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.multi_label import MultiLabel
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds.classes.compared import ComparedClasses
from crowdzoo.kinds.compared import Compared, Scores
from crowdzoo.kinds.several_labels.scoring import SCORING


class ComparedLabels(Compared):
    """By F1 of labels, of all tasks together. A row of answers has the probability of each label.

    Args:
        crowd: classes, of which an annotator may give a task several.
        gold: label -> 1 where it holds, 0, or -1 where that is unknown, int [N]; as `MultiLabel.fit` takes it.
    """

    scoring = SCORING
    title = "F1 of labels"
    baseline = ComparedClasses.baseline
    quick = ComparedClasses.quick

    def checked(self, gold: Mapping[Any, Any]) -> NDArray[np.int64]:
        """Codes, [N, J]; -1 of a label without gold."""
        if not all(map(np.ndim, gold.values())):
            raise DataError(
                "compare: gold has one value for each key, so its keys seem to be tasks. Of one class a task write "
                "[gold.get(task, -1) for task in annotations.tasks], with codes of classes; of several labels per task "
                "gold is {label: [1, 0 or -1 for each task]}."
            )
        labels = [*MultiLabel().tables(self.crowd)]
        for label, codes in gold.items():
            if label not in labels or not np.isin(self.array_of(codes), (-1, 0, 1)).all():
                raise DataError(
                    f"compare: gold of label {label!r} has to be 1, 0 or -1 for each task, and the label one of "
                    f"{', '.join(map(repr, labels))}."
                )
        unknown = np.full(self.num_tasks, -1)
        return np.stack([np.asarray(gold.get(label, unknown)) for label in labels], axis=1)

    def fitted_by(self, name: str, aggregator: Any) -> MultiLabel:
        """The method, label by label."""
        return MultiLabel(name, settings=getattr(aggregator, "get_params", dict)())

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Probabilities of the labels."""
        return np.asarray(result.probabilities[tasks])

    @classmethod
    def paired(cls, settings: Any, x: Any, crowd: Any, tasks: Any) -> tuple[Any, Any]:
        """None.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            "compare: no deep method learns several labels at once. Leave out instances; or compare yes and no to each "
            "label as classes, by crowdzoo.models.label_pairs."
        )


COMPARED = ComparedLabels
