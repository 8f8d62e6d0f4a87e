"""Comparison of methods for classes."""

from typing import Any

import numpy as np

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.classes.scoring import SCORING
from crowdzoo.kinds.measure import Measure, Scores, Sum
from crowdzoo.kinds.scoring import Codes, Flags
from crowdzoo.metrics import lost_classes
from crowdzoo.training.held_out_annotations import log_likelihoods, scores
from crowdzoo.training.methods import AGGREGATED


class ClassMeasure(Measure[Annotations, Aggregation]):
    """Compare by accuracy; ties share a task. A row of answers contains a task's class probabilities."""

    scoring = SCORING
    title = "accuracy"
    baseline = "majority-vote"
    quick = ("majority-vote", "wawa", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "glad", "mace", "robust")
    # The recommended method, those level with it on the nine data sets of docs/results.md, and aggregated labels;
    # cheapest first
    quick_deep = ((AGGREGATED, {}), ("ccem", {}), ("geo-crowd-net", {}), ("max-mig", {}), ("cross-fitted-em", {}))

    def check(self, gold: object) -> Codes:
        """Class codes, -1 where unknown."""
        codes, number = self.array_of(gold), self.annotations.num_classes
        if codes.dtype.kind not in "iu" or codes.max(initial=-1) >= number or codes.min(initial=-1) < -1:
            raise DataError(
                f"compare: gold must be class codes, whole numbers from 0 to {number - 1}, -1 where it is unknown. Of "
                "names make codes: annotations.classes.tolist().index(name)."
            )
        return codes

    def answers(self, result: Aggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Posteriors."""
        return np.asarray(result.posteriors[tasks])

    def gold_targets(self, tasks: Codes) -> Scores:
        """One-hot."""
        return np.eye(self.annotations.num_classes)[self.gold[tasks]]

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """See `held_out_annotations.scores`."""
        likelihoods, counts = log_likelihoods(self.annotations, rows), self.num_hidden(rows)
        return lambda answers, tasks: (scores(answers, likelihoods[tasks]), counts[tasks])

    def faults(self, answers: Scores, tasks: Codes) -> list[str]:
        """Warnings about classes that are never predicted."""
        names: Any = self.annotations.classes
        asked = np.zeros(self.num_tasks, bool)
        asked[tasks] = True
        votes = self.annotations.labels[asked[self.annotations.task_ids]]
        lost = lost_classes(answers.argmax(axis=1), votes, len(names))
        return [f"never says {', '.join(str(names[code]) for code in lost)}"] if len(lost) else []
