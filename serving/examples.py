"""Classify and Regress: tf.Examples from JSON and from protobuf, and what is made of a signature's outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import message_factory, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from crowdzoo.errors import short_repr
from crowdzoo.serving.json_tensors import as_bytes, kind_of, parse_object
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.proto_tensors import check_size, parsed
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import Signature

# A Classify or Regress request whose examples stay bytes: as objects, empty ones take many times the message
_DESCRIBED = """
name: "crowdzoo_serving.proto" package: "crowdzoo" syntax: "proto3"
message_type { name: "Listed" field { name: "examples" number: 1 type: TYPE_BYTES label: LABEL_REPEATED }
               field { name: "context" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL } }
message_type { name: "Input"
  field { name: "example_list" number: 1 type: TYPE_MESSAGE type_name: ".crowdzoo.Listed" label: LABEL_OPTIONAL }
  field { name: "example_list_with_context" number: 2 type: TYPE_MESSAGE type_name: ".crowdzoo.Listed"
          label: LABEL_OPTIONAL } }
message_type { name: "Request" field { name: "model_spec" number: 1 type: TYPE_BYTES label: LABEL_REPEATED }
               field { name: "input" number: 2 type: TYPE_MESSAGE type_name: ".crowdzoo.Input" label: LABEL_OPTIONAL } }
