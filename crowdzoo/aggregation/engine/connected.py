"""connected_groups: which annotators can be compared at all, because tasks link them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.compiled import compiled

__all__ = ["connected_groups"]


def connected_groups(block: Block, num_annotators: int) -> NDArray[np.int64]:
    """The connected parts of the graph whose edges are the annotations.

    Annotators are in one group if a chain of shared tasks leads from one to the other. What a method learns from
    agreement is comparable within a group only.

    Args:
        block: T tasks, A annotations.
        num_annotators: R.

    Returns:
        Group of each annotator, int64 [R], numbered from 0; an annotator without annotations is a group of its own.
    """
    parent = np.arange(num_annotators)
    first = np.full(len(block.tasks), -1)
    _join(block.index.astype(np.int64), block.annotator_ids.astype(np.int64), first, parent)
    return np.unique(parent, return_inverse=True)[1].astype(np.int64)


@compiled()
def _join(index: NDArray[np.int64], annotators: NDArray[np.int64], first: NDArray[np.int64], parent: NDArray[np.int64]):  # type: ignore[no-untyped-def]
    """Union-find over annotators: each task joins all of its annotators to its first one. Changes `parent`, `first`."""
    for row in range(len(index)):
        one = annotators[row]
        other = first[index[row]]
        if other < 0:
            first[index[row]] = one
            continue
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        while parent[other] != other:
            parent[other] = parent[parent[other]]
            other = parent[other]
        if one < other:
            parent[other] = one
        else:
            parent[one] = other
    for node in range(len(parent)):
        root = node
        while parent[root] != root:
            root = parent[root]
        parent[node] = root
