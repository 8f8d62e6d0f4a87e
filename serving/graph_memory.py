"""How much memory a signature takes for a batch, estimated from the shapes in its graph."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

__all__ = ["graph_memory"]

# Open axes that are told apart: none, one (rows, or tokens of all rows), two (rows x longest), more
DEGREES = 4
_STRING = 24  # TensorFlow's string object; up to 22 bytes are inside it


def graph_memory(function: Any) -> np.ndarray:
    """Bytes by the number of open axes: `[0]` once, `[1]` a row, `[2]` a cell of rows x longest, `[3]` more.

    The operations are taken in the graph's order; a tensor lives from the operation that makes it to the last that
    reads it. What is counted is the most that lives at the same time, for each number of open axes, in every function
    of the graph, and what the signature returns.

    Args:
        function: a loaded concrete function.

    Returns:
        float `[4]`.
    """
    total = np.zeros(DEGREES)
    for graph in _graphs(function):
        total += _peak(graph)
    return total


def _graphs(function: Any) -> Iterator[Any]:
    """The graphs of all functions that the signature calls, once each."""
    yield function.graph
    for definition in function.graph.as_graph_def(add_shapes=True).library.function:
        try:
            yield function_def_to_graph.function_def_to_graph(definition)
        except (ValueError, TypeError, tf.errors.OpError):  # a gradient, or of an operation that is not there
            continue


def _peak(graph: Any) -> np.ndarray:
    operations = graph.get_operations()
    last_use = {}
    for step, operation in enumerate(operations):
        for tensor in (*operation.inputs, *operation.outputs):
            last_use[tensor.name] = step
    leave = np.zeros((len(operations) + 1, DEGREES))
    live, peak = np.zeros(DEGREES), np.zeros(DEGREES)
    for step, operation in enumerate(operations):
        for tensor in operation.outputs:
            size = _size(tensor)
            live += size
            leave[last_use[tensor.name]] += size
        peak = np.maximum(peak, live)
        live -= leave[step]
    return peak


def _size(tensor: Any) -> np.ndarray:
    size = np.zeros(DEGREES)
    if tensor.shape.rank is None or tensor.dtype in (tf.resource, tf.variant):
        return size
    known = [axis for axis in tensor.shape.as_list() if axis is not None]
    each = _STRING if tensor.dtype == tf.string else tensor.dtype.size
    size[min(tensor.shape.rank - len(known), DEGREES - 1)] = each * np.prod(known, dtype=float)
    return size
