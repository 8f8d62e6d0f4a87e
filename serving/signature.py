"""One signature of a loaded model: checks inputs by name, runs the graph, in parts where a batch takes much memory."""

import bisect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.files.served_model import stacked
from crowdzoo.serving.batcher import Batcher
from crowdzoo.serving.graph_memory import graph_memory
from crowdzoo.serving.input_spec import InputSpec, SignatureInputs
from crowdzoo.serving.memory_budget import Share
from crowdzoo.serving.proto_tensors import STRING_BYTES
from crowdzoo.serving.request_error import RequestError

__all__ = ["Signature"]

_GRAPH_TRACE = re.compile(r"\n\t \[\[.*", re.DOTALL)
# What TensorFlow writes around the message of an operation in a function: where it is, and what was called
_AROUND = re.compile(r"\A(\{\{function_node [^}]*\}\} )+| \[Op:StatefulPartitionedCall\].*\Z", re.DOTALL)
_ASSERTION = re.compile(r"assertion failed: (.*)", re.DOTALL)
# What may stand between two tokens: a byte of ASCII that is no letter or digit, or the first byte of another character
_LETTERS = bytes(byte for byte in range(0xC0) if chr(byte).isalnum() or byte >= 0x80)
# A call of the graph takes this part of a request's memory; longer batches are cut
_CALLS = 4
# Time that a request may wait for the memory of others
_WAIT_SECONDS = 2.0


