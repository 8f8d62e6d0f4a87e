"""Connected parts of a graph: which annotators or tasks can be compared at all, because something links them."""

import numpy as np
from numpy.typing import NDArray


def linked_groups(first: NDArray[np.integer], second: NDArray[np.integer], number: int) -> NDArray[np.int64]:
    """The connected parts of a graph.

    Args:
        first: node at one end of each edge, [E].
        second: node at the other end, [E].
        number: of nodes, V.

    Returns:
        Group of each node, int64 [V], numbered from 0 in the order of their lowest nodes.
    """
    group = np.arange(number)
    while True:
        before = group.copy()
        lowest = np.minimum(before[first], before[second])
        for ends in (first, second):  # whole groups join the lowest that an edge links
            np.minimum.at(group, before[ends], lowest)
        group = group[group]
        if np.array_equal(group, before):
            return np.unique(group, return_inverse=True)[1].astype(np.int64)
