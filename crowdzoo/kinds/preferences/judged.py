"""Judgments by pair, whichever task was on the left; and by side, against the order by the other annotators."""

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
ONE_SIDE = 0.1  # share of the judgments whose better task is on one side, below which a bias cannot be told
LEVEL = 1e-9  # difference of two scores, in log odds, up to which neither task is ahead


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Judgments by pair, whichever task was on the left; A judgments, P pairs.

    Attributes:
        lower: task code, [P].
        higher: task code, above `lower`, [P].
        of_rows: pair of each judgment, [A].
        answers: 0 the lower is better, 1 the higher, 2 equal, [A].
        counts: how often each answer was given, [P, 3].
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
        """The pairs of a table of preferences."""
        pairs, of_rows, answers = pairs_either_way(annotations)
        counts = np.bincount(of_rows * 3 + answers, minlength=3 * len(pairs[0])).reshape(-1, 3)
        swapped = annotations.task_ids > np.asarray(annotations.right_ids)
        return cls(*pairs, of_rows, answers, counts, annotations.annotator_ids, swapped)

    @property
    def agreement(self) -> float | None:
        """How often two annotators give a pair the same answer, mean over the pairs; None where no pair has two.

        If an annotator judged a pair several times, one judgment is drawn at random: this is the mean over all draws.
        """
        together, sizes = self._coincidences()
        return float((together[:, range(3), range(3)].sum(axis=1) / sizes).mean()) if len(sizes) else None

    def alpha(
        self, metric: str, bootstrap: int, seed: int, on_sample: Callable[[], None] | None = None
    ) -> Alpha | None:
        """Krippendorff's alpha of the answers to pairs; None where it is not defined.

        Each pair counts in both orders, so that it does not matter which task is called the first: with answers in one
        order, a table whose better task is always on the left would have one answer, and no agreement beyond
        chance. If an annotator judged a pair several times, one is drawn at random; coincidences are the means over
        all draws. An annotator who answers by the side agrees with nobody more than by chance.

        Args:
            metric: "nominal", "ordinal" or "interval".
            bootstrap: number of samples; whole pairs are drawn.
            seed: of the samples.
            on_sample: is called after each sample.
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
        bootstrap = bootstrap if len(sizes) > 1 else 0  # one pair has no interval
        if not expected > 0:
            return None
        alpha = Alpha(1 - observed / expected, metric, observed, expected, 2 * len(sizes), int(2 * sizes.sum()))
        samples = map(disagreements, draw_tasks(len(sizes), bootstrap, seed, on_sample))
        return with_interval(alpha, [1 - above / below for above, below in samples if below > 0])

    def _coincidences(self) -> tuple[Floats, Codes]:
        """How often two answers of different annotators meet, [n, 3, 3], and how many annotators there are, [n].

        Of the pairs that two annotators judged or more. The cells of a pair sum to the number of its annotators.
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
        """Distinct keys of some judgments, [n], and the shares of their three answers, [n, 3]."""
        distinct, places = np.unique(keys[rows], return_inverse=True)
        counts = np.bincount(places * 3 + self.answers[rows], minlength=3 * len(distinct)).reshape(-1, 3)
        return distinct, counts / counts.sum(axis=1, keepdims=True)

    def consistent(self, number: int) -> tuple[Floats, Codes]:
        """Of the pairs that an annotator judged in both orders, the share with the same answer.

        Of several judgments in one order, one is drawn at random: this is the mean over all draws.

        Args:
            number: of annotators, R.

        Returns:
            The share of each annotator, [R], NaN where there are no such pairs; and how many there are, [R].
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
    order = [0, 2, 1]  # equal lies between the two tasks
    values = np.array([-1.0, 0.0, 1.0])
    if metric == "ordinal":
        values = np.cumsum(counts[order]) - counts[order] / 2
    places = np.empty(3)
    places[order] = values
    return np.asarray((places[:, None] - places) ** 2)


@dataclass(frozen=True, eq=False)
class JudgedSides:
    """Judgments for one side against the order that the other annotators' judgments give.

    Attributes:
        linked: whether the others' judgments compare the two tasks, bool [A].
        named: whether the judgment is for one side, too, bool [A].
        usable: whether the others have one task ahead as well, bool [A].
        left_ahead: whether the others have the left task ahead, bool [A].
        right: whether the judgment agrees, bool [A].
        annotators: annotators of the judgments, [A].
        said_left: bool [A].
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
        """The judgments of a table.

        Args:
            annotations: A preferences.
            lead: what `order_of_others` gave, [A].
        """
        said_left, linked = annotations.labels == LEFT, ~np.isnan(lead)
        named = linked & (annotations.labels != EQUAL)
        usable, ahead = named & (np.abs(lead) > LEVEL), np.nan_to_num(lead) > 0
        return cls(linked, named, usable, ahead, usable & (said_left == ahead), annotations.annotator_ids, said_left)

    def leaning(self, groups: Codes, number: int, deviations: float = NORMAL_975) -> tuple[Floats, Floats, Floats]:
        """Share of left where the better task is on either side equally often, and the ends of its interval.

        Where the others have neither task ahead, a judgment counts one half as if they had the left one ahead, and one
        half as if the right one.

        Args:
            groups: group of each judgment, [A], such as its annotator.
            number: of groups, n.
            deviations: half width in standard errors.

        Returns:
            Three arrays [n]; NaN where the others always have the same side ahead.

        Source:
            G. Y. Zou, A. Donner: Construction of confidence limits about effect measures. Statistics in Medicine 27,
            2008: the ends of a mean of two shares, from Wilson's ends of either.
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
    """Share of left among the judgments for one side, where it is nearly all or nothing, and quality may be the reason.

    That is where annotators did not judge pairs in both orders, and judgments agree with the order by the others: a
    crowd that answers by the side, and a file that names the preferred task first, look the same. None elsewhere.
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
