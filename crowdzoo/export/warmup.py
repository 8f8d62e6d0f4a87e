"""Warm-up requests of an exported model, and one request per signature as JSON."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from crowdzoo.errors import ConfigError

# Largest number of instances for warming up. TF Serving rejects more than 1,000 records; we write two per signature.
WARMUP_INSTANCES = 16
# Names that TensorFlow accepts for a signature's input, and names in use
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
RESERVED = ("annotator", "instances")
# An array, or several arrays for a base of several inputs; None makes a batch of zeros
WarmupInstances: TypeAlias = ArrayLike | Mapping[str, ArrayLike] | None


def instance_specs(base: keras.Model, warmup_instances: WarmupInstances) -> dict[str, tf.TensorSpec]:
    """Inputs of the base: a `tf.TensorSpec` of any batch size for each.

    Returns:
        For a single input, `instances`; for several, the names of the base's Keras inputs.

    Raises:
        ConfigError: the base is not built, or names of inputs are not valid in a served model.
    """
    inputs = getattr(base, "inputs", None) or []
    if len(inputs) > 1:
        names = [tensor.name for tensor in inputs]
        for name in names:
            if not _NAME.fullmatch(name) or name in RESERVED:
                raise ConfigError(
                    f"export: the base's input {name!r} cannot be served under this name: letters of a to z, digits "
                    f"and _ are possible, and {' and '.join(RESERVED)} have another meaning. Name it "
                    "keras.Input(..., name='left')"
                )
        return {tensor.name: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype, tensor.name) for tensor in inputs}
    dtype: Any = "float32"
    shape: Any
    if inputs:
        shape, dtype = tuple(inputs[0].shape), inputs[0].dtype
    elif (shape := (base.get_build_config() or {}).get("input_shape")) is None:
        if warmup_instances is None:
            raise ConfigError("export: the base is not built yet. Call it once, or give `warmup_instances`")
        shape = np.asarray(warmup_instances).shape
    if isinstance(shape, Mapping) or any(isinstance(size, (list, tuple)) for size in shape):
        raise ConfigError(
            "export: the base has several inputs, and a subclassed model does not name them. Make "
            "it functional, keras.Model({'left': left, 'right': right}, output), left being keras.Input(..., "
            "name='left')"
        )
    return {"instances": tf.TensorSpec([None, *shape[1:]], dtype, name="instances")}


def warmup_arrays(
    instances: WarmupInstances, specs: Mapping[str, tf.TensorSpec], base: keras.Model
) -> dict[str, np.ndarray]:
    """The first instances as input of a signature: an array for each input; see `warmup_array`.

    Args:
        instances: input of the base: an array, or for several inputs a list or dictionary of arrays; or None.
        specs: result of `instance_specs`.
        base: the base.

    Raises:
        ConfigError: as `warmup_array`, or a wrong number of inputs or rows.
    """
    if [*specs] == ["instances"]:
        if isinstance(instances, Mapping) and {*instances} == {"instances"}:
            instances = instances["instances"]
        return {"instances": warmup_array(instances, specs["instances"])}
    values = dict.fromkeys(specs)
    if isinstance(instances, Mapping) and {*instances} == {*specs}:
        values = dict(instances)
    elif instances is not None:
        try:
            keras.tree.assert_same_structure(
                keras.tree.lists_to_tuples(base.input), keras.tree.lists_to_tuples(instances)
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(f"export: warmup_instances must name {', '.join(specs)}, as the base does") from error
        keras.tree.map_structure(lambda tensor, array: values.update({tensor.name: array}), base.input, instances)
    arrays = {name: warmup_array(values[name], spec, f"warmup_instances[{name!r}]") for name, spec in specs.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        raise ConfigError("export: warmup_instances must have as many rows for each input")
    return arrays


def warmup_array(instances: WarmupInstances, spec: tf.TensorSpec, called: str = "warmup_instances") -> np.ndarray:
    """The first instances as input of the base; by default an instance of zeros, or the text "warm up".

    Raises:
        ConfigError: they do not fit `spec`, are not texts where it needs texts, or hold a non-finite number.
    """
    shape = spec.shape.as_list()[1:]
    if instances is None:
        # an axis of any size, such as an image's height, gets the smallest size
        filler = "warm up" if spec.dtype.name == "string" else 0
        return np.full([1, *(size or 1 for size in shape)], filler, spec.dtype.as_numpy_dtype)
    of_texts = spec.dtype == tf.string
    array = np.asarray(instances, object if of_texts else None)[:WARMUP_INSTANCES].astype(spec.dtype.as_numpy_dtype)
    if of_texts and not all(isinstance(text, str | bytes) for text in array.flat):
        raise ConfigError(f"export: {called} must be texts, because the model reads texts")
    if not len(array) or not spec.shape.is_compatible_with(array.shape):
        raise ConfigError(
            f"export: {called} has shape {list(np.asarray(instances).shape)}, the base takes {[None, *shape]}"
        )
    # a column of a table, with one number per instance, may have missing values
    fits = np.isfinite if shape else lambda numbers: ~np.isinf(numbers)
    if np.issubdtype(array.dtype, np.floating) and not fits(array).all():
        raise ConfigError(f"export: {called} has a number that is not finite")
    return array


def write_warmup(path: Path, name: str, requests: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes two records per signature: a batch of one, as most clients send, and all instances."""
    try:
        from tensorflow_serving.apis.predict_pb2 import PredictRequest
        from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog
    except ImportError as error:
        raise ConfigError(
            "export: warm-up requests need tensorflow-serving-api: pip install 'crowdzoo[tensorflow]'"
        ) from error

    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests.items():
            for size in sorted({1, len(next(iter(inputs.values())))}):
                request = PredictRequest(model_spec={"name": name, "signature_name": signature})
                for key, value in inputs.items():
                    request.inputs[key].CopyFrom(tf.make_tensor_proto(value[:size]))
                log = PredictionLog(predict_log=PredictLog(request=request))
                writer.write(log.SerializeToString())


def request_json(signature: str, inputs: Mapping[str, np.ndarray]) -> str:
    """The first warm-up request in TF Serving's row form."""
    first = {key: _json_value(value[0]) for key, value in inputs.items()}
    row = next(iter(first.values())) if len(first) == 1 else first
    signature_name = {} if signature == "serving_default" else {"signature_name": signature}
    return json.dumps({**signature_name, "instances": [row]}, ensure_ascii=False) + "\n"


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    if not isinstance(value, np.ndarray):
        return value if isinstance(value, str) else value.item()
    if value.dtype == np.float32:  # the shortest digits that give the same float32
        return value.astype(str).astype(np.float64).tolist()
    return value.tolist()
