"""One signature of a loaded model: checks inputs by name, and runs the graph on parts of a large batch."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from crowdzoo.errors import did_you_mean, short_repr
from crowdzoo.files.served_model import stacked
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

_GRAPH_TRACE = re.compile(r"\n\t \[\[.*", re.DOTALL)
# Text that TensorFlow puts around the message of an operation in a function: its place, and the call
_AROUND = re.compile(r"\A(\{\{function_node [^}]*\}\} )+| \[Op:StatefulPartitionedCall\].*\Z", re.DOTALL)
_ASSERTION = re.compile(r"assertion failed: (.*)", re.DOTALL)
# Possible separators of tokens: an ASCII byte that is not a letter or digit, or the first byte of another character
_LETTERS = bytes(byte for byte in range(0xC0) if chr(byte).isalnum() or byte >= 0x80)
# Largest number of rows in one call of the graph for images, other texts and numbers, and of bytes of numbers
_IMAGES, _TEXTS, _ROWS, _BYTES = 32, 256, 4096, 1 << 22
# Memory of one value of an answer: the value, its text and a copy of the text
_VALUE_BYTES = 64


class InputSpec(NamedTuple):
    """One input: its dtype by TensorFlow's name, and its shape, None for any size (or for any shape)."""

    dtype: str
    shape: tuple[int | None, ...] | None

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape fits."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            due in (None, size) for due, size in zip(self.shape, shape, strict=True)
        )

    @property
    def is_batched(self) -> bool:
        """Whether the first axis may have any size."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    @property
    def is_column(self) -> bool:
        """Whether it has one value per instance, like a column of a table; NaN is then a missing number."""
        return self.shape is not None and len(self.shape) == 1


class Signature:
    """A callable signature of a SavedModel.

    Args:
        name: its key, such as `serving_default`.
        function: the loaded concrete function.
        by_rows: whether each row's answer depends on that row only, as in every model that crowdzoo exports. Only then
            batches may be split, and answers that are not finite are rejected.
        texts: contents of its strings: "images", "tokens" (texts that the graph pads to the longest) or "".

    Attributes:
        inputs: name -> `InputSpec`, sorted by name.
        outputs: names, sorted.
    """

    def __init__(self, name: str, function: Any, *, by_rows: bool = False, texts: str = ""):
        specs = function.structured_input_signature[1]
        self.name = name
        self.inputs = {
            key: InputSpec(spec.dtype.name, None if spec.shape.rank is None else tuple(spec.shape.as_list()))
            for key, spec in sorted(specs.items())
        }
        self.outputs = sorted(function.structured_outputs)
        self._function = _Function(function, list(self.inputs))
        self._by_rows = by_rows
        self._texts = texts

    def __call__(self, inputs: Mapping[str, np.ndarray], limits: Limits | None = None) -> dict[str, np.ndarray]:
        """Runs the signature.

        Args:
            inputs: an array for each input, of its dtype (bytes objects for strings).
            limits: limits of texts and of the answer; None for the defaults.

        Returns:
            An array for each output, sorted by name.

        Raises:
            RequestError: names, shapes or numbers that do not fit, texts or an answer that are too long, an answer that
                is not finite, or the graph rejects the inputs.
        """
        limits = limits or Limits()
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
        rows = next(iter(sizes.values()), 0)
        parts = list(self._parts(inputs, rows, limits)) if self._by_rows and len(sizes) == len(self.inputs) else []
        outputs = self._run_parts(inputs, parts, rows, limits) if len(parts) > 1 else self._run(inputs)
        _check_size(sum(array.size for array in outputs.values()), limits)
        if self._by_rows:
            _check_answer(outputs)
        return outputs

    def check_names(self, names: Collection[str], place: str = "") -> None:
        """Rejects missing and unknown inputs.

        Args:
            names: names in the request.
            place: their place, as a prefix of the message.

        Raises:
            RequestError: names the input.
        """
        for name in names:
            if name not in self.inputs:
                hint = did_you_mean(name, self.inputs)
                raise RequestError(f"{place}unknown input {short_repr(name)}. {self._takes()}{hint}")
        for name in self.inputs:
            if name not in names:
                raise RequestError(f"{place}missing input {name!r}. {self._takes()}")

    def chosen_outputs(self, names: Sequence[str]) -> Sequence[str]:
        """Names of the requested outputs, each once; all outputs if `names` is empty.

        Raises:
            RequestError: an unknown name, or a repeated one, as in TensorFlow Serving.
        """
        for place, name in enumerate(names):
            if name not in self.outputs:
                known = ", ".join(self.outputs)
                raise RequestError(f"output_filter: {short_repr(name)} is not an output; there are {known}")
            if name in names[:place]:
                raise RequestError(f"output_filter: {name!r} is repeated; name each output once")
        return names or self.outputs

    def _takes(self) -> str:
        return f"Signature {self.name!r} takes {', '.join(map(repr, self.inputs))}."

    def _run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return self._function(inputs)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(_graph_reason(error)) from error
        except tf.errors.ResourceExhaustedError as error:
            raise RequestError("not enough memory for this request; send fewer instances", "UNAVAILABLE") from error
        except UnicodeDecodeError as error:  # raised when TensorFlow cannot quote a text in its message
            raise RequestError(_not_utf8(inputs) or "a text of the inputs is refused") from error

    def _parts(self, inputs: Mapping[str, np.ndarray], rows: int, limits: Limits) -> Iterator[np.ndarray]:
        """Rows of each call of the graph: few enough, with texts of similar length."""
        strings = [array for array in inputs.values() if array.dtype == object]
        row_bytes = sum(array.nbytes for array in inputs.values()) // rows or 1
        most = min(_ROWS, max(1, _BYTES // row_bytes))
        if strings:
            most = _IMAGES if self._texts == "images" else _TEXTS
        if not strings or self._texts == "images":
            yield from (np.arange(start, min(start + most, rows)) for start in range(0, rows, most))
            return
        lengths = np.max([_lengths(array, self._texts == "tokens") for array in strings], axis=0)
        order = np.argsort(lengths, kind="stable")
        if lengths[order[-1]] > limits.cells:
            unit = "words and signs" if self._texts == "tokens" else "bytes"
            raise RequestError(
                f"row {order[-1]}: its text has about {lengths[order[-1]]:,} {unit}, more than the {limits.cells:,} of "
                "one text here; send it in parts",
                "TOO_LARGE",
            )
        start = 0
        for stop in range(1, rows + 1):  # the last row of a part is its longest
            if stop == rows or stop - start == most or (stop + 1 - start) * lengths[order[stop]] > limits.cells:
                yield order[start:stop]
                start = stop

    def _run_parts(self, inputs: Any, parts: Sequence[np.ndarray], rows: int, limits: Limits) -> dict[str, np.ndarray]:
        """Calls the graph once per part and restores the order of the rows."""
        answers: list[dict[str, np.ndarray]] = []
        widest: dict[str, np.ndarray] = {}
        for part in parts:
            try:
                answer = self._run({name: value[part] for name, value in inputs.items()})
            except RequestError as error:  # the graph names the row of its part
                raise RequestError(_in_batch(error.reason, dict(enumerate(part))), error.code) from error
            answers.append(answer)
            for name, array in answer.items():
                widest[name] = np.maximum(array.shape[1:], widest.get(name, 0))
            _check_size(rows * sum(int(shape.prod()) for shape in widest.values()), limits)
        back = np.argsort(np.concatenate(parts))
        return {name: stacked([answer.pop(name) for answer in answers])[back] for name in widest}


class _Function:
    """A loaded concrete function, called with little overhead in Python.

    Calling the function itself sorts arguments, looks for gradients and switches threads, which takes longer than
    running a small graph. TensorFlow's operation that calls a function does none of this.

    Args:
        function: the loaded concrete function.
        inputs: names of its inputs, sorted.
    """

    def __init__(self, function: Any, inputs: Sequence[str]):
        self._function = function  # stored because the operation only has its name
        self._name = function.name
        captured = function.captured_inputs
        input_names = [
            tensor.name.partition(":")[0] for tensor in function.inputs[: len(function.inputs) - len(captured)]
        ]
        self._inputs = input_names if sorted(input_names) == list(inputs) else None
        self._captured = captured
        self._outputs = sorted(function.structured_outputs)
        self._dtypes = [function.structured_outputs[name].dtype for name in self._outputs]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self._inputs is None:  # an argument's name may not be the name of a tensor
            named = self._function(**{name: tf.constant(value) for name, value in inputs.items()})
            return {name: named[name].numpy() for name in self._outputs}
        arguments = [*(tf.constant(inputs[name]) for name in self._inputs), *self._captured]
        outputs = tf.raw_ops.StatefulPartitionedCall(args=arguments, Tout=self._dtypes, f=self._name)
        return {name: tensor.numpy() for name, tensor in zip(self._outputs, outputs, strict=True)}


def _in_batch(reason: str, rows: Mapping[int, int]) -> str:
    return re.sub(r"(?<=in row )\d+", lambda number: str(rows.get(int(number[0]), number[0])), reason)


def _lengths(texts: np.ndarray, of_tokens: bool) -> np.ndarray:
    """Bytes of each text, or the largest number of tokens it can have: twice the number of separators, plus one."""
    if not of_tokens:
        return np.fromiter(map(len, texts.flat), int, texts.size)
    return np.fromiter((2 * len(text.translate(None, _LETTERS)) + 1 for text in texts.flat), int, texts.size)


def _check_size(values: int, limits: Limits) -> None:
    if values * _VALUE_BYTES > limits.request_memory:
        raise RequestError(
            f"the answer, in which each row is as long as the longest, has {values:,} values, which take more than the "
            f"{limits.request_memory:,} bytes of one request here; send fewer or shorter instances",
            "TOO_LARGE",
        )


def _not_utf8(inputs: Mapping[str, np.ndarray]) -> str:
    """Message that names a text of the inputs that is not UTF-8, or ""."""
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
    """The message of a graph's error, without the trace of nodes around it."""
    message = _AROUND.sub("", _GRAPH_TRACE.sub("", error.message))
    assertion = _ASSERTION.search(message)
    if assertion:  # "[what is wrong:] [value] [value]"
        return assertion.group(1).strip().removeprefix("[").removesuffix("]").replace("] [", " ")
    return message.strip().splitlines()[-1]
