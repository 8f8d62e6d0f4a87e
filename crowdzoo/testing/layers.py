"""check_layer: checks that every layer must pass, on every Keras backend."""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.testing.explained import explained


@dataclass(frozen=True, repr=False)
class LayerCase:
    """A layer with arguments and inputs for its checks.

    Attributes:
        layer: the layer's class.
        arguments: arguments of its constructor, all of which the config must contain.
        inputs: first call argument, `[B, ...]` with B at least 2.
        call_arguments: further call arguments by name, arrays `[B, ...]`.
        output_shape: expected shape of the output, including the batch.
    """

    layer: type[keras.layers.Layer]
    arguments: Mapping[str, Any]
    inputs: np.ndarray
    output_shape: tuple[int, ...]
    call_arguments: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.layer.__name__}({arguments})"

    def data(self) -> str:
        """Short description of the data."""
        arrays = {"inputs": self.inputs, **self.call_arguments}.items()
        shapes = "".join(f"{name} {list(array.shape)} {array.dtype}, " for name, array in arrays)
        return f"{shapes}weights uniform in 0.5 to 1.5, of seed 0"

    def make(self, **more: Any) -> keras.layers.Layer:
        """A new built layer with random weights instead of their initial values."""
        layer = self.layer(**{**self.arguments, **more})
        layer(self.inputs, **self.call_arguments)
        rng = np.random.default_rng(0)
        layer.set_weights([rng.uniform(0.5, 1.5, weight.shape) for weight in layer.get_weights()])
        return layer


def check_layer(
    layer: type[keras.layers.Layer],
    arguments: Mapping[str, Any],
    inputs: np.ndarray,
    output_shape: tuple[int, ...],
    **call_arguments: np.ndarray,
) -> None:
    """Runs every check of `LAYER_CHECKS` on a custom layer.

    To see all failures and not only the first, parametrise a test over that dictionary, with a `LayerCase`.

    Args:
        layer: the layer's class.
        arguments: arguments of its constructor.
        inputs: `[B, ...]`, B at least 2.
        output_shape: shape of its output, including the batch.
        **call_arguments: further call arguments, arrays `[B, ...]`.

    Raises:
        AssertionError: the first check that fails, with the check, the data, the layer's error or result, and advice.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import ConfusionMatrices
        >>> from crowdzoo.testing import check_layer
        >>> p, codes = np.full((4, 3), 1 / 3, "float32"), np.array([[0, 1]] * 4, "int32")
        >>> check_layer(ConfusionMatrices, {"num_annotators": 5}, p, (4, 2, 3), annotators=codes)
    """
    case = LayerCase(layer, arguments, inputs, output_shape, call_arguments)
    for check in LAYER_CHECKS.values():
        check(case)


