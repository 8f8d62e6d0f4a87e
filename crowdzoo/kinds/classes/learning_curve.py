"""learning_curve: aggregated labels as a function of the number of annotations per task."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdzoo.aggregation.base import ignored
from crowdzoo.aggregation.classes.one_coin import OneCoinDawidSkene
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.page_parts import DIGITS, share_and_ends
from crowdzoo.kinds.scoring import Codes, Floats
from crowdzoo.quality.figures import NORMAL_975

MOST_OF_CURVE = 200_000  # annotations; with more, the page says that there is no curve
STEPS = 6  # numbers of annotations per task, besides all of them


def learning_curve(annotations: Annotations, gold: Codes | None, *, draws: int, seed: int) -> dict[str, object] | None:
    """Compare labels from part of each task's annotations with those from all of them, and with gold.

    At each step, each task keeps the same share of its annotations, at least one, drawn at random, so that tasks have
    1, 2, … on average. One-coin is fitted to them: it is the fastest method that weights annotators, and needs few
    annotations of each. The last step has all annotations.

    Args:
        annotations: kind classification.
        gold: true classes, -1 where unknown, [N]; None without gold.
        draws: number of draws of the annotations per step.
        seed: seed of the draws.

    Returns:
        None without draws, or if no task has two annotations. Else `method`, `draws`, the number of labelled `tasks`
        and of those with `gold`, `skipped` (True above `MOST_OF_CURVE` annotations; nothing follows then), and
        `points`: [mean number of annotations per task, share of labels equal to those from all annotations, its
        interval's ends, share of correct labels, its interval's ends]; means over draws, with 95 % intervals for the
        number of tasks. `last` is the number of annotations per task added by the last step, the share of labels that
        it changes, with its interval, and the increase of accuracy, with its interval. Values that need gold are None
        without it.
    """
    most = int(annotations.redundancy.max(initial=0))
    if not draws or most < 2:
        return None
    summary: dict[str, object] = {"method": "one-coin", "draws": draws, "skipped": len(annotations) > MOST_OF_CURVE}
    if summary["skipped"]:
        return summary
    labelled = np.flatnonzero(annotations.redundancy)
    known = labelled[:0] if gold is None else labelled[gold[labelled] >= 0]
    full = _labels(annotations)
    truth = full if gold is None else gold
    points: list[list[Any]] = []
    mean = len(annotations) / len(labelled)
    same, right = np.ones(len(labelled)), (full[known] == truth[known]).astype(float)
    means, parts = [same, right], [annotations]  # of the second-to-last step: mean over draws, by task
    for kept in _steps(mean):
        parts = [_part(annotations, kept / mean, np.random.default_rng([seed, draw])) for draw in range(draws)]
        labels = np.stack([_labels(part) for part in parts])
        means = [(labels[:, labelled] == full[labelled]).mean(axis=0), (labels[:, known] == truth[known]).mean(axis=0)]
        points.append([np.mean([*map(len, parts)]) / len(labelled), *_share(means[0]), *_share(means[1])])
    added = mean - (points[-1][0] if points else mean)
    points.append([mean, *_share(same), *_share(right)])
    return {
        **summary,
        "tasks": len(labelled),
        "gold": len(known),
        "points": points,
        "last": [added, *_share(1 - means[0]), *_mean(right - means[1])],
    }


def _labels(annotations: Annotations) -> Codes:
    with ignored(Warning):  # warnings about a part of the annotations add nothing
        return OneCoinDawidSkene().fit(annotations).labels


def _steps(mean: float) -> list[int]:
    """Numbers of annotations per task, below their mean."""
    return np.unique(np.rint(np.geomspace(1, max(mean - 1, 1), STEPS)).astype(int)).tolist()


def _part(annotations: Annotations, share: float, rng: np.random.Generator) -> Annotations:
    """Select a share of each task's annotations, rounded at random; at least one."""
    sizes = annotations.redundancy
    kept = np.maximum(np.floor(sizes * share + 1e-9 + rng.random(len(sizes))), 1)
    order = np.lexsort((rng.random(len(annotations)), annotations.task_ids))
    rank = np.empty(len(annotations), np.int64)
    rank[order] = np.arange(len(annotations)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return annotations.select_rows(rank < kept[annotations.task_ids])


def _share(values: Floats) -> tuple[float | None, ...]:
    """Mean of shares by task, and its interval for the number of tasks."""
    return share_and_ends(float(values.sum()), len(values))


def _mean(values: Floats) -> list[float | None]:
    """Mean of differences, and its interval."""
    if len(values) < 2:
        return [None, None, None]
    mean, half = values.mean(), NORMAL_975 * values.std(ddof=1) / np.sqrt(len(values))
    return [round(float(number), DIGITS) for number in (mean, mean - half, mean + half)]
