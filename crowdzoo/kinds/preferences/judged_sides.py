"""JudgedSides: judgments for one side against the order that the other annotators' judgments give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.preferences.judged_pairs import JudgedPairs
from crowdzoo.quality.wilson import NORMAL_975, wilson

LEFT, EQUAL = 0, 2
ONE_SIDE = 0.1  # share of the judgments whose better task stands on a side, below which a bias cannot be told
LEVEL = 1e-9  # difference of two scores, in log odds, up to which neither task is ahead


@dataclass(frozen=True, eq=False)
class JudgedSides:
    """Judgments for one side against the order that the other annotators' judgments give.

    Attributes:
        linked: whether the others' judgments compare the two tasks, bool [A].
        named: whether the judgment is for one side, too, bool [A].
        usable: whether, besides, the others have one task ahead, bool [A].
        left_ahead: whether the others have the left task ahead, bool [A].
        right: whether the judgment agrees, bool [A].
        who: annotators of the judgments, [A].
        said_left: bool [A].
    """

    linked: NDArray[np.bool_]
    named: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    left_ahead: NDArray[np.bool_]
    right: NDArray[np.bool_]
    who: NDArray[np.int64]
    said_left: NDArray[np.bool_]

    @classmethod
    def of(cls, annotations: Annotations, lead: NDArray[np.float64]) -> JudgedSides:
        """The judgments of a table.

        Args:
            annotations: A preferences.
            lead: what `order_of_others` gave, [A].
        """
        said_left, linked = annotations.labels == LEFT, ~np.isnan(lead)
        named = linked & (annotations.labels != EQUAL)
        usable, ahead = named & (np.abs(lead) > LEVEL), np.nan_to_num(lead) > 0
        return cls(linked, named, usable, ahead, usable & (said_left == ahead), annotations.annotator_ids, said_left)

    def leaning(
        self, groups: NDArray[np.int64], number: int, deviations: float = NORMAL_975
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Share of left where the better task stands on either side equally often, and the ends of its interval.

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
            with np.errstate(invalid="ignore"):
                share = np.bincount(groups, weights * self.said_left, number) / sizes
            low, high = wilson(share, sizes, deviations)
            middle, below, above = middle + share / 2, below + (share - low) ** 2, above + (high - share) ** 2
        return middle, middle - np.sqrt(below) / 2, middle + np.sqrt(above) / 2


def one_sided(annotations: Annotations, judged: JudgedSides, pairs: JudgedPairs) -> float | None:
    """Share of left among the judgments for one side, where it is nearly all or nothing, and quality may be the reason.

    That is where annotators did not judge pairs in both orders, and judgments agree with the order by the others: a
    crowd that answers by the side, and a file that names the preferred task first, look the same. None elsewhere.
    """
    said = annotations.labels[annotations.labels != EQUAL]
    share = float((said == LEFT).mean()) if len(said) else 0.5
    if abs(share - 0.5) <= 0.5 - ONE_SIDE:
        return None
    judgments = len(np.unique(pairs.of_rows * max(annotations.num_annotators, 1) + pairs.who))
    twice = int(pairs.consistent(annotations.num_annotators)[1].sum())
    number = int(judged.usable.sum())
    low, _ = wilson([judged.right.sum() / max(number, 1)], [number])
    return share if twice < ONE_SIDE * judgments and (not number or low[0] > 0.5) else None
