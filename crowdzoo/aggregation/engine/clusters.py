"""clusters: what several annotators marked, put together into things of which each annotator has one at most."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform


def clusters(similarity: NDArray[np.float64], owners: ArrayLike, least: float) -> list[int]:
    """Clusters with average linkage.

    Args:
        similarity: of each pair, such as intersection over union, 0 to 1, [n, n], symmetric.
        owners: who marked each, [n]; a cluster has one of each owner at most.
        least: mean similarity of two clusters, from which on they are one.

    Returns:
        Cluster of each, n of them.
    """
    rows = np.asarray(owners)
    if len(rows) < 2:
        return [0] * len(rows)
    distances = 1 - similarity
    distances[rows[:, None] == rows] = 4.0 * len(rows) ** 2  # no mean with such a pair is small
    np.fill_diagonal(distances, 0)
    cluster_ids: list[int] = fcluster(
        linkage(squareform(distances, checks=False), "average"), 1 - least, "distance"
    ).tolist()
    return cluster_ids


def linked_groups(first: NDArray[np.integer], second: NDArray[np.integer], number: int) -> NDArray[np.int64]:
    """The connected parts of a graph.

    Args:
        first: node at one end of each edge, [E].
        second: node at the other end, [E].
        number: of nodes, V.

    Returns:
        Group of each node, int64 [V], numbered from 0 in the order of their lowest nodes.
    """
    graph = coo_matrix((np.ones(len(first)), (first, second)), (number, number))
    group = connected_components(graph, directed=False)[1]
    return np.unique(np.unique(group, return_index=True)[1][group], return_inverse=True)[1].astype(np.int64)
