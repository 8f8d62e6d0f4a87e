"""TextAgreement: how far texts of one task agree, and annotators with the others of their tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.edits import edits, error_rates
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.quality.columns import ratio
from crowdzoo.quality.krippendorff import Alpha, drawn, with_interval
from crowdzoo.quality.wilson import NORMAL_975

DRAWN = 100_000  # pairs of texts of any tasks

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextAgreement:
    """Agreement of free texts, with R annotators.

    Attributes:
        alpha: Krippendorff's alpha with the error rate of two texts as distance; None where it is not defined.
        error_rate: of two texts of one task, mean over all of these.
        rates: of an annotator's texts against those of the others, edits over tokens, [R]; NaN where nobody else wrote.
        low: lower end of its interval of 95 %, [R].
        high: the other end, [R].
        kinds: its parts by `ERRORS`, [R, 3].
        shared: texts of the annotator that could be compared, [R].
    """

    alpha: Alpha | None
    error_rate: float | None
    rates: Array
    low: Array
    high: Array
    kinds: Array
    shared: NDArray[np.int64]

    @classmethod
    def of(
        cls, table: TextTable, bootstrap: int = 0, seed: int = 0, on_sample: Callable[[], None] | None = None
    ) -> TextAgreement:
        """Measures a table.

        The expected distance is that of two texts of any tasks, of which so many pairs are drawn. An annotator's text
        is compared with that of the others which is nearest to them: their medoid.

        Args:
            table: texts.
            bootstrap: samples of tasks for the interval of alpha, in which the expected distance stays as it is.
            seed: of the draws.
            on_sample: is called after each sample.
        """
        alpha = _alpha(table, bootstrap, seed, on_sample)
        (left, right), far = table.pairs, table.distances
        rows, others, apart = np.r_[left, right], np.r_[right, left], np.r_[far, far]
        rest = table.sums(far)[others] - apart  # how far the other text is from the rest
        order = np.lexsort((others, np.round(rest, 12), rows))
        rows, firsts = np.unique(rows[order], return_index=True)
        nearest = others[order][firsts]
        counts = edits(table.tokens, table.said[rows], table.said[nearest])
        sizes = table.tokens.lengths[table.said[nearest]]
        who, number = table.who[rows], table.annotations.num_annotators
        tokens = np.bincount(who, sizes, number)
        kinds = np.stack([ratio(np.bincount(who, each, number), tokens) for each in counts.T], axis=1)
        rates, shared = kinds.sum(axis=1), np.bincount(who, minlength=number)
        # of a ratio of sums, with the number of texts less one
        squares = np.bincount(who, (counts.sum(axis=1) - rates[who] * sizes) ** 2, number)
        width = NORMAL_975 * ratio(np.sqrt(squares * ratio(shared, shared - 1.0)), tokens)
        return cls(
            alpha, float(far.mean()) if len(far) else None, rates, np.maximum(rates - width, 0), rates + width, kinds,
            shared,
        )  # fmt: skip


def _alpha(table: TextTable, bootstrap: int, seed: int, on_sample: Callable[[], None] | None) -> Alpha | None:
    several = table.sizes > 1
    rows = np.flatnonzero(several[table.tasks])
    if not len(rows):
        return None
    within = (table.sums(table.distances) / np.maximum(table.sizes - 1, 1)[table.tasks])[rows]
    one, other = np.random.default_rng(seed).choice(rows, (2, DRAWN))
    apart = one != other
    expected = float(error_rates(table.tokens, table.said[one[apart]], table.said[other[apart]]).mean())
    if not expected > 0:
        return None
    observed = float(within.mean())
    alpha = Alpha(1 - observed / expected, "edits", observed, expected, int(several.sum()), len(rows))
    sums, sizes = table.of_tasks(table.sums(table.distances) / np.maximum(table.sizes - 1, 1)[table.tasks]), table.sizes
    sums, sizes = sums[several], sizes[several]
    samples = drawn(len(sums), bootstrap if len(sums) > 1 else 0, seed, on_sample)
    return with_interval(alpha, [1 - float(each @ sums / (each @ sizes)) / expected for each in samples])
