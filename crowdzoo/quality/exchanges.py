"""exchanged_classes: who consistently takes classes for each other."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.quality.wilson import wilson

MOST_LIKELY = 0.5  # share from which an answer is the usual one
LEAST_SEEN = 5.0  # tasks of a class, by the others


def exchanged_classes(answers: NDArray[np.float64]) -> dict[int, list[tuple[int, int]]]:
    """Pairs (true, said) of classes for which an annotator has another name, by annotator; most have none.

    Where the others think of a class, the annotator usually gives another one (clearly in more than half of the cases,
    by Wilson's interval), who gives that one for little else, and not where the others do. Such labels say as much as
    the right ones, once the matrix is known.

    Args:
        answers: result of `judged_answers`, [R, K, K].
    """
    seen, said = answers.sum(axis=2), answers.sum(axis=1)
    true = np.maximum(seen, 1e-12)[:, :, None]
    usual = (wilson(answers / true, true)[0] > MOST_LIKELY) & (seen[:, :, None] >= LEAST_SEEN)
    only = answers / np.maximum(said, 1e-12)[:, None, :] > MOST_LIKELY
    own = np.diagonal(answers / true, axis1=1, axis2=2) > MOST_LIKELY
    found: dict[int, list[tuple[int, int]]] = {}
    for who, one, other in np.argwhere(
        usual & only & ~own[:, None, :] & ~np.eye(answers.shape[1], dtype=bool)
    ).tolist():
        found.setdefault(who, []).append((one, other))
    return found
