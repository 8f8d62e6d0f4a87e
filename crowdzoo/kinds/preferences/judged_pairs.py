"""JudgedPairs: judgments by pair, whichever task stood on the left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.krippendorff import Alpha

EQUAL = 2
TURNED = [1, 0, 2]  # the answers, if the two tasks change places


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Judgments by pair, whichever task stood on the left; A judgments, P pairs.

    Attributes:
        lower: task code, [P].
        higher: task code, above `lower`, [P].
        of_rows: pair of each judgment, [A].
        answers: 0 the lower is better, 1 the higher, 2 equal, [A].
        counts: how often each answer was given, [P, 3].
        who: annotator of each judgment, [A].
        swapped: whether the higher task stood on the left, bool [A].
    """

    lower: NDArray[np.int64]
    higher: NDArray[np.int64]
    of_rows: NDArray[np.int64]
    answers: NDArray[np.int64]
    counts: NDArray[np.int64]
    who: NDArray[np.int64]
    swapped: NDArray[np.bool_]

    @classmethod
    def of(cls, annotations: Annotations) -> JudgedPairs:
        """The pairs of a table of preferences."""
        left, right = annotations.task_ids, annotations.right_ids
        assert right is not None
        low, high = np.minimum(left, right), np.maximum(left, right)
        keys, of_rows = np.unique(low * annotations.num_tasks + high, return_inverse=True)
        said = annotations.labels
        answers = np.where((left > right) & (said != EQUAL), 1 - said, said)
        counts = np.bincount(of_rows * 3 + answers, minlength=3 * len(keys)).reshape(-1, 3)
        pairs = keys // annotations.num_tasks, keys % annotations.num_tasks
        return cls(*pairs, of_rows, answers, counts, annotations.annotator_ids, left > right)

    @property
    def agreement(self) -> float | None:
        """How often two annotators give a pair the same answer, mean over the pairs; None where no pair has two.

        Of several judgments of a pair by one annotator, one is drawn at random: this is the mean over all draws.
        """
        together, sizes = self._coincidences()
        return float((together[:, range(3), range(3)].sum(axis=1) / sizes).mean()) if len(sizes) else None

    def alpha(
        self, metric: str, bootstrap: int, seed: int, on_sample: Callable[[], None] | None = None
    ) -> Alpha | None:
        """Krippendorff's alpha of the answers to pairs; None where it is not defined.

        Each pair counts in both orders, so that it does not matter which task is called the first: with answers in one
        order, a table whose better task always stands on the left would have one answer, and no agreement beyond
        chance. Of several judgments of a pair by one annotator, one is drawn at random; coincidences are the means over
        all draws. An annotator who answers by the side agrees with nobody more than by chance.

        Args:
            metric: "nominal", "ordinal" or "interval".
            bootstrap: number of samples; whole pairs are drawn.
            seed: of the samples.
            on_sample: is called after each sample.
        """
        together, sizes = self._coincidences()
        both = (together + together[:, TURNED][:, :, TURNED]).reshape(len(sizes), 9)

        def disagreements(weights: NDArray[np.float64]) -> tuple[float, float]:
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
        draws, samples = np.random.default_rng(seed), []
        for _ in range(bootstrap):
            drawn = np.bincount(draws.integers(0, len(sizes), len(sizes)), minlength=len(sizes))
            above, below = disagreements(drawn.astype(np.float64))
            if below > 0:
                samples.append(1 - above / below)
            if on_sample is not None:
                on_sample()
        if not samples:
            return alpha
        low, high = np.quantile(samples, [0.025, 0.975]).tolist()
        return replace(alpha, low=low, high=high, confidence=0.95, num_samples=len(samples))

    def _coincidences(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """How often two answers of different annotators meet, [n, 3, 3], and how many annotators there are, [n].

        Of the pairs that two annotators judged or more. The cells of a pair sum to the number of its annotators.
        """
        number = self.who.max(initial=0) + 1
        keys, shares = self._shares(self.of_rows * number + self.who, np.ones(len(self.who), bool))
        pairs = keys // number
        sizes = np.bincount(pairs, minlength=len(self.lower))
        sums, own = np.zeros((len(sizes), 3)), np.zeros((len(sizes), 3, 3))
        np.add.at(sums, pairs, shares)
        np.add.at(own, pairs, shares[:, :, None] * shares[:, None, :])
        several = sizes > 1
        sums, own, sizes = sums[several], own[several], sizes[several]
        return (sums[:, :, None] * sums[:, None, :] - own) / (sizes - 1)[:, None, None], sizes

    def _shares(
        self, keys: NDArray[np.int64], rows: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Distinct keys of some judgments, [n], and the shares of their three answers, [n, 3]."""
        distinct, places = np.unique(keys[rows], return_inverse=True)
        counts = np.bincount(places * 3 + self.answers[rows], minlength=3 * len(distinct)).reshape(-1, 3)
        return distinct, counts / counts.sum(axis=1, keepdims=True)

    def consistent(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Of the pairs that an annotator judged in both orders, the share with the same answer.

        Of several judgments in one order, one is drawn at random: this is the mean over all draws.

        Args:
            number: of annotators, R.

        Returns:
            The share of each annotator, [R], NaN where there are no such pairs; and how many there are, [R].
        """
        keys, swapped = self.of_rows * max(number, 1) + self.who, self.swapped
        (found, shares), (turned, others) = self._shares(keys, ~swapped), self._shares(keys, swapped)
        both, one, other = np.intersect1d(found, turned, assume_unique=True, return_indices=True)
        who = both % max(number, 1)
        same = (shares[one] * others[other]).sum(axis=1)
        sizes = np.bincount(who, minlength=number)
        return np.divide(np.bincount(who, same, number), sizes, out=np.full(number, np.nan), where=sizes > 0), sizes


def _apart(counts: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
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
