"""Code for single Keras backends, and functions without a public name in Keras."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import keras
import numpy as np
from keras import ops

if TYPE_CHECKING:
    import tensorflow as tf

# A tensor of the Keras backend, or a symbolic one while a model is built; arrays are converted where Keras does so
Tensor: TypeAlias = keras.KerasTensor
Shape: TypeAlias = tuple[int | None, ...]
# Shapes of a model's inputs, in the structure of its inputs
Shapes: TypeAlias = Shape | Sequence[Shape] | Mapping[str, Shape]
# Batches for `keras.Model.fit`
KerasBatches: TypeAlias = Union[keras.utils.PyDataset, "tf.data.Dataset"]
# Arguments of a constructor by name, as `get_config` returns them, for JSON and Keras
Config: TypeAlias = dict[str, Any]

# === Rows of a weight, at the cost of the rows and not of the weight ===


def take_rows(weight: Any, codes: Any) -> Any:
    """Gathers rows of a weight: `ops.take(weight, codes, axis=0)` with a gradient that every optimizer reads correctly.

    On TensorFlow the gradient of a gather is a `tf.IndexedSlices` in which a row appears as often as it was gathered.
    Keras' optimizers square it slice by slice, so that the second moments of Adam, RMSprop and Adagrad would be sums of
    squares instead of the square of the sum. Here the gradient is dense, unless the optimizer supports single rows and
    sets `weight.sparse_gradient = True` (as `crowdzoo.optimizers.LazyAdam` does): then other rows of the weight are
    neither read nor given a gradient. The same holds on PyTorch. JAX only has dense gradients.

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
    if backend == "torch" and value.shape[0] == 1:
        codes = ops.zeros_like(codes)  # Keras builds a model with codes of 1
    if backend == "torch" and sparse:
        return _torch_rows(value, codes)
    return ops.take(value, codes, axis=0)


def _gather(value: Any, codes: Any) -> Any:
    """Gathers rows of a TensorFlow variable without reading all of it, which would copy it after a write of rows."""
    import tensorflow as tf

    return tf.gather(value, codes)


def _tensorflow_rows(value: Any, codes: Any, sparse: bool) -> Any:
    """Gathers rows of a TensorFlow variable; its gradient is dense, or sparse with duplicate rows summed."""
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
    """Gathers rows of a PyTorch parameter with a sparse gradient, which PyTorch's embedding has for matrices only."""
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


def by_row(gradient: Any) -> tuple[Any, Any]:
    """Distinct rows `[n]` of a sparse gradient and their sums `[n, ...]`; None and the gradient if it is dense."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if isinstance(gradient, tf.IndexedSlices):
            rows, places = tf.unique(gradient.indices)
            return rows, tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    elif backend == "torch" and gradient.is_sparse:
        gradient = gradient.coalesce()
        return gradient.indices()[0], gradient.values()
    return None, gradient


def sparse_gradient(rows: Any, change: Any, gradient: Any) -> Any:
    """Makes a sparse gradient of distinct rows in the form of the given one."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.IndexedSlices(change, rows, gradient.dense_shape)
    import torch

    return torch.sparse_coo_tensor(rows[None], change, gradient.shape, is_coalesced=True, check_invariants=False)


def put_rows(variable: Any, rows: Any, values: Any, subtract: bool = False) -> None:
    """Writes distinct rows of a variable in place, or subtracts from them."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        slices = tf.IndexedSlices(values, rows)
        value.scatter_sub(slices) if subtract else value.scatter_update(slices)
    elif subtract:
        value.data.index_add_(0, rows, values, alpha=-1)
    else:
        value.data.index_copy_(0, rows, values)


# === Inputs of a layer ===


def concrete(values: Any) -> np.ndarray | None:
    """Values of a tensor; None for a traced tensor, whose values are not known yet."""
    try:
        return np.asarray(ops.convert_to_numpy(values))
    except (NotImplementedError, TypeError):  # TensorFlow's graphs and PyTorch's meta tensors; JAX' tracers
        return None


def fail_if(fault: Any, message: str) -> None:
    """Makes a traced step fail with a message if `fault`, a bool tensor, is true when it runs."""

    def check(fault: Any) -> None:
        if fault:
            raise ValueError(message)

    if keras.backend.backend() == "jax":
        import jax

        jax.debug.callback(check, fault)
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.debugging.Assert(tf.logical_not(fault), [message])


def activation_of(tensor: Any) -> str | None:
    """Name of the activation of the layer that a symbolic tensor comes from, through nested models; None if unknown."""
    layer = None
    while history := getattr(tensor, "_keras_history", None):
        layer, tensor = history.operation, None
        outputs = getattr(layer, "outputs", None)
        if outputs and len(outputs) == 1:  # a nested model, which is not subclassed
            tensor = outputs[0]
    # Activation("linear") only changes the precision; other layers may use their activation internally
    if isinstance(layer, keras.layers.Activation) or not type(layer).__module__.startswith("keras."):
        return None
    return getattr(getattr(layer, "activation", None), "__name__", None)


# === Batches ===


def over_all_replicas(count: Any) -> Any:
    """Number of labels of the whole batch if `tf.distribute` gives each device a part of it.

    Gradients are summed over the devices, so each device divides by the number of all labels: with a mean of the
    devices' means, labels on a device with few labels would have more weight. (On JAX a batch that is spread over
    devices is one array, and nothing needs to be done.)
    """
    if keras.backend.backend() != "tensorflow":
        return count
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return count
    return context.all_reduce(tf.distribute.ReduceOp.SUM, count)


def as_strings(array: Any) -> Any:
    """Converts text to TensorFlow strings, as Keras converts only numbers; returns anything else unchanged."""
    if keras.backend.backend() != "tensorflow" or not isinstance(array, np.ndarray) or array.dtype.kind not in "OSU":
        return array
    import tensorflow as tf

    return tf.constant(array)


# === Keras ===


def flattened_layers(layer: keras.Layer) -> list[keras.Layer]:
    """A layer and all layers inside it, at any depth.

    Keras has no public function for this: `keras.Model.layers` goes one level deep, and layers that are not models do
    not list theirs.
    """
    layers: list[keras.Layer] = list(layer._flatten_layers())
    return layers