def gradients(
    layer: keras.layers.Layer, cost: Callable[[Any], Any], inputs: np.ndarray, **call_arguments: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Gradients of a cost of a layer's output, on any backend.

    Args:
        layer: a built layer.
        cost: function from the output to a scalar, in `keras.ops`.
        inputs: float array, first call argument.
        **call_arguments: further call arguments.

    Returns:
        The gradient with respect to the inputs, and those of the layer's trainable weights in their order.
    """
    variables = layer.trainable_variables
    x = ops.convert_to_tensor(inputs)
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            value = cost(layer(x, **call_arguments))
        tensors = tape.gradient(value, [x, *(variable.value for variable in variables)])
        sparse = [v.path for v, g in zip(variables, tensors[1:], strict=True) if isinstance(g, tf.IndexedSlices)]
        assert not sparse, f"Keras' optimizers square the slices of {sparse} one by one: gather rows with take_rows"
        arrays = [gradient.numpy() for gradient in tensors]
    elif backend == "jax":
        import jax

        def of(x: Any, weights: Any) -> Any:
            fixed = [variable.value for variable in layer.non_trainable_variables]
            return cost(layer.stateless_call(weights, fixed, x, **call_arguments)[0])

        by_x, by_weights = jax.grad(of, argnums=(0, 1))(x, [variable.value for variable in variables])
        arrays = [np.asarray(gradient) for gradient in (by_x, *by_weights)]
    else:
        import torch

        x = x.detach().requires_grad_()
        value = cost(layer(x, **call_arguments))
        tensors = torch.autograd.grad(value, [x, *(variable.value for variable in variables)])
        arrays = [gradient.detach().cpu().numpy() for gradient in tensors]
    return arrays[0], arrays[1:]


def _output(case: LayerCase, layer: keras.layers.Layer) -> np.ndarray:
    return ops.convert_to_numpy(layer(case.inputs, **case.call_arguments))


def _config_holds_every_argument(case: LayerCase) -> None:
    """`get_config` contains every argument, and Keras recreates the layer from it.

    Register the class (`@keras.saving.register_keras_serializable(package=...)`), keep each argument as an attribute
    of its name, and add it in `get_config`.
    """
    layer = case.layer(**case.arguments, name="mine")
    config = layer.get_config()
    for name, value in {**case.arguments, "name": "mine"}.items():
        # JSON turns tuples into lists: compare what a file would hold
        assert json.loads(json.dumps(config[name])) == json.loads(json.dumps(value)), f"config[{name!r}]"
    revived = keras.saving.deserialize_keras_object(
        json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))  # by its registered name
    )
    assert type(revived) is case.layer
    assert revived.get_config() == config


def _symbolic_output_agrees_with_the_real_one(case: LayerCase) -> None:
    """The output has the expected shape, also in a functional model.

    `compute_output_shape` must return it; `CrowdLayer` does so for `[B, M, K]`. Compute in float32 or wider.
    """
    layer = case.make()
    output = layer(case.inputs, **case.call_arguments)
    assert tuple(output.shape) == case.output_shape
    symbols = {
        name: keras.KerasTensor((None, *value.shape[1:]), dtype=str(value.dtype))
        for name, value in case.call_arguments.items()
    }
    first = keras.KerasTensor((None, *case.inputs.shape[1:]), dtype=str(case.inputs.dtype))
    symbol = layer.compute_output_spec(first, **symbols)
    assert tuple(symbol.shape) == (None, *case.output_shape[1:])
    assert symbol.dtype == keras.backend.standardize_dtype(output.dtype)


def _probabilities_of_labels_sum_to_one(case: LayerCase) -> None:
    """The answers of a new `CrowdLayer` for classes are log-probabilities over the last axis.

    End in `ops.log_softmax(..., axis=-1)`, or sum over the truths; for logits declare
    `traits = LayerTraits(returns_logits=True)`.
    """
    layer = case.layer(**case.arguments)
    if isinstance(layer, CrowdLayer) and layer.label_kind.has_classes and not layer.traits.returns_logits:
        np.testing.assert_allclose(np.exp(_output(case, layer)).sum(axis=-1), 1, rtol=1e-4)


def _a_batch_of_one_keeps_its_axes_and_values(case: LayerCase) -> None:
    """A single row gives the same result as in a batch.

    Do not squeeze axes; outside training, compute no statistics over the batch, and draw no random numbers.
    """
    layer = case.make()
    whole = _output(case, layer)
    for row in range(len(case.inputs)):
        alone = layer(
            case.inputs[row : row + 1], **{name: value[row : row + 1] for name, value in case.call_arguments.items()}
        )
        np.testing.assert_allclose(ops.convert_to_numpy(alone), whole[row : row + 1], rtol=1e-5, atol=1e-6)


def _gradients_are_finite_and_reach_every_weight(case: LayerCase) -> None:
    """The gradients of inputs and of each weight are finite and not 0.

    Keep arguments of logarithms and roots above 0; a weight without gradient is not used.
    """
    layer = case.make()
    by_inputs, by_weights = gradients(
        layer, lambda output: ops.sum(ops.square(output)), case.inputs, **case.call_arguments
    )
    assert by_inputs.shape == case.inputs.shape
    for gradient in (by_inputs, *by_weights):
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() > 0


def _mixed_precision_keeps_weights_and_output_in_float32(case: LayerCase) -> None:
    """Under mixed precision weights and output are float32.

    Cast inputs by `self._cast` before computing, and add weights with `self._weight` (`autocast=False`).
    """
    expected = _output(case, case.make())
    for policy, half in (("mixed_float16", "float16"), ("mixed_bfloat16", "bfloat16")):
        layer = case.make(dtype=policy)
        assert {weight.dtype for weight in layer.weights} <= {"float32"}
        output = layer(ops.cast(case.inputs, half), **case.call_arguments)
        assert keras.backend.standardize_dtype(output.dtype) == "float32"
        # only the inputs are rounded, to 8 or 11 bits
        np.testing.assert_allclose(ops.convert_to_numpy(output), expected, rtol=0.02, atol=0.02)


def _a_saved_model_answers_the_same(case: LayerCase) -> None:
    """A model with the layer gives the same results after saving and loading.

    Create all weights in `build`, and none in `call`.
    """
    first = keras.Input(case.inputs.shape[1:], dtype=str(case.inputs.dtype))
    others = {
        name: keras.Input(value.shape[1:], dtype=str(value.dtype), name=name)
        for name, value in case.call_arguments.items()
    }
    layer = case.make()
    model = keras.Model([first, *others.values()], layer(first, **others))
    arrays = [case.inputs, *case.call_arguments.values()]
    expected = ops.convert_to_numpy(model(arrays))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(ops.convert_to_numpy(loaded(arrays)), expected)


LAYER_CHECKS: dict[str, Callable[[LayerCase], None]] = {
    check.__name__.strip("_"): explained(check, LayerCase.data)
    for check in (
        _config_holds_every_argument,
        _symbolic_output_agrees_with_the_real_one,
        _probabilities_of_labels_sum_to_one,
        _a_batch_of_one_keeps_its_axes_and_values,
        _gradients_are_finite_and_reach_every_weight,
        _mixed_precision_keeps_weights_and_output_in_float32,
        _a_saved_model_answers_the_same,
    )
}
