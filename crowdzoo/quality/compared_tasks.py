"""Comparisons of two tasks: circular majorities, and the order of tasks by the other annotators."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdzoo.aggregation.preferences.bradley_terry import BradleyTerry
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import PREFERENCE, require_kind

MOST_STEPS = 1_000_000_000  # of products of comparisons; more would take minutes
AT_ONCE = 10_000_000  # of these


@dataclass(frozen=True, eq=False)
class CircularTriads:
    """Triads of tasks in which each pair has a majority.

    Attributes:
        circular: number of triads in which the first is preferred to the second, the second to the third and the third
            to the first.
        total: number of all triads.
        of_tasks: number of circular triads of each task, int64 [N].
    """

    circular: int
    total: int
    of_tasks: NDArray[np.int64]

    @property
    def share(self) -> float:
        """Share of circular triads, NaN without triads; 1/4 for random majorities."""
        return self.circular / self.total if self.total else np.nan


def pairs_either_way(
    annotations: Annotations,
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of tasks that were compared, whichever of the two was on the left.

    Args:
        annotations: kind preference; A judgments of P pairs.

    Returns:
        Codes of both tasks of each pair, the lower ones and the higher ones, [P]; the pair of each judgment, [A]; and
        what it says: 0 the lower is better, 1 the higher, 2 equal, [A].
    """
    left, right, labels = annotations.task_ids, np.asarray(annotations.right_ids), annotations.labels
    number = max(annotations.num_tasks, 1)
    keys, pairs = np.unique(np.minimum(left, right) * number + np.maximum(left, right), return_inverse=True)
    return np.divmod(keys, number), pairs, np.where((left > right) & (labels < 2), 1 - labels, labels)


def circular_triads(annotations: Annotations) -> CircularTriads | None:
    """Counts contradictory majorities: A is preferred to B, B to C, and C to A.

    The majority of a pair includes all judgments of it, whichever task was on the left. A pair with a tie has no
    majority, and is in no triad.

    Args:
        annotations: kind preference; N tasks.

    Returns:
        The counts; None if so many pairs were compared that the search would take minutes.

    Raises:
        DataError: wrong kind.

    Source:
        M. G. Kendall, B. Babington Smith: On the Method of Paired Comparisons. Biometrika 31, 1940. Their coefficient
        of consistence is one minus the share of circular triads divided by the maximum share.
    """
    require_kind(annotations.label_kind, "circular_triads", PREFERENCE)
    (lower, higher), pair, answers = pairs_either_way(annotations)
    number = annotations.num_tasks
    ahead = np.bincount(pair, np.array([1, -1, 0])[answers], len(lower))
    sides = np.stack([lower, higher])[:, ahead != 0]
    better, worse = np.where(ahead[ahead != 0] > 0, sides, sides[::-1])
    beats = csr_array((np.ones(len(better), np.int64), (better, worse)), (number, number))
    beaten = beats.T.tocsr()
    compared = beats + beaten
    steps = int((np.diff(compared.indptr).astype(np.int64) ** 2).sum())
    if steps > MOST_STEPS:
        return None
    of_tasks, total = np.zeros(number, np.int64), 0
    for rows in np.array_split(np.arange(number), 1 + steps // AT_ONCE):
        of_tasks[rows] = (beats[rows] @ beats).multiply(beaten[rows]).sum(axis=1)
        total += int((compared[rows] @ compared).multiply(compared[rows]).sum())
    return CircularTriads(int(of_tasks.sum()) // 3, total // 6, of_tasks)


@checked(folds=Number(2, whole=True), seed=SEED)
def order_of_others(annotations: Annotations, *, folds: int = 10, seed: int = 0) -> NDArray[np.float64]:
    """Lead of the left task over the right one in each judgment, by only the judgments of other annotators.

    Annotators are split into folds at random. `BradleyTerry` is fitted to the judgments of all other folds, so that
    neither a judgment nor others of its annotator count in its own favour. An annotator who answers without looking
    agrees with the sign in half of the judgments that name a side, if the better task is on either side equally often.

    Args:
        annotations: kind preference; A judgments by R annotators.
        folds: number of fits; R if there are fewer annotators.
        seed: seed of the folds.

    Returns:
        Difference of the scores of the left and the right task, in log odds, [A]. NaN if the judgments of the others do
        not link the two tasks.

    Raises:
        DataError: wrong kind.
        ConfigError: a setting is out of range.
    """
    require_kind(annotations.label_kind, "order_of_others", PREFERENCE)
    assert annotations.right_ids is not None
    number = annotations.num_annotators
    lead = np.full(len(annotations), np.nan)
    fold = np.random.default_rng(seed).permutation(number) % max(min(folds, number), 1)
    for part in np.unique(fold).tolist():
        mine = fold[annotations.annotator_ids] == part
        rest = annotations.select_rows(~mine)
        if not len(rest) or not mine.any():
            continue
        result = BradleyTerry().fit(rest)
        left, right = annotations.task_ids[mine], annotations.right_ids[mine]
        linked = result.groups[left] == result.groups[right]
        lead[mine] = np.where(linked, result.scores[left] - result.scores[right], np.nan)
    return lead
