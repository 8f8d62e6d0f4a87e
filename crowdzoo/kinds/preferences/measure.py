"""Comparison of methods for preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.measure import Measure, Scores, Sum
from crowdzoo.kinds.preferences.scoring import ORDER_SCORING
from crowdzoo.kinds.scoring import Codes, Flags, Sums
from crowdzoo.kinds.training import Encoder
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.held_out_annotations import scores

if TYPE_CHECKING:
    from crowdzoo.training.pair_rows import Examples

CERTAIN = np.log(np.maximum(np.eye(3), 1e-300))  # log-probabilities of an observed answer


class PreferenceMeasure(Measure[Annotations, PreferenceAggregation]):
    """Compare by the share of pairs of tasks in the same order as in gold; equal scores count half.

    Gold is true scores. With gold, a row of answers has a task's score and its group; scores are comparable within a
    group. Without gold, a row has the probabilities of left, right and equal for a predicted annotation.
    """

    scoring = ORDER_SCORING
    title = "share of pairs in order"
    baseline = "bradley-terry"
    quick = ("bradley-terry", "noisy-bradley-terry", "crowd-bt", "annotator-bradley-terry")
    drawn = 2

    check = Measure.numbers_of

    def answers(self, result: PreferenceAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Scores; without gold, probabilities of each annotator's answers."""
        if rows is None:
            return np.stack([result.scores, result.groups], axis=1)[tasks]
        probabilities = result.answer_probabilities(self.annotations.select_rows(rows))
        return np.pad(probabilities, [(0, 0), (0, 3 - probabilities.shape[1])])

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """See `held_out_annotations.scores`; an annotation counts for both of its tasks."""

        def summed(answers: Scores, tasks: Codes) -> Sums:
            preferences = self.annotations.select_rows(self._between(tasks) if rows is None else rows)
            logs = scores(answers, CERTAIN[preferences.labels])
            both = np.concatenate([preferences.task_ids, preferences.right_ids])
            totals = np.bincount(both, np.tile(logs, 2), self.num_tasks)
            return totals[tasks], np.bincount(both, minlength=self.num_tasks)[tasks].astype(float)

        return summed

    def gold_targets(self, tasks: Codes) -> Scores:
        """Left, right or equal per pair, one-hot."""
        left, right = self.of_tasks(tasks).pairs()[0].T
        order = np.sign(self.gold[tasks][right] - self.gold[tasks][left])
        return np.stack([order < 0, order > 0, order == 0], axis=1).astype(float)

    def predict(self, model: CrowdModel, encoder: Encoder, x: Examples, tasks: Codes) -> Scores:
        """Scores by the model's scorer; without gold, the model's probabilities for pairs of these tasks."""
        task_scores = super().predict(CrowdModel(model.base.scorer), encoder, x, tasks)
        if self.gold is not None:
            return np.hstack([task_scores, np.full_like(task_scores, tasks[0])])
        preferences = self.annotations.select_rows(self._between(tasks))
        sides = [task_scores[np.searchsorted(tasks, ids), 0] for ids in (preferences.task_ids, preferences.right_ids)]
        layer = model.base.get_layer("pair_probabilities")
        return np.asarray(layer(np.stack(sides, axis=1).astype("float32")), float)

    def _between(self, tasks: Codes) -> Flags:
        """Annotations whose tasks are both among these, bool [A]."""
        return np.isin(self.annotations.task_ids, tasks) & np.isin(self.annotations.right_ids, tasks)
