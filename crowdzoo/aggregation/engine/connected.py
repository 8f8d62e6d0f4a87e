"""Connected parts of a graph: which annotators or tasks can be compared at all, because something links them."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block


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
    tasks = block.index + num_annotators
    return linked_groups(block.annotator_ids, tasks, num_annotators + len(block.tasks))[:num_annotators]


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
