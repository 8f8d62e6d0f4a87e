"""Spammer score: does what an annotator says depend on the task at all?"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError


def spammer_scores(aggregation: Aggregation | ArrayLike) -> NDArray[np.float64]:
    """How far each annotator's confusion matrix is from that of a spammer, [R]: 0 is a spammer, 1 tells all classes.

    A spammer's answers do not depend on the truth, so all rows of the matrix are equal. The score is the squared
    distance of the rows from their mean, over K - 1, which is 1 for a permutation matrix:
    1/(K (K - 1)) sum over pairs of classes c < d of |row_c - row_d|^2. For two classes that is
    (sensitivity + specificity - 1)^2. Someone who swaps classes consistently scores high as well: such answers are
    informative, once the matrix is known.

    A score is not better than its matrix. With few annotations per class, an estimated matrix is far from its mean by
    chance or near the prior's; see the number of annotations as well.

    Args:
        aggregation: a result with confusions, or confusions themselves, `[annotator, true, said]` [R, K, K].

    Raises:
        DataError: the aggregation has no confusions, they have another shape, or there is only one class.

    Source:
        V. C. Raykar, S. Yu: Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks. JMLR 13, 2012,
        section 3.
    """
    if isinstance(aggregation, Aggregation):
        if aggregation.confusions is None:
            raise DataError(
                f"Spammer scores need confusion matrices, and the method {aggregation.method!r} gives none: take one "
                f"that does, such as 'dawid-skene'."
            )
        aggregation = aggregation.confusions
    confusions = np.asarray(aggregation, np.float64)
    if confusions.ndim != 3 or confusions.shape[1] != confusions.shape[2]:
        raise DataError(f"Confusions have shape [R, K, K], got {list(confusions.shape)}.")
    num_classes = confusions.shape[1]
    if num_classes < 2:
        raise DataError("Spammer scores need two classes or more, got one.")
    centred = confusions - confusions.mean(axis=1, keepdims=True)
    return np.minimum(np.einsum("rkl,rkl->r", centred, centred) / (num_classes - 1), 1.0)
