"""order_of_others: which of two compared tasks is ahead, as the other annotators' judgments have it."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.preferences.bradley_terry import BradleyTerry
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import PREFERENCE, require_kind


@checked(folds=Number(2, whole=True), seed=SEED)
def order_of_others(annotations: Annotations, *, folds: int = 10, seed: int = 0) -> NDArray[np.float64]:
    """How far the left task of each judgment is ahead of the right one, by the judgments of other annotators alone.

    Annotators are dealt into folds at random. `BradleyTerry` is fitted to the judgments of all other folds, so that no
    judgment counts in its own favour, nor do other judgments of its annotator. An annotator who answers without looking
    agrees with the sign in half of the judgments that name a side, where the better task stands on either side equally
    often.

    Args:
        annotations: kind preference; A judgments by R annotators.
        folds: number of fits; R where there are fewer annotators than that.
        seed: deals the annotators.

    Returns:
        Difference of the scores of the left and the right task, in log odds, [A]. NaN where the judgments of the others
        do not link the two tasks.

    Raises:
        DataError: another kind.
        ConfigError: a setting out of range.
    """
    require_kind(annotations.label_kind, "order_of_others", PREFERENCE)
    assert annotations.right_ids is not None
    number = annotations.num_annotators
    lead = np.full(len(annotations), np.nan)
    fold = np.random.default_rng(seed).permutation(number) % max(min(folds, number), 1)
    for each in np.unique(fold).tolist():
        mine = fold[annotations.annotator_ids] == each
        others = annotations.select_rows(~mine)
        if not len(others) or not mine.any():
            continue
        found = BradleyTerry().fit(others)
        left, right = annotations.task_ids[mine], annotations.right_ids[mine]
        linked = found.groups[left] == found.groups[right]
        lead[mine] = np.where(linked, found.scores[left] - found.scores[right], np.nan)
    return lead
