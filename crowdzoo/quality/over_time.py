"""drift: agreement of annotators with others over time."""

from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import chdtrc

from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.figures import interval, wilson

PERIODS = 4
FEWEST = 10  # annotations of a period
STEPS, OF_STEP = 20, 100  # of the whole crowd, and annotations of one at least
CHANCE = 0.05  # that a crowd in which nobody changes has an annotator who seems to


def drift(annotations: Annotations) -> pa.Table:
    """Computes the agreement of annotators with the others who labelled their tasks, by period.

    An annotator's annotations of tasks that others labelled are split into four periods of equal size, in the order of
    their timestamps; into two or three if there are fewer than forty. An annotator
    with fewer than twenty, or with equal times only, has no periods.

    Columns: `annotator` (code), `period` (from 1), `start` and `end` (seconds since 1970), `annotations`, `agreement`
    (mean share of the task's other annotations that are equal), the ends of its 95 % interval (Wilson's),
    `agreement_low` and `agreement_high`, and `changes`: whether the annotator's agreement changes beyond chance.

    `changes` is a permutation test of the means of the periods (the Kruskal-Wallis statistic on values instead of
    ranks, with its chi-squared distribution), at 5 % for all annotators together (Bonferroni). The mean of the other
    annotators at that time is subtracted from each value, so that tasks that become harder for all do not count.

    Args:
        annotations: kind classification, one label per annotator and task.

    Source:
        W. H. Kruskal and W. A. Wallis: Use of Ranks in One-Criterion Variance Analysis. Journal of the American
        Statistical Association 47, 1952.
    """
    tasks, annotators, number = annotations.task_ids, annotations.annotator_ids, annotations.num_annotators
    times = np.full(len(tasks), np.nan) if annotations.timestamp is None else annotations.timestamp
    peers = annotations.redundancy[tasks] - 1
    cells = tasks * annotations.num_classes + annotations.labels
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    agreement = (counts[place] - 1) / np.maximum(peers, 1)

    rows = np.flatnonzero((peers > 0) & np.isfinite(times))
    steps = max(1, min(STEPS, len(rows) // OF_STEP))
    step = np.argsort(np.argsort(times[rows], kind="stable"), kind="stable") * steps // max(len(rows), 1)
    usual = np.zeros(len(tasks))
    usual[rows] = _of_others(agreement[rows], annotators[rows] * steps + step, step)
    rows = rows[np.lexsort((times[rows], annotators[rows]))]
    total = np.bincount(annotators[rows], minlength=number)
    first = np.cumsum(total) - total
    parts = np.minimum(total // FEWEST, PERIODS)
    some = np.flatnonzero(parts > 1)
    parts[some[times[rows[first[some]]] == times[rows[first[some] + total[some] - 1]]]] = 0
    ranks = np.arange(len(rows)) - first[annotators[rows]]
    kept = parts[annotators[rows]] > 1
    rows, ranks = rows[kept], ranks[kept]
    owner = annotators[rows]
    groups, period, sizes = np.unique(
        owner * PERIODS + ranks * parts[owner] // np.maximum(total[owner], 1), return_inverse=True, return_counts=True
    )
    share = np.bincount(period, agreement[rows]) / sizes

    beyond = agreement[rows] - usual[rows]
    beyond -= (np.bincount(owner, beyond, number) / np.maximum(total, 1))[owner]
    between = np.bincount(groups // PERIODS, np.bincount(period, beyond) ** 2 / sizes, number)
    spread = np.maximum(np.bincount(owner, beyond**2, number), 1e-12)
    p_values = chdtrc(np.maximum(parts - 1, 1), (total - 1) * between / spread)
    changes = (parts > 1) & (p_values * max((parts > 1).sum(), 1) < CHANCE)
    starts = np.cumsum(sizes) - sizes
    columns = {"annotator": groups // PERIODS, "period": groups % PERIODS + 1, "start": times[rows[starts]]}
    columns |= {"end": times[rows[starts + sizes - 1]], "annotations": sizes}
    columns |= {**interval("agreement", share, *wilson(share, sizes)), "changes": changes[groups // PERIODS]}
    return pa.table(columns)


def worse_periods(periods: pa.Table, number: int) -> list[str | None]:
    """Periods in which annotators whose agreement changes agreed less than before or after, for `--exclude`.

    Their periods are split in two where the means differ most, in standard errors. A day means its first moment.

    Args:
        periods: result of `drift`.
        number: R, number of annotators.

    Returns:
        For example "2026-02-14..", from that time on, or "..2026-02-14T12:00:05", before it; None for all others.
    """
    spans: list[str | None] = [None] * number
    rows = dict[int, list[dict[str, Any]]]()
    for row in periods.filter(periods["changes"]).to_pylist():
        rows.setdefault(row["annotator"], []).append(row)
    for annotator, of in rows.items():
        sizes = np.array([row["annotations"] for row in of], float)
        sums = np.cumsum(sizes * [row["agreement"] for row in of])
        before, after = np.cumsum(sizes)[:-1], sizes.sum() - np.cumsum(sizes)[:-1]
        change = (sums[-1] - sums[:-1]) / after - sums[:-1] / before
        cut = int(np.argmax(np.abs(change) * np.sqrt(before * after)))
        last, first = (datetime.fromtimestamp(time, timezone.utc) for time in (of[cut]["end"], of[cut + 1]["start"]))
        day = first.replace(hour=0, minute=0, second=0, microsecond=0)
        at = day if last < day else first.replace(microsecond=0)
        text = f"{at:%Y-%m-%d}" if at == day else f"{at:%Y-%m-%dT%H:%M:%S}"
        spans[annotator] = f"{text}.." if change[cut] < 0 else f"..{text}"
    return spans


def _of_others(values: NDArray[np.float64], groups: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each row, the mean of the values of its step, except for those of its own group."""
    _, groups = np.unique(groups, return_inverse=True)
    ones = np.ones(len(values))
    sums, counts = (np.bincount(step, x)[step] - np.bincount(groups, x)[groups] for x in (values, ones))
    return np.asarray(sums / np.maximum(counts, 1))
