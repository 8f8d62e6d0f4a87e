"""Rows of a weight, at a cost that follows the rows and not the weight."""

from typing import Any

import keras
from keras import ops

__all__ = ["take_rows"]


def take_rows(weight: Any, codes: Any) -> Any:
    """Rows of a weight: `ops.take(weight, codes, axis=0)`, with a gradient that every optimizer reads correctly.

    On TensorFlow the gradient of a gather is a `tf.IndexedSlices` in which a row stands as often as it was gathered.
    Keras' optimizers square it slice by slice, so the second moment of Adam, RMSprop, Adagrad and the like would
    become the sum of the squares where the square of the sum is meant. Here the gradient is dense, unless the
    optimizer can use single rows and says so by `weight.sparse_gradient = True` (`crowdzoo.optimizers.LazyAdam`
    does): then neither the weight's other rows are read nor their gradient is made. The same holds on PyTorch. JAX has
    dense gradients only.

    Args:
        weight: a variable `[R, ...]`.
        codes: int, any shape, 0..R-1.

    Returns:
        `[*codes.shape, ...]`, in the weight's dtype.
    """
    backend = keras.backend.backend()
    value = weight.value if isinstance(weight, keras.Variable) else weight
    sparse = getattr(weight, "sparse_gradient", False)
    if backend == "tensorflow":
        return _tensorflow_rows(value, codes, sparse) if getattr(weight, "trainable", True) else _gather(value, codes)
    if backend == "torch" and sparse:
        return _torch_rows(value, codes)
    return ops.take(value, codes, axis=0)


def _gather(value: Any, codes: Any) -> Any:
    """Rows of a TensorFlow variable, which is not read as a whole: that is a copy once single rows were written."""
    import tensorflow as tf

    return tf.gather(value, codes)


def _tensorflow_rows(value: Any, codes: Any, sparse: bool) -> Any:
    """Rows of a TensorFlow variable; its gradient is dense, or sparse with each row once."""
    import tensorflow as tf

    @tf.custom_gradient
    def spread(rows: Any, places: Any) -> Any:
        def gradient(change: Any) -> tuple[Any, None]:
            return tf.math.unsorted_segment_sum(change, places, tf.shape(rows)[0]), None

        return tf.gather(rows, places), gradient

    codes = tf.convert_to_tensor(codes)
    if not sparse:
        return spread(tf.convert_to_tensor(value), codes)
    distinct, places = tf.unique(tf.reshape(codes, [-1]))
    return spread(_gather(value, distinct), tf.reshape(places, tf.shape(codes)))


def _torch_rows(value: Any, codes: Any) -> Any:
    """Rows of a PyTorch parameter, with a sparse gradient; PyTorch's own embedding has that for matrices only."""
    import torch

    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, value: Any, codes: Any) -> Any:
            context.save_for_backward(codes)
            context.shape = value.shape
            return value[codes]

        @staticmethod
        def backward(context: Any, gradient: Any) -> tuple[Any, None]:
            (codes,) = context.saved_tensors
            changes = gradient.reshape(-1, *context.shape[1:])
            return torch.sparse_coo_tensor(codes.reshape(1, -1), changes, context.shape, check_invariants=False), None

    return Rows.apply(value, codes)