class Signature(SignatureInputs):
    """A callable signature of a SavedModel.

    Args:
        name: its key, such as `serving_default`.
        function: the loaded concrete function.
        by_rows: whether each row's answer depends on that row alone, as in every model that crowdzoo exports. Only
            then a batch may be cut, and an answer that is not a finite number is refused.
        of_tokens: whether the graph cuts texts into tokens and pads them to the longest.
        method: what it answers by TF Serving's name, such as `tensorflow/serving/predict`.

    Attributes:
        inputs: name -> `InputSpec`, sorted by name.
    """

    def __init__(self, name: str, function: Any, *, by_rows: bool = False, of_tokens: bool = False, method: str = ""):
        specs = function.structured_input_signature[1]
        super().__init__(name, {key: _spec(spec) for key, spec in specs.items()})
        self._function = _Function(function, list(self.inputs))
        self.method = method
        self._by_rows = by_rows
        self._of_tokens = of_tokens
        self._memory = graph_memory(function)
        # of a tagger the outputs are as long as the longest row of a batch
        fixed = all(spec.shape.rank and None not in spec.shape[1:] for spec in function.structured_outputs.values())
        self._joins = by_rows and fixed and all(spec.is_batched for spec in self.inputs.values())

    def __call__(
        self, inputs: Mapping[str, np.ndarray], share: Share | None = None, *, batcher: Batcher | None = None
    ) -> dict[str, np.ndarray]:
        """Runs the signature.

        Args:
            inputs: an array for each input, of its dtype (bytes objects for strings).
            share: the memory that the request may take; None for any.
            batcher: computes the rows of several requests together, where each row's answer depends on that row alone
                and has the same shape in every batch; None for each request by itself.

        Returns:
            An array for each output, sorted by name.

        Raises:
            RequestError: names, shapes or numbers that do not fit, a batch that takes too much memory, an answer that
                is not finite, or the graph refuses the inputs.
        """
        self.check_names(inputs)
        for name, spec in self.inputs.items():
            _check_array(name, inputs[name], spec)
        sizes = {name: len(inputs[name]) for name, spec in self.inputs.items() if spec.is_batched}
        for name, size in sizes.items():
            first = next(iter(sizes))
            if size == 0:
                raise RequestError(f"input {name!r}: is empty; at least one instance is needed")
            if size != sizes[first]:
                raise RequestError(f"input {name!r}: has {size} rows, but input {first!r} has {sizes[first]}")
        if share is None:
            outputs = self._run(inputs)
        else:
            parts = self._parts(inputs, share)
            if parts is not None:
                outputs = self._run_parts(inputs, parts, share)
            elif batcher is not None and self._joins:
                outputs = batcher.run((self, *(array.shape[1:] for array in inputs.values())), self._run, inputs)
            else:
                outputs = self._run(inputs)
            share.hold("model", 0)
            share.hold("answer", sum(map(_bytes, outputs.values())), "the answer", wait=_WAIT_SECONDS)
        if self._by_rows:
            _check_answer(outputs)
        return outputs

    def _run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return self._function(inputs)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(_graph_reason(error)) from error
        except tf.errors.ResourceExhaustedError as error:
            raise RequestError("not enough memory for this request; send fewer instances", "UNAVAILABLE") from error
        except UnicodeDecodeError as error:  # TensorFlow fails to quote a text in its message
            raise RequestError(_not_utf8(inputs) or "a text of the inputs is refused") from error

    def _parts(self, inputs: Mapping[str, np.ndarray], share: Share) -> list[np.ndarray] | None:
        """Rows of each call of the graph, None for one call with all; holds the memory of the largest call."""
        once, per_row, per_cell, _ = self._memory.tolist()
        batched = [name for name, spec in self.inputs.items() if spec.is_batched]
        if not batched:
            return None
        rows = len(inputs[batched[0]])
        if any(spec.shape is None or None in spec.shape[1:] for spec in self.inputs.values()):
            per_cell = 0.0  # of pictures of any size nothing is known
        most = share.per_request // _CALLS
        texts = [name for name in batched if self.inputs[name].dtype == "string" and inputs[name].ndim == 1]
        if not texts and once + rows * (per_row + per_cell) <= most:  # most requests
            share.hold("model", int(once + rows * (per_row + per_cell)), wait=_WAIT_SECONDS)
            return None
        lengths = np.ones(rows)
        for name in texts if self._of_tokens or per_cell else ():
            lengths = np.maximum(lengths, _longest_possible(inputs[name], self._of_tokens))

        def needs(lengths: np.ndarray) -> float:
            flat = lengths.sum() if self._of_tokens else len(lengths)
            return per_row * flat + per_cell * len(lengths) * lengths.max()

        if not self._by_rows or needs(lengths) <= most:
            whole = once + needs(lengths)
            share.hold("model", int(whole), "what the model computes from this request", wait=_WAIT_SECONDS)
            return None
        order = np.argsort(lengths, kind="stable")
        parts: list[np.ndarray] = []
        start = 0

        def too_much(stop: int) -> bool:
            return needs(lengths[order[start:stop]]) > most

        while start < rows:
            fit = bisect.bisect_left(range(start + 1, rows + 1), True, key=too_much)
            stop = start + max(fit, 1)
            parts.append(order[start:stop])
            start = stop
        largest = max(int(needs(lengths[part])) for part in parts)
        longest = f"what the model computes from row {order[-1]}" if len(parts[-1]) == 1 else "this request"
        share.hold("model", int(once) + largest, longest, wait=_WAIT_SECONDS)
        if wrong := _not_utf8(inputs):  # the graph would name the row of its part
            raise RequestError(wrong)
        return parts

    def _run_parts(
        self, inputs: Mapping[str, np.ndarray], parts: Sequence[np.ndarray], share: Share
    ) -> dict[str, np.ndarray]:
        """Calls the graph once for each part and puts the rows back in their order."""
        answers: list[dict[str, np.ndarray]] = []
        taken = 0
        for part in parts:
            answers.append(self._run({name: value[part] for name, value in inputs.items()}))
            taken += sum(map(_bytes, answers[-1].values()))
            share.hold("parts", taken, "the answer", wait=_WAIT_SECONDS)
        share.hold("model", 0)
        padded = sum(_padded([answer[name] for answer in answers]) for name in answers[0])
        share.hold("answer", padded, "the answer, in which each row is as long as the longest,", wait=_WAIT_SECONDS)
        back = np.argsort(np.concatenate(parts))
        outputs = {}
        for name in list(answers[0]):
            outputs[name] = stacked([answer.pop(name) for answer in answers])[back]
        share.hold("parts", 0)
        return outputs