"""
_REQUEST = message_factory.GetMessages([text_format.Parse(_DESCRIBED, FileDescriptorProto())])["crowdzoo.Request"]
# The one input of a signature that takes them
EXAMPLES = "inputs"
# What is asked -> the signature's method, its word in TF Serving's errors, and the outputs it may have
_METHODS = {
    "classify": ("tensorflow/serving/classify", "classification", ("classes", "scores")),
    "regress": ("tensorflow/serving/regress", "regression", ("outputs",)),
}
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_Wait = Callable[[int], None]


def examples_from_json(body: bytes, limits: Limits, wait: _Wait) -> tuple[str, np.ndarray]:
    """The signature's name and the examples of a body `{"examples": [{feature: value or list}], "context": {}}`.

    As in TF Serving integers and booleans make an int64 feature, numbers with a point a float feature, texts and
    `{"b64": ...}` a feature of bytes. The context's features are added to each example.

    Args:
        body: as it came.
        limits: of the examples: a long context before many short ones takes far more than the body.
        wait: called with the bytes of the examples before they are made.

    Returns:
        The name, "" where there is none, and serialized examples, objects of bytes `[n]`.

    Raises:
        RequestError: names the example and the feature.
    """
    request = parse_object(body)
    examples = request.get("examples")
    if not isinstance(examples, list):
        found = f"not {kind_of(examples)}" if "examples" in request else "and the body has none"
        raise RequestError(f"'examples' must be a list of objects, {found}")
    context = _example("context", request["context"]) if "context" in request else b""
    made = [_example(f"examples[{i}]", example) for i, example in enumerate(examples)]
    return request.get("signature_name", ""), _array(context, made, limits, wait)


def examples_from_message(message: bytes, limits: Limits, wait: _Wait = lambda size: None) -> tuple[bytes, np.ndarray]:
    """What a Classify or Regress request asks, a `ModelSpec` as bytes, and its serialized examples `[n]`.

    Args and raises: as `examples_from_json`.
    """
    request = parsed(_REQUEST, message)
    kinds = [kind for kind in ("example_list", "example_list_with_context") if request.input.HasField(kind)]
    if len(kinds) != 1:
        raise RequestError("input must have one of example_list and example_list_with_context")
    listed = getattr(request.input, kinds[0])
    context = listed.context if kinds[0] == "example_list_with_context" else b""
    # a field that is there twice is one message in protobuf
    return b"".join(request.model_spec), _array(context, listed.examples, limits, wait)


def _array(context: bytes, examples: Sequence[bytes], limits: Limits, wait: _Wait) -> np.ndarray:
    """The examples, each after the context."""
    if not examples:
        raise RequestError("there are no examples; at least one is needed")
    size = len(examples) * len(context) + sum(map(len, examples))
    check_size(f"the list of {len(examples):,} examples, each with the context,", size, len(examples), limits)
    wait(size)
    return np.fromiter((context + example for example in examples), object, len(examples))


def _example(place: str, value: Any) -> bytes:
    if not isinstance(value, dict):
        raise RequestError(f"{place}: must be an object of features, not {kind_of(value)}")
    example = tf.train.Example()
    for name, content in value.items():
        where = f"{place}: feature {short_repr(name)}"
        as_bytes(where, name)
        if content != []:
            _fill(where, content if isinstance(content, list) else [content], example.features.feature[name])
    return bytes(example.SerializeToString())


def _fill(where: str, values: list[Any], feature: Any) -> None:
    """Writes the values into the list of their type."""
    types = set(map(type, values))
    if types <= {int, bool}:
        try:
            feature.int64_list.value.extend(map(int, values))
        except ValueError as error:
            raise RequestError(f"{where}: holds an integer that does not fit int64") from error
    elif types == {float}:
        for value in values:
            if not abs(value) <= _LARGEST_FLOAT:
                raise RequestError(f"{where}: {value} is not finite, or too large for float32")
        feature.float_list.value.extend(values)
    elif types <= {str, dict}:
        feature.bytes_list.value.extend([as_bytes(where, value) for value in values])
    else:
        for value in values:
            if type(value) not in (int, bool, float, str):
                raise RequestError(f"{where}: a value is {kind_of(value)}, not a number or a string")
        raise RequestError(f"{where}: holds values of different types; write 1.0 for a number beside 0.5")


# === Answers ===


def example_outputs(what: str, signature: Signature, examples: np.ndarray, limits: Limits) -> dict[str, np.ndarray]:
    """Runs a signature on tf.Examples.

    Args:
        what: a key of `_METHODS`.
        signature: has to be of that method.
        examples: serialized examples `[n]`.
        limits: of the answer.

    Returns:
        `classes` (texts as bytes) and `scores`, both `[n, k]`, or one of them; `outputs` `[n]`.

    Raises:
        RequestError: the signature is of another method, or its outputs do not fit the method.
    """
    method, word, known = _METHODS[what]
    if signature.method != method:
        was = signature.method or "none"
        said = f"Expected {word} signature method_name to be {method}. Was: {was}"
        raise RequestError(f"{said}; use :predict, or Predict")
    outputs = signature({EXAMPLES: examples}, limits)
    if not outputs or not set(outputs) <= set(known):
        raise RequestError(f"a {word} signature has outputs {' and '.join(known)}, not {', '.join(outputs)}")
    for name, array in outputs.items():
        if what == "regress" and array.shape == (len(examples), 1):
            array = outputs[name] = array[:, 0]
        due = (len(examples),) if what == "regress" else (len(examples), array.shape[-1] if array.ndim else 0)
        if array.shape != due or (array.dtype == object) != (name == "classes"):
            raise RequestError(f"output {name!r} of {signature.name!r} is {array.dtype} {list(array.shape)}: no {word}")
    if len({array.shape for array in outputs.values()}) != 1:
        raise RequestError(f"the outputs of {signature.name!r} have different shapes: no {word}")
    return outputs


def results_json(outputs: Mapping[str, np.ndarray]) -> str:
    """TF Serving's REST answer: a number for each example, or a list of pairs of class and score.

    Args:
        outputs: of `example_outputs`.
    """
    if "outputs" in outputs:
        rows: Any = _plain(outputs["outputs"])
    else:
        rows = [list(zip(*pair, strict=True)) for pair in zip(*_pairs(outputs), strict=True)]
    lines = ",\n        ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return '{\n    "results": [\n        ' + lines + "\n    ]\n}\n"


def results_proto(outputs: Mapping[str, np.ndarray]) -> Any:
    """The `ClassificationResult` or `RegressionResult`.

    Args:
        outputs: of `example_outputs`.
    """
    if "outputs" in outputs:
        return RegressionResult(regressions=[{"value": value} for value in outputs["outputs"].tolist()])
    rows = [zip(*pair, strict=True) for pair in zip(*_pairs(outputs), strict=True)]
    listed = [{"classes": [{"label": label, "score": score} for label, score in row]} for row in rows]
    return ClassificationResult(classifications=listed)


def _pairs(outputs: Mapping[str, np.ndarray]) -> tuple[list[list[str]], list[list[float]]]:
    """Labels and scores; "" and 0 where the signature has only the others, as in TF Serving."""
    shape = next(iter(outputs.values())).shape
    classes, scores = outputs.get("classes"), outputs.get("scores")
    labels = [[cell.decode("utf-8", "replace") for cell in row] for row in classes] if classes is not None else None
    return labels or [[""] * shape[1]] * shape[0], _plain(np.zeros(shape, np.float32) if scores is None else scores)


def _plain(array: np.ndarray) -> Any:
    # the shortest digits that read back as the same float32, as TF Serving writes them
    return array.astype(str).astype(np.float64).tolist() if array.dtype == np.float32 else array.tolist()
