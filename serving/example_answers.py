"""Classify and Regress: which signatures answer them, and what is made of a signature's outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from crowdzoo.serving.examples import EXAMPLES
from crowdzoo.serving.memory_budget import Share
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import Signature

__all__ = ["METHODS", "example_outputs", "results_json", "results_proto"]

# What is asked -> the signature's method, its word in TF Serving's errors, and the outputs it may have
METHODS = {
    "classify": ("tensorflow/serving/classify", "classification", ("classes", "scores")),
    "regress": ("tensorflow/serving/regress", "regression", ("outputs",)),
}
# Memory of one entry of an answer: Python's and protobuf's objects
_ENTRY_BYTES = 200


def example_outputs(what: str, signature: Signature, examples: np.ndarray, share: Share) -> dict[str, np.ndarray]:
    """Runs a signature on tf.Examples.

    Args:
        what: a key of `METHODS`.
        signature: has to be of that method.
        examples: serialized examples `[n]`.
        share: the request's memory.

    Returns:
        `classes` (texts as bytes) and `scores`, both `[n, k]`, or one of them; `outputs` `[n]`.

    Raises:
        RequestError: the signature is of another method, or its outputs do not fit the method.
    """
    method, word, known = METHODS[what]
    if signature.method != method:
        was = signature.method or "none"
        raise RequestError(
            f"Expected {word} signature method_name to be {method}. Was: {was}; use :predict, or Predict"
        )
    if list(signature.inputs) != [EXAMPLES]:
        raise RequestError(
            f"a {word} signature has one input {EXAMPLES!r}; {signature.name!r} has {list(signature.inputs)}"
        )
    outputs = signature({EXAMPLES: examples}, share)
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
    share.hold("results", sum(array.size for array in outputs.values()) * _ENTRY_BYTES, "the answer")
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
        regressed = RegressionResult()
        for value in outputs["outputs"].tolist():
            regressed.regressions.add(value=value)
        return regressed
    classified = ClassificationResult()
    for labels, scores in zip(*_pairs(outputs), strict=True):
        classes = classified.classifications.add().classes
        for label, score in zip(labels, scores, strict=True):
            classes.add(label=label, score=score)
    return classified


def _pairs(outputs: Mapping[str, np.ndarray]) -> tuple[list[list[str]], list[list[float]]]:
    """Labels and scores; "" and 0 where the signature has only the others, as in TF Serving."""
    shape = next(iter(outputs.values())).shape
    classes, scores = outputs.get("classes"), outputs.get("scores")
    labels = [[cell.decode("utf-8", "replace") for cell in row] for row in classes] if classes is not None else None
    return labels or [[""] * shape[1]] * shape[0], _plain(np.zeros(shape, np.float32) if scores is None else scores)


def _plain(array: np.ndarray) -> Any:
    # the shortest digits that read back as the same float32, as TF Serving writes them
    return array.astype(str).astype(np.float64).tolist() if array.dtype == np.float32 else array.tolist()