class _Function:
    """A loaded concrete function, called with less work in Python.

    Calling the function itself sorts arguments, looks for gradients and goes to another thread, which takes longer than
    a small graph. TensorFlow's own operation that calls a function does none of this.

    Args:
        function: the loaded concrete function.
        inputs: names of its inputs, sorted.
    """

    def __init__(self, function: Any, inputs: Sequence[str]):
        self._function = function  # kept: the operation only has its name
        self._name = function.name
        captured = function.captured_inputs
        given = [tensor.name.partition(":")[0] for tensor in function.inputs[: len(function.inputs) - len(captured)]]
        self._inputs = given if sorted(given) == list(inputs) else None
        self._captured = captured
        self._outputs = sorted(function.structured_outputs)
        self._dtypes = [function.structured_outputs[name].dtype for name in self._outputs]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self._inputs is None:  # an argument's name that is no name of a tensor
            named = self._function(**{name: tf.constant(value) for name, value in inputs.items()})
            return {name: named[name].numpy() for name in self._outputs}
        arguments = [*(tf.constant(inputs[name]) for name in self._inputs), *self._captured]
        outputs = tf.raw_ops.StatefulPartitionedCall(args=arguments, Tout=self._dtypes, f=self._name)
        return {name: tensor.numpy() for name, tensor in zip(self._outputs, outputs, strict=True)}


def _spec(spec: tf.TensorSpec) -> InputSpec:
    return InputSpec(spec.dtype.name, None if spec.shape.rank is None else tuple(spec.shape.as_list()))


def _longest_possible(texts: np.ndarray, of_tokens: bool) -> np.ndarray:
    """Most tokens that each text can have: its bytes, or twice what may stand between two tokens, and one."""
    if not of_tokens:
        return np.fromiter(map(len, texts), float, len(texts)).clip(1)
    between = (len(text.translate(None, _LETTERS)) for text in texts)
    return 2 * np.fromiter(between, float, len(texts)) + 1


def _bytes(array: np.ndarray) -> int:
    """Memory of an array; of texts that are equal, such as padding, each is counted once."""
    if array.dtype != object:
        return array.nbytes
    return array.size * (STRING_BYTES - 33) + sum(map(len, array.flat))


def _padded(parts: Sequence[np.ndarray]) -> int:
    """Memory of the parts one below the other, each row as long as the longest."""
    widest = np.max([part.shape[1:] for part in parts], axis=0)
    cells = sum(len(part) for part in parts) * int(np.prod(widest))
    filled = sum(map(_bytes, parts))
    return cells * (STRING_BYTES - 33 if parts[0].dtype == object else parts[0].itemsize) + filled


def _not_utf8(inputs: Mapping[str, np.ndarray]) -> str:
    """Which text of the inputs is not UTF-8, or ""."""
    for name, array in inputs.items():
        for place, cell in np.ndenumerate(array) if array.dtype == object else ():
            try:
                cell.decode()
            except UnicodeDecodeError:
                return f"{name}: not valid UTF-8 in row {place[0] if place else 0}"
    return ""


def _check_answer(outputs: Mapping[str, np.ndarray]) -> None:
    for name, array in outputs.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            row = np.argwhere(~np.isfinite(array))[0][:1]
            raise RequestError(
                f"instances{[int(i) for i in row]}: the model's answer ({name!r}) is not a finite number; the values "
                "of this instance are missing, or too large for the model"
            )


def _check_array(name: str, array: np.ndarray, spec: InputSpec) -> None:
    if not spec.accepts(array.shape):
        expected = [-1 if size is None else size for size in spec.shape or ()]
        rank = "" if array.ndim == len(expected) else f" (rank {array.ndim} where {len(expected)} is due)"
        sizes = list(array.shape)
        raise RequestError(f"input {name!r}: shape {sizes} does not fit {expected}{rank}; -1 is any size")
    if not np.issubdtype(array.dtype, np.floating):
        return
    unfit = np.isinf(array) if spec.is_column else ~np.isfinite(array)
    if unfit.any():
        place = tuple(int(i) for i in np.argwhere(unfit)[0])
        value = "NaN" if np.isnan(array[place]) else "Infinity" if array[place] > 0 else "-Infinity"
        raise RequestError(f"input {name!r}: {value} at {list(place)} is not a finite number")


def _graph_reason(error: tf.errors.InvalidArgumentError) -> str:
    """The sentence in a graph's error, without the trace of nodes around it."""
    message = _AROUND.sub("", _GRAPH_TRACE.sub("", error.message))
    assertion = _ASSERTION.search(message)
    if assertion:  # "[what is wrong:] [value] [value]"
        return assertion.group(1).strip().removeprefix("[").removesuffix("]").replace("] [", " ")
    return message.strip().splitlines()[-1]
