"""What one Keras backend needs of its own, or what Keras has no public name for."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import keras
import numpy as np
from keras import ops

if TYPE_CHECKING:
    import tensorflow as tf

# A tensor of the Keras backend, or a symbolic one while a model is built; arrays are converted where Keras does that
Tensor: TypeAlias = keras.KerasTensor
Shape: TypeAlias = tuple[int | None, ...]
# Shapes of a model's inputs, in the structure of its inputs
Shapes: TypeAlias = Shape | Sequence[Shape] | Mapping[str, Shape]
# Batches as `keras.Model.fit` takes them
KerasBatches: TypeAlias = Union[keras.utils.PyDataset, "tf.data.Dataset"]
# Arguments of a constructor by name, as `get_config` returns them: what JSON and Keras can write
Config: TypeAlias = dict[str, Any]

# === Rows of a weight, at a cost that follows the rows and not the weight ===


def take_rows(weight: Any, codes: Any) -> Any:
    """Rows of a weight: `ops.take(weight, codes, axis=0)`, with a gradient that every optimizer reads correctly.

    On TensorFlow the gradient of a gather is a `tf.IndexedSlices` in which a row appears as often as it was gathered.
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
    if backend == "torch" and value.shape[0] == 1:
        codes = ops.zeros_like(codes)  # Keras tries a model with codes of 1 when it builds it
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


def by_row(gradient: Any) -> tuple[Any, Any]:
    """Distinct rows `[n]` of a sparse gradient and its sums for each of them `[n, ...]`; None and itself if dense."""
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
    """A sparse gradient like the given one, made of distinct rows."""
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


# === What a layer sees ===


def concrete(values: Any) -> np.ndarray | None:
    """Values of a tensor; None of one that is traced, whose values are not known yet."""
    try:
        return np.asarray(ops.convert_to_numpy(values))
    except (NotImplementedError, TypeError):  # of TensorFlow's graphs and PyTorch's meta tensors; of JAX' tracers
        return None


def fail_if(fault: Any, message: str) -> None:
    """Lets a traced step fail with a message when it runs and `fault`, a bool, is true."""

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
    # "linear" of Activation only changes the precision; others' layers may use their activation within
    if isinstance(layer, keras.layers.Activation) or not type(layer).__module__.startswith("keras."):
        return None
    return getattr(getattr(layer, "activation", None), "__name__", None)


# === Batches ===


def over_all_replicas(count: Any) -> Any:
    """The labels of the whole batch where `tf.distribute` gives each device a part of it.

    Gradients are summed over the devices, so each divides by all labels: the mean of the devices' own means would
    weigh a label by how few its device has. (On JAX a batch that is spread over devices is one array: nothing to do.)
    """
    if keras.backend.backend() != "tensorflow":
        return count
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return count
    return context.all_reduce(tf.distribute.ReduceOp.SUM, count)


def as_strings(array: Any) -> Any:
    """Text as TensorFlow takes it, which Keras turns numbers alone into; all else as it is."""
    if keras.backend.backend() != "tensorflow" or not isinstance(array, np.ndarray) or array.dtype.kind not in "OSU":
        return array
    import tensorflow as tf

    return tf.constant(array)


# === Keras ===


def flattened_layers(layer: keras.Layer) -> list[keras.Layer]:
    """A layer and all layers inside it, at any depth.

    Keras has no public name for this: `keras.Model.layers` goes one level deep, and a layer that is not a model lists
    none of its own.
    """
    layers: list[keras.Layer] = list(layer._flatten_layers())
    return layers
