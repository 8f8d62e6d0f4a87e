"""tf.Examples of Classify and Regress, from JSON and from protobuf; without TensorFlow."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from crowdzoo.errors import short_repr
from crowdzoo.serving.json_tensors import is_base64, kind_of, parse_object
from crowdzoo.serving.messages import own_message
from crowdzoo.serving.proto_tensors import STRING_BYTES
from crowdzoo.serving.request_error import RequestError

__all__ = ["EXAMPLES", "examples_from_input", "examples_from_json"]

# The one input of a signature that takes them
EXAMPLES = "inputs"
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def examples_from_json(body: bytes, hold: Callable[[int], object]) -> tuple[str, np.ndarray]:
    """The signature's name and the examples of a body `{"examples": [{feature: value or list}], "context": {}}`.

    As in TF Serving integers and booleans make an int64 feature, numbers with a point a float feature, texts and
    `{"b64": ...}` a feature of bytes. The context's features are added to each example.

    Args:
        body: as it came.
        hold: is told the memory of the examples, in bytes, before they are made: a long context in front of many short
            examples takes far more than the body. It raises an error where that is too much.

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
    return request.get("signature_name", ""), _array(context, made, hold)


def examples_from_input(request: Any, hold: Callable[[int], object]) -> np.ndarray:
    """The examples of a Classify, Regress or MultiInference request.

    Args:
        request: a message with a `SerializedInput`.
        hold: see `examples_from_json`.

    Returns:
        Serialized examples, objects of bytes `[n]`.

    Raises:
        RequestError: there is none.
    """
    kinds = [kind for kind in ("example_list", "example_list_with_context") if request.input.HasField(kind)]
    if len(kinds) != 1:
        raise RequestError("input must have one of example_list and example_list_with_context")
    listed = getattr(request.input, kinds[0])
    context = listed.context if kinds[0] == "example_list_with_context" else b""
    return _array(context, listed.examples, hold)


def _array(context: bytes, examples: Sequence[bytes], hold: Callable[[int], object]) -> np.ndarray:
    """The examples, each after the context."""
    if not examples:
        raise RequestError("there are no examples; at least one is needed")
    hold(len(examples) * (len(context) + STRING_BYTES) + sum(map(len, examples)))
    return np.fromiter((context + example for example in examples), object, len(examples))


def _example(place: str, value: Any) -> bytes:
    if not isinstance(value, dict):
        raise RequestError(f"{place}: must be an object of features, not {kind_of(value)}")
    example = own_message("Example")()
    example.features.SetInParent()
    for name, content in value.items():
        where = f"{place}: feature {short_repr(name)}"
        try:
            entry = example.features.feature.add(key=name)
        except (UnicodeEncodeError, ValueError) as error:  # "\ud800" is JSON, but half a character
            raise RequestError(f"{where}: the name is not valid Unicode") from error
        entry.value.SetInParent()
        _fill(where, content if isinstance(content, list) else [content], entry.value)
    try:
        return bytes(example.SerializeToString())
    except (UnicodeEncodeError, ValueError) as error:
        raise RequestError(f"{place}: the name of a feature is not valid Unicode") from error
    except DecodeError as error:
        raise RequestError(f"{place}: is too large") from error


def _fill(where: str, values: list[Any], feature: Any) -> None:
    """Writes the values into the list of their type."""
    if not values:
        return
    types = set(map(type, values))
    if types <= {int, bool}:
        for value in values:
            if not -(1 << 63) <= value < 1 << 63:
                raise RequestError(f"{where}: holds an integer that does not fit int64")
        feature.int64_list.value.extend(map(int, values))
    elif types == {float}:
        for value in values:
            if not math.isfinite(value):
                raise RequestError(f"{where}: holds a number that is not finite")
            if abs(value) > _LARGEST_FLOAT:
                raise RequestError(f"{where}: {value} is too large for float32")
        feature.float_list.value.extend(values)
    elif types <= {str, dict}:
        feature.bytes_list.value.extend([_bytes(where, value) for value in values])
    else:
        wrong = next((value for value in values if type(value) not in (int, bool, float, str)), None)
        if wrong is None and type(None) not in types:
            raise RequestError(f"{where}: holds values of different types; write 1.0 for a number beside 0.5")
        raise RequestError(f"{where}: a value is {kind_of(wrong)}, not a number or a string")


def _bytes(where: str, value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(f"{where}: a text is not valid Unicode") from error
    if not is_base64(value):
        raise RequestError(f"{where}: a value is an object, not a number or a string")
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{where}: 'b64' is not base64") from error
