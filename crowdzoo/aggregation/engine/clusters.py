"""clusters: groups what several annotators marked into clusters with at most one item per annotator."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform


def clusters(similarity: NDArray[np.float64], owners: ArrayLike, least: float) -> list[int]:
    """Clusters items by average linkage.

    Args:
        similarity: similarity of each pair, such as intersection over union, 0 to 1, [n, n], symmetric.
        owners: annotator of each item, [n]; a cluster has at most one item per owner.
        least: mean similarity from which on two clusters are merged.

    Returns:
        Cluster of each item, n of them.
    """
    rows = np.asarray(owners)
    if len(rows) < 2:
        return [0] * len(rows)
    distances = 1 - similarity
    distances[rows[:, None] == rows] = 4.0 * len(rows) ** 2  # so large that no mean with such a pair is small
    np.fill_diagonal(distances, 0)
    cluster_ids: list[int] = fcluster(
        linkage(squareform(distances, checks=False), "average"), 1 - least, "distance"
    ).tolist()
    return cluster_ids


def linked_groups(first: NDArray[np.integer], second: NDArray[np.integer], number: int) -> NDArray[np.int64]:
    """Finds the connected components of a graph.

    Args:
        first: node at one end of each edge, [E].
        second: node at the other end, [E].
        number: number of nodes, V.

    Returns:
        Component of each node, int64 [V], numbered from 0 in the order of their lowest nodes.
    """
    graph = coo_matrix((np.ones(len(first)), (first, second)), (number, number))
    group = connected_components(graph, directed=False)[1]
    return np.unique(np.unique(group, return_index=True)[1][group], return_inverse=True)[1].astype(np.int64)
