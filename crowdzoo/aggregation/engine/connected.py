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
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(first)), (first, second)), (number, number))
    group = connected_components(graph, directed=False)[1]
    return np.unique(np.unique(group, return_index=True)[1][group], return_inverse=True)[1].astype(np.int64)
