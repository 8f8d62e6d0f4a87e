"""left_out: measures the gain from leaving out annotators."""

from typing import Any

import numpy as np

from crowdzoo.aggregation import MultiLabel
from crowdzoo.aggregation.base import ignored
from crowdzoo.aggregation.registry import METHODS_OF, create
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences, annotations_of, with_annotations
from crowdzoo.kinds.scoring import Codes, Flags, Floats, Objects
from crowdzoo.quality.figures import NORMAL_975

Crowd = Annotations | CrowdSequences
MOST_TRIED = 200_000  # annotations; the method is fitted ten times to four fifths of them
FOLDS = 5
LEAST_KEPT = 3  # annotators


def left_out(
    crowd: Crowd, method: str, gone: Flags, seed: int = 0, labels: Objects | None = None, families: Codes | None = None
) -> tuple[float, float, float] | None:
    """Compare labels made with and without some annotators, using the answers of the others.

    Each fifth of the remaining annotators is held out in turn. Labels are made from the rest, with and without the
    annotators in question, and both are compared with the held-out answers.

    Args:
        crowd: annotations, or sentences.
        method: name of the aggregation method, used with its default settings.
        gone: annotators to leave out, bool [R].
        seed: seed of the folds.
        families: see `copy_families`, [R]. Annotators with a copy in `gone` are not held out, since the answers are the
            same.
        labels: names of the labels, [J], if a task may have several; each is a yes-or-no question.

    Returns:
        How much better labels made without them agree with held-out answers, as the share of equal answers (to all
        labels if there are several) or, for ratings, as a share of their variance; and the ends of the 95 % interval
        for the number of tasks. None if fewer than three annotators would remain, labels are free texts, there are more
        than `MOST_TRIED` annotations (times labels), or the method cannot be created by name.
    """
    table = annotations_of(crowd)
    annotators = table.annotator_ids
    judging = ~(gone if families is None else np.isin(families, families[gone]))
    kept = np.flatnonzero(judging & (np.bincount(annotators, minlength=len(gone)) > 0))
    questions = len(table) * (1 if labels is None else len(labels))
    if len(kept) < LEAST_KEPT or questions > MOST_TRIED or method not in METHODS_OF[table.kind]:
        return None
    if (labels is None and table.repeats) or table.label_kind.values:
        return None
    folds = np.full(len(gone), -1)
    folds[kept] = np.random.default_rng(seed).permutation(len(kept)) % FOLDS
    aggregator: Any = create(method, kind=table.kind)
    if labels is not None:
        none = [str(name) for name in np.asarray(table.classes).tolist() if name not in labels.tolist()]
        aggregator = MultiLabel(method, *none)
    gains, tasks = [], []
    for fold in range(min(FOLDS, len(kept))):
        held, rest = folds[annotators] == fold, folds[annotators] != fold
        with ignored(Warning):  # warnings about a part of the annotations add nothing
            parts = (table.select_rows(rows) for rows in (rest, rest & ~gone[annotators]))
            results = [aggregator.fit(with_annotations(crowd, part)) for part in parts]
        if labels is None:
            with_them, without = (_fits(result, table, held, crowd) for result in results)
            gains.append(without - with_them)
            tasks.append(table.task_ids[held])
            continue
        for place, answers in enumerate(aggregator.tables(table.select_rows(held)).values()):
            with_them, without = (result.chosen[answers.task_ids, place] == answers.labels for result in results)
            gains.append(without.astype(float) - with_them)
            tasks.append(answers.task_ids)
    values, clusters = np.concatenate(gains), np.concatenate(tasks)
    sums = np.bincount(clusters, values - values.mean(), table.num_tasks)
    mean, half = float(values.mean()), NORMAL_975 * float(np.sqrt((sums**2).sum())) / len(values)
    return mean, mean - half, mean + half


def _fits(result: Any, table: Annotations, rows: Flags, crowd: Any) -> Floats:
    """How well a result fits each annotation, [n]: 1 if equal, 0 if not; for ratings, a negative squared error."""
    tasks, labels = table.task_ids[rows], table.labels[rows]
    if table.right_ids is not None:
        ahead = result.scores[tasks] - result.scores[table.right_ids[rows]]
        return np.where(labels == 2, 0.5, np.where(labels == 1, ahead < 0, ahead > 0).astype(float))
    if table.positions is not None:
        return (result.labels[crowd.starts[tasks] + table.positions[rows]] == labels).astype(float)
    if table.classes is None:
        return -((labels - result.estimates[tasks]) ** 2) / max(float(table.labels.var()), 1e-12)
    return (result.labels[tasks] == labels).astype(float)
