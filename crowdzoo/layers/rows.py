"""Rows of a weight, at a cost that follows the rows and not the weight."""

from typing import Any

import keras
from keras import ops

__all__ = ["take_rows"]


def take_rows(weight: Any, codes: Any) -> Any:
    """Rows of a weight; like `ops.take(weight, codes, axis=0)`, but the other rows are neither read nor differentiated.

    What `ops.take` costs besides: on TensorFlow it reads the whole weight, which is a copy from the day that
    something wrote single rows into it; on PyTorch its gradient has all rows. An optimizer that can use a gradient of
    single rows says so by `weight.sparse_gradient = True` (`crowdzoo.optimizers.LazyAdam` does). JAX has no such
    gradients.

    Args:
        weight: a variable `[R, ...]`.
        codes: int, any shape, 0..R-1.

    Returns:
        `[*codes.shape, ...]`, in the weight's dtype.
    """
    backend = keras.backend.backend()
    value = weight.value if isinstance(weight, keras.Variable) else weight
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.gather(value, codes)
    if backend == "torch" and getattr(weight, "sparse_gradient", False):
        return _torch_rows(value, codes)
    return ops.take(value, codes, axis=0)


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
