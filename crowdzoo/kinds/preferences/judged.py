"""Judgments by pair, regardless of sides; and by side, compared with the order of the other annotators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.compared_tasks import pairs_either_way
from crowdzoo.quality.figures import NORMAL_975, ratio, wilson
from crowdzoo.quality.krippendorff import Alpha, draw_tasks, with_interval
from crowdzoo.reading.instances.gold import EQUAL, TURNED

LEFT = 0
ONE_SIDE = 0.1  # share of judgments whose better task is on one side, below which a bias cannot be detected
LEVEL = 1e-9  # difference of scores, in log odds, up to which neither task is ahead


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """A judgments of P pairs, regardless of which task was on the left.

    Attributes:
        lower: code of one task, [P].
        higher: code of the other task, above `lower`, [P].
        of_rows: pair of each judgment, [A].
        answers: 0 if the lower code is better, 1 if the higher code is, 2 if equal, [A].
        counts: number of each answer, [P, 3].
        annotators: annotator of each judgment, [A].
        swapped: whether the higher task was on the left, bool [A].
    """

    lower: Codes
    higher: Codes
    of_rows: Codes
    answers: Codes
    counts: Codes
    annotators: Codes
    swapped: Flags

    @classmethod
    def of(cls, annotations: Annotations) -> JudgedPairs:
        """Create the pairs of a table of preferences."""
        pairs, of_rows, answers = pairs_either_way(annotations)
        counts = np.bincount(of_rows * 3 + answers, minlength=3 * len(pairs[0])).reshape(-1, 3)
        swapped = annotations.task_ids > np.asarray(annotations.right_ids)
        return cls(*pairs, of_rows, answers, counts, annotations.annotator_ids, swapped)

    @property
    def agreement(self) -> float | None:
        """How often two annotators give the same answer, mean over pairs; None if no pair has two annotators.

        The expectation if one judgment is drawn for annotators who judged a pair several times.
        """
        together, sizes = self._coincidences()
        return float((together[:, range(3), range(3)].sum(axis=1) / sizes).mean()) if len(sizes) else None

    def alpha(
        self, metric: str, bootstrap: int, seed: int, on_sample: Callable[[], None] | None = None
    ) -> Alpha | None:
        """Krippendorff's alpha of the answers to pairs; None where undefined.

        Each pair counts in both orders. Otherwise, a table whose better task is always on the left would have a single
        answer, and no agreement beyond chance. If an annotator judged a pair several times, coincidences are the
        expectation for one judgment drawn at random. An annotator who answers by side agrees with nobody beyond chance.

        Args:
            metric: "nominal", "ordinal" or "interval".
            bootstrap: number of samples, which draw whole pairs.
            seed: seed of the samples.
            on_sample: called after each sample.
        """
        together, sizes = self._coincidences()
        both = (together + together[:, TURNED][:, :, TURNED]).reshape(len(sizes), 9)

        def disagreements(weights: Floats) -> tuple[float, float]:
            cells = (weights @ both).reshape(3, 3)
            counts, number = cells.sum(axis=1), cells.sum()
            if np.count_nonzero(counts) < 2:
                return 0.0, 0.0
            apart = _apart(counts, metric)
            return float((cells * apart).sum() / number), float(counts @ apart @ counts / (number * (number - 1)))

        observed, expected = disagreements(np.ones(len(sizes)))
        bootstrap = bootstrap if len(sizes) > 1 else 0  # a single pair has no interval
        if not expected > 0:
            return None
        alpha = Alpha(1 - observed / expected, metric, observed, expected, 2 * len(sizes), int(2 * sizes.sum()))
        samples = map(disagreements, draw_tasks(len(sizes), bootstrap, seed, on_sample))
        return with_interval(alpha, [1 - above / below for above, below in samples if below > 0])

    def _coincidences(self) -> tuple[Floats, Codes]:
        """Coincidences of two annotators' answers, [n, 3, 3], and numbers of annotators, [n].

        Covers pairs with at least two annotators. The cells of a pair sum to the number of its annotators.
        """
        number = self.annotators.max(initial=0) + 1
        keys, shares = self._shares(self.of_rows * number + self.annotators, np.ones(len(self.annotators), bool))
        pairs = keys // number
        sizes = np.bincount(pairs, minlength=len(self.lower))
        sums, same = np.zeros((len(sizes), 3)), np.zeros((len(sizes), 3, 3))
        np.add.at(sums, pairs, shares)
        np.add.at(same, pairs, shares[:, :, None] * shares[:, None, :])
        several = sizes > 1
        sums, same, sizes = sums[several], same[several], sizes[several]
        return (sums[:, :, None] * sums[:, None, :] - same) / (sizes - 1)[:, None, None], sizes

    def _shares(self, keys: Codes, rows: Flags) -> tuple[Codes, Floats]:
        """Distinct keys of the selected judgments, [n], and the shares of their three answers, [n, 3]."""
        distinct, places = np.unique(keys[rows], return_inverse=True)
        counts = np.bincount(places * 3 + self.answers[rows], minlength=3 * len(distinct)).reshape(-1, 3)
        return distinct, counts / counts.sum(axis=1, keepdims=True)

    def consistent(self, number: int) -> tuple[Floats, Codes]:
        """Share of equal answers among the pairs that an annotator judged in both orders.

        The expectation if one of several judgments in the same order is drawn at random.

        Args:
            number: number of annotators, R.

        Returns:
            The share of each annotator, [R], NaN without such pairs; and the number of such pairs, [R].
        """
        keys, swapped = self.of_rows * max(number, 1) + self.annotators, self.swapped
        (straight, shares), (turned, turned_shares) = self._shares(keys, ~swapped), self._shares(keys, swapped)
        both, first, second = np.intersect1d(straight, turned, assume_unique=True, return_indices=True)
        annotators = both % max(number, 1)
        same = (shares[first] * turned_shares[second]).sum(axis=1)
        sizes = np.bincount(annotators, minlength=number)
        return ratio(np.bincount(annotators, same, number), sizes), sizes


def _apart(counts: Floats, metric: str) -> Floats:
    """Squared distances of the three answers, [3, 3]."""
    if metric == "nominal":
        return 1 - np.eye(3)
    order = [0, 2, 1]  # equal is between the two tasks
    values = np.array([-1.0, 0.0, 1.0])
    if metric == "ordinal":
        values = np.cumsum(counts[order]) - counts[order] / 2
    places = np.empty(3)
    places[order] = values
    return np.asarray((places[:, None] - places) ** 2)


@dataclass(frozen=True, eq=False)
class JudgedSides:
    """Judgments for one side, compared with the order from the other annotators' judgments.

    Attributes:
        linked: whether the others' judgments relate the two tasks, bool [A].
        named: whether, in addition, the judgment is for one side, bool [A].
        usable: whether, in addition, the others rank one task ahead, bool [A].
        left_ahead: whether the others rank the left task ahead, bool [A].
        right: whether the judgment agrees, bool [A].
        annotators: annotators of the judgments, [A].
        said_left: whether the judgment is for the left side, bool [A].
    """

    linked: Flags
    named: Flags
    usable: Flags
    left_ahead: Flags
    right: Flags
    annotators: Codes
    said_left: Flags

    @classmethod
    def of(cls, annotations: Annotations, lead: Floats) -> JudgedSides:
        """Create the judgments of a table.

        Args:
            annotations: annotations with A preferences.
            lead: result of `order_of_others`, [A].
        """
        said_left, linked = annotations.labels == LEFT, ~np.isnan(lead)
        named = linked & (annotations.labels != EQUAL)
        usable, ahead = named & (np.abs(lead) > LEVEL), np.nan_to_num(lead) > 0
        return cls(linked, named, usable, ahead, usable & (said_left == ahead), annotations.annotator_ids, said_left)

    def leaning(self, groups: Codes, number: int, deviations: float = NORMAL_975) -> tuple[Floats, Floats, Floats]:
        """Share of left if the better task were on either side equally often, with its interval.

        If the others rank neither task ahead, a judgment counts half with the left and half with the right task ahead.

        Args:
            groups: group of each judgment, [A], such as its annotator.
            number: number of groups, n.
            deviations: half width of the interval in standard errors.

        Returns:
            Three arrays [n]; NaN where the others always rank the same side ahead.

        Source:
            G. Y. Zou, A. Donner: Construction of confidence limits about effect measures. Statistics in Medicine 27,
            2008: limits for a mean of two shares from the Wilson limits of each.
        """
        middle, below, above = np.zeros(number), np.zeros(number), np.zeros(number)
        for ahead in (True, False):
            weights = np.where(self.usable, self.left_ahead == ahead, 0.5 * self.named)
            sizes = np.bincount(groups, weights, number)
            share = ratio(np.bincount(groups, weights * self.said_left, number), sizes)
            low, high = wilson(share, sizes, deviations)
            middle, below, above = middle + share / 2, below + (share - low) ** 2, above + (high - share) ** 2
        return middle, middle - np.sqrt(below) / 2, middle + np.sqrt(above) / 2


def one_sided(annotations: Annotations, judged: JudgedSides, pairs: JudgedPairs) -> float | None:
    """Share of left among judgments for a side, if it is close to 0 or 1 and may be due to quality; else None.

    This needs annotators who did not judge pairs in both orders, and judgments that agree with the order of the others.
    A crowd that answers by side then looks like a file that lists the preferred task first.
    """
    labels = annotations.labels[annotations.labels != EQUAL]
    share = float((labels == LEFT).mean()) if len(labels) else 0.5
    if abs(share - 0.5) <= 0.5 - ONE_SIDE:
        return None
    judgments = len(np.unique(pairs.of_rows * max(annotations.num_annotators, 1) + pairs.annotators))
    twice = int(pairs.consistent(annotations.num_annotators)[1].sum())
    number = int(judged.usable.sum())
    low, _ = wilson([judged.right.sum() / max(number, 1)], [number])
    return share if twice < ONE_SIDE * judgments and (not number or low[0] > 0.5) else None
