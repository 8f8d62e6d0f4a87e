"""Preferences: which of two tasks is better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import PREFERENCE
from crowdzoo.errors import DataError
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.kind import FOR_CLASSES, OF_TABLES, Kind, KindOptions, Prediction, loaded, made
from crowdzoo.kinds.preferences.scoring import ORDER_SCORING, SCORING
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Floats, Rows
from crowdzoo.kinds.training import Encoder, Training, TrainingSet, encode
from crowdzoo.quality.figures import NORMAL_975
from crowdzoo.reading.instances.gold import read_gold_pairs, read_gold_ratings
from crowdzoo.reading.instances.instances import Instances

if TYPE_CHECKING:
    from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
    from crowdzoo.training.crowd_model import CrowdModel


class PreferenceAggregating(Aggregating[Annotations, "PreferenceAggregation", Floats]):
    """Results have a score per task."""

    def add_notes(
        self, result: PreferenceAggregation, crowd: Annotations, gold: Floats | None = None
    ) -> PreferenceAggregation:
        """Add a note if the better task is always on one side and the method estimates a preference for sides."""
        from crowdzoo.kinds.page_parts import percent
        from crowdzoo.kinds.preferences.judged import JudgedPairs, JudgedSides, one_sided
        from crowdzoo.quality import order_of_others

        if result.position_biases() is None:
            return result
        share = one_sided(crowd, JudgedSides.of(crowd, order_of_others(crowd)), JudgedPairs.of(crowd))
        if share is None:
            return result
        better, worse = ("left", "right") if share > 0.5 else ("right", "left")
        note = (
            f"{percent(max(share, 1 - share))} of the judgments prefer the {better}, so that quality and a preference "
            "for the side cannot be told apart, and the scores may say nothing. If the file always has the better task "
            f"there, name the columns so: --columns winner={better},loser={worse}."
        )
        return replace(result, notes=(*result.notes, note))

    def rows(self, result: PreferenceAggregation, crowd: Annotations, gold: Floats | None, used_gold: bool) -> Rows:
        """Best and worst task, range of the annotators' biases, and correlation with gold."""
        groups = len(np.unique(result.groups[result.annotations_per_task > 0]))
        counts = np.bincount(crowd.labels, minlength=crowd.num_classes).tolist()
        answers = zip(counts, np.asarray(crowd.classes).tolist(), strict=True)
        rows = [("answers", ", ".join(f"{count:,} {name}" for count, name in answers))]
        if groups == 1 and len(crowd):
            order = np.argsort(-result.scores, kind="stable")
            order = order[result.annotations_per_task[order] > 0]
            for what, task in (("best task", order[0]), ("worst task", order[-1])):
                rows.append((what, f"{crowd.tasks[task]} ({result.scores[task]:+.3f})"))
        if (biases := result.position_biases()) is not None:
            span = f"{biases.min():+.3g} to {biases.max():+.3g}, mean {biases.mean():+.3g}"
            rows.append(("position biases", f"{span} (above 0: left)"))
        for name, (effect, error) in result.effects.items():
            ends = (f"{effect + NORMAL_975 * error * side:+.3g}" for side in (-1, 1))
            rows.append((f"effect of {name}", f"{effect:+.3g} ({' to '.join(ends)}) log odds per unit"))
        if gold is None:
            return rows
        return rows + ORDER_SCORING.rows_of_known(gold, np.stack([result.scores, result.groups], axis=1))


class PreferenceTraining(Training[Annotations, "PreferenceAggregation", Floats]):
    """Models score single tasks (`RewardModel`)."""

    fit = "CrowdModel(RewardModel(base), {layer}).fit(x, annotations, tasks=ids)"
    fit_aggregated = (
        "train(settings, x, annotations=annotations, tasks=ids, label_distribution=shares)"
        "  # shares [P, 3] of left, right and equal, a row for each of annotations.pairs()"
    )

    def read(
        self, annotations: Path, instances: Path | None, *how: Any, gold: Path | None = None, **options: Any
    ) -> TrainingSet[Annotations, Floats]:
        """See `Training.read`; `gold` is a file of pairs with known answers.

        A column gold of the instances contains true scores. A preference is used for training if both its tasks are.
        """
        data = super().read(annotations, instances, *how, **options)
        if not len(data.used):
            raise DataError(f"{annotations}: no preference is between two tasks of the split 'train' in {instances}.")
        if gold is None:
            return data
        return replace(data, gold_pairs=read_gold_pairs(gold, data.crowd.tasks, np.asarray(data.crowd.classes)))

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> Floats:
        """True scores, [N], NaN where the table has none."""
        return table.gold_ratings(path, "true scores")

    def targets(self, result: PreferenceAggregation, annotations: Annotations) -> Floats:
        """Probabilities of left, right and equal for each pair of `annotations.pairs()`, [P, 3]."""
        return result.of_pairs(annotations)

    def rows(self, model: CrowdModel, encoder: Encoder, data: TrainingSet[Annotations, Floats]) -> Rows:
        """Comparison with gold, for held-out tasks also with the annotators' preferences."""
        from crowdzoo.training.crowd_model import CrowdModel

        gold, everything = np.asarray(data.gold), np.ones(len(data.training), bool)
        outputs = CrowdModel(model.base.scorer).predict(encode(data.x, everything, encoder), verbose=0)
        scores, held, rows = outputs[:, 0].astype(np.float64), ~data.training, Rows()
        if (pairs := data.gold_pairs) is not None:
            of_held = held[pairs.task_ids] | held[pairs.right_ids]
            for split, chosen in (("training", ~of_held), ("held-out", of_held)):
                rows += SCORING.rows(pairs.select_rows(chosen), scores, f"{split} pairs right, against gold")
        preferences = data.crowd.select_rows(held[data.crowd.task_ids] & held[data.crowd.right_ids])
        rows += SCORING.rows(preferences, scores, "held-out preferences right")
        for split, tasks in (("training", data.training), ("held-out", held)):
            known = tasks & ORDER_SCORING.known(gold)
            in_one_group = np.stack([scores, np.zeros(len(scores))], axis=1)
            rows += ORDER_SCORING.rows(gold[known], in_one_group[known], split)
        return rows


# Gold is true scores, or ranks from the worst, [N], NaN where unknown
READING = Reading[Annotations, Floats](PREFERENCE, "preferences", read_gold_ratings)
AGGREGATING = PreferenceAggregating(PREFERENCE, "annotator-bradley-terry")
PREFERENCES = Kind(
    labels=PREFERENCE,
    options=KindOptions(
        ("classes", *OF_TABLES),
        refused={
            **FOR_CLASSES,
            "predictions": "a report does not compare scores of preferences; leave it out.",
            "use_gold": "no method for preferences takes known scores; leave it out.",
            "image": "preferences are between two tasks, which --columns names; leave it out.",
            "wide": "a wide table has one task a row, and a preference has two.",
        },
        training=("gold",),
        inputs=("annotations", "instances", "gold"),
    ),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=PreferenceTraining(PREFERENCE, READING, AGGREGATING, SCORING),
    prediction=Prediction("score", ("task", "score")),
    load_page=loaded("crowdzoo.kinds.preferences.page:PreferencePage"),
    load_measure=loaded("crowdzoo.kinds.preferences.measure:PreferenceMeasure"),
    load_questions=made("crowdzoo.kinds.preferences.questions:PreferenceQuestions"),
    load_records=made("crowdzoo.kinds.preferences.records:PreferenceRecords"),
)
