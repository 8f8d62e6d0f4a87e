"""How methods for classes are compared."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.kinds.compared import Compared, Scores, Summed
from crowdzoo.metrics import expected_calibration_error, lost_classes
from crowdzoo.training.held_out_annotations import log_likelihoods, scores


class ComparedClasses(Compared):
    """By accuracy; ties share a task. A row of answers has a task's class probabilities."""

    title = "accuracy"
    baseline = "majority-vote"
    quick = (
        "majority-vote", "wawa", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "glad", "mace", "robust",
    )  # fmt: skip

    @classmethod
    def gold_of(cls, gold: Any) -> Any:
        """Class codes."""
        return gold if (gold >= 0).any() else None

    def checked(self, gold: Any) -> NDArray[Any]:
        """Class codes, -1 where unknown."""
        found, number = self.array_of(gold), self.annotations.num_classes
        if found.dtype.kind not in "iu" or found.max(initial=-1) >= number or found.min(initial=-1) < -1:
            raise DataError(
                f"compare: gold must be class codes, whole numbers from 0 to {number - 1}, -1 where it is unknown. Of "
                "names make codes: annotations.classes.tolist().index(name)."
            )
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those whose code is not negative."""
        return np.asarray(self.gold >= 0)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Posteriors."""
        return np.asarray(result.posteriors[tasks])

    def told(self, tasks: NDArray[Any]) -> Scores:
        """One-hot."""
        return np.eye(self.annotations.num_classes)[self.gold[tasks]]

    def right(self, answers: Scores, tasks: NDArray[Any]) -> Summed:
        """Whether the most probable class is right; of several it is each with the same chance."""
        best, gold = answers == answers.max(axis=1, keepdims=True), self.gold[tasks]
        known = (gold >= 0).astype(float)
        return known * best[np.arange(len(gold)), gold] / best.sum(axis=1), known

    def hidden(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """See `held_out_annotations.scores`."""
        likelihoods, asked = log_likelihoods(self.annotations, rows), self.annotations.task_ids
        counts = np.bincount(asked if rows is None else asked[rows], minlength=self.num_tasks)
        return lambda answers, tasks: (scores(answers, likelihoods[tasks]), counts[tasks])

    def figures(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Balanced accuracy, log loss (nats) and expected calibration error."""
        right, known = self.right(answers, tasks)
        gold, answers, right = self.gold[tasks][known > 0], answers[known > 0], right[known > 0]
        likelihood = np.clip(answers[np.arange(len(gold)), gold], 1e-7, 1)
        return {
            "balanced accuracy": float(np.mean([right[gold == code].mean() for code in np.unique(gold)])),
            "log loss": float(-np.log(likelihood).mean()),
            "calibration error": expected_calibration_error(gold, answers),
        }

    def faults(self, answers: Scores, tasks: NDArray[Any]) -> list[str]:
        """Classes that are never given."""
        names: Any = self.annotations.classes
        asked = np.zeros(self.num_tasks, bool)
        asked[tasks] = True
        votes = self.annotations.labels[asked[self.annotations.task_ids]]
        lost = lost_classes(answers.argmax(axis=1), votes, len(names))
        return [f"never says {', '.join(str(names[code]) for code in lost)}"] if len(lost) else []


COMPARED = ComparedClasses
