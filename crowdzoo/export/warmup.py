"""Requests that a server answers before it lets others in, and one of each signature as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.errors import ConfigError

__all__ = ["instance_spec", "request_json", "warmup_inputs", "write_warmup"]

# Most instances kept for warming up. TF Serving refuses more than 1,000 records; we write two a signature.
WARMUP_INSTANCES = 16


def instance_spec(base: Any, warmup_instances: Any) -> Any:
    """What the base takes, as a `tf.TensorSpec` with an open batch."""
    dtype = "float32"
    shape: Any
    if inputs := getattr(base, "inputs", None):
        if len(inputs) != 1:
            raise ConfigError(
                f"export: the base takes {len(inputs)} inputs, a served model takes one. Give a base that takes "
                "them as columns of one array; for a tagger, which takes raw strings when it is served, write "
                "export(..., encoder=TokenEncoder)"
            )
        shape, dtype = tuple(inputs[0].shape), inputs[0].dtype
    elif (shape := (base.get_build_config() or {}).get("input_shape")) is None:
        if warmup_instances is None:
            raise ConfigError("export: the base is not built yet. Call it once, or give `warmup_instances`")
        shape = np.shape(warmup_instances)
    return tf.TensorSpec([None, *shape[1:]], dtype, name="instances")


def warmup_inputs(instances: Any, specs: Mapping[str, Any], example: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    """The first instances as requests hold them; the example, or one of zeros, where none are given.

    Args:
        instances: array `[n, ...]`, or a dictionary of them by the names of `specs`; or None.
        specs: name -> `tf.TensorSpec`.
        example: an instance by the names of `specs`; or None.

    Raises:
        ConfigError: they do not fit `specs`, are no texts where texts are taken, or hold a number that is not finite.
    """
    if instances is None and example is not None:
        return {name: np.full([1], example[name], spec.dtype.as_numpy_dtype) for name, spec in specs.items()}
    if list(specs) == ["instances"]:
        return {"instances": _warmup_array(instances, specs["instances"])}
    if instances is not None and (missing := [name for name in specs if name not in instances]):
        raise ConfigError(f"export: warmup_instances has no {missing[0]!r}, the model takes {', '.join(specs)}")
    return {name: _warmup_array(instances and instances[name], spec) for name, spec in specs.items()}


def _warmup_array(instances: Any, spec: Any) -> np.ndarray:
    shape = spec.shape.as_list()[1:]
    if instances is None:
        # an open axis, such as an image's height, has no size to choose but the smallest
        nothing = "warm up" if spec.dtype.name == "string" else 0
        return np.full([1, *(size or 1 for size in shape)], nothing, spec.dtype.as_numpy_dtype)
    of_texts = spec.dtype == tf.string
    array = np.asarray(instances, object if of_texts else None)[:WARMUP_INSTANCES].astype(spec.dtype.as_numpy_dtype)
    if of_texts and not all(isinstance(text, str | bytes) for text in array.flat):
        raise ConfigError("export: warmup_instances must be texts, because the model reads texts")
    if not len(array) or not spec.shape.is_compatible_with(array.shape):
        raise ConfigError(
            f"export: warmup_instances has shape {list(np.shape(instances))}, the base takes {[None, *shape]}"
        )
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        raise ConfigError("export: warmup_instances has a number that is not finite")
    return array


def write_warmup(path: Path, name: str, requests: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Two records a signature: a batch of one, as most clients send, and all instances."""
    try:
        from tensorflow_serving.apis.predict_pb2 import PredictRequest
        from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog
    except ImportError as error:
        raise ConfigError(
            "export: warm-up requests need tensorflow-serving-api: pip install 'crowdzoo[serving]'"
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
    named = {} if signature == "serving_default" else {"signature_name": signature}
    return json.dumps({**named, "instances": [row]}, ensure_ascii=False) + "\n"


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    if not isinstance(value, np.ndarray):
        return value if isinstance(value, str) else value.item()
    if value.dtype == np.float32:  # shortest digits that read back as the same float32
        return value.astype(str).astype(np.float64).tolist()
    return value.tolist()
