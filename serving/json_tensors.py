"""Converts JSON to arrays and back, in TF Serving's row and column forms."""

import base64
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import orjson
import simdjson

from crowdzoo.errors import shorten
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import InputSpec, Signature

_Read = tuple[Signature, dict[str, np.ndarray], bool]
# Bytes of Python and NumPy objects: a value, a list, an object, and a key of it, each with a reference to it
_VALUE, _LIST, _OBJECT, _KEY = 52, 72, 240, 150


def check_memory(body: bytes, most: int) -> None:
    """Rejects a body whose values would take more than `most` bytes in memory, without reading them.

    Raises:
        RequestError: TOO_LARGE.
    """
    # two copies of the body in addition to the objects; brackets in strings are counted as well
    becomes = 2 * len(body)
    if becomes + _OBJECT * len(body) <= most:  # whatever its contents
        return
    bytes_of = np.frombuffer(body, dtype=np.uint8)
    for mark, size in ((b",", _VALUE), (b"[", _LIST), (b"{", _OBJECT), (b":", _KEY)):
        becomes += size * int(np.count_nonzero(bytes_of == mark[0]))
    if becomes > most:
        raise RequestError(
            f"the values of this body take about {becomes:,} bytes of memory once they are read, more than the "
            f"{most:,} that one request may take here; send fewer instances in a request",
            "TOO_LARGE",
        )


def read_request(body: bytes, signature_of: Callable[[str], Signature]) -> _Read:
    """Reads the body of a request for :predict.

    Args:
        body: body of the request.
        signature_of: returns the signature with the name in the request, "" if it has none.

    Returns:
        The signature, an array for each of its inputs, and whether the request is in row form.

    Raises:
        RequestError: as `parse_object`; not exactly one of `instances` and `inputs`; or values that do not fit the
            signature, with the input and the position of the wrong value. Also errors of `signature_of`.
    """
    if (numbers := _read_numbers(body, signature_of)) is not None:
        return numbers
    request = parse_object(body)
    if ("instances" in request) == ("inputs" in request):
        which = "both" if "instances" in request else "neither"
        raise RequestError(f"the body must have one of 'instances' and 'inputs', it has {which}")
    signature = signature_of(request.get("signature_name", ""))
    columns = _rows_to_columns(request["instances"], signature) if "instances" in request else request["inputs"]
    if not isinstance(columns, dict) or is_base64(columns):
        columns = {_only_input(signature, "'inputs' is a plain value"): columns}
    return signature, read_columns(columns, signature), "instances" in request


def read_columns(columns: Mapping[str, object], signature: Signature) -> dict[str, np.ndarray]:
    """Converts JSON values to an array for each input of a signature.

    Raises:
        RequestError: names or values that do not fit the signature; the message has the input and the position.
    """
    signature.check_names(columns)
    return {name: _array(name, columns[name], spec) for name, spec in signature.inputs.items()}


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses a request's body.

    What orjson rejects is parsed again by Python, several times slower: NaN and Infinity, which TF Serving accepts and
    a later check rejects with their position, and invalid JSON, for a message with its position.

    Returns:
        The JSON object.

    Raises:
        RequestError: not UTF-8, not JSON, not an object, or a signature's name that is not text.
    """
    try:
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError:
            request = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(f"the body is not UTF-8: byte 0x{body[error.start]:02x} at offset {error.start}") from error
    except json.JSONDecodeError as error:
        reason = "the body is empty" if not body.strip() else f"the body is not JSON: {error.msg} at offset {error.pos}"
        raise RequestError(reason) from error
    except RecursionError as error:
        raise RequestError("the body is not usable: lists are nested too deep") from error
    except ValueError as error:  # an integer with thousands of digits
        raise RequestError(f"the body is not usable: {error}") from error
    if not isinstance(request, dict):
        raise RequestError(f'the body must be a JSON object such as {{"instances": [...]}}, not {kind_of(request)}')
    if not isinstance(request.get("signature_name", ""), str):
        raise RequestError(f"signature_name must be a string, not {kind_of(request['signature_name'])}")
    return request


def _read_numbers(body: bytes, signature_of: Callable[[str], Signature]) -> _Read | None:
    """As `read_request`, but several times faster: numbers are read into arrays without Python objects.

    Returns:
        None for bodies that must be read the other way: named rows, and invalid bodies, whose fault is found there.
    """
    if body.startswith(b"\xef\xbb\xbf"):  # simdjson skips it
        return None
    try:
        request: Any = simdjson.Parser().parse(body)
        key, *more = sorted(request)
        if key not in ("inputs", "instances") or more not in ([], ["signature_name"]):
            return None
        signature = signature_of(request["signature_name"] if more else "")
        ((name, spec),) = signature.inputs.items()
        values = request[key]
        if not isinstance(values, simdjson.Array):
            if list(values) != [name] or key == "instances":
                return None
            values = values[name]
        array = _column(values, spec)
    except (RequestError, ValueError, TypeError, AttributeError, RuntimeError):
        return None
    # a deeper list would be read as if it were flat; brackets in strings are counted as well
    lists = sum(math.prod(array.shape[:depth]) for depth in range(array.ndim))
    return (signature, {name: array}, key == "instances") if body.count(b"[") == lists else None


def _column(values: Any, spec: InputSpec) -> np.ndarray:
    """An array of numbers; ValueError, TypeError or AttributeError if the slower reader is needed."""
    dtype = np.dtype(spec.dtype)
    if dtype.kind not in "fiu" or dtype.itemsize < 4 - 3 * (dtype.kind != "f") or not spec.shape:
        raise TypeError
    shape: list[int] = []
    level: list[Any] = [values]
    for _ in spec.shape:
        if shape:
            level = [value for values in level for value in values]
        (size,) = {*map(len, level)}
        shape.append(size)
    of_type, wide = ("d", np.float64) if dtype.kind == "f" else ("i", np.int64)
    whole = np.frombuffer(values.as_buffer(of_type=of_type), wide).reshape(shape)
    with np.errstate(over="ignore"):
        array = whole.astype(dtype)
    if not array.size or not (np.isfinite(array) if dtype.kind == "f" else array == whole).all():
        raise ValueError
    return array


def _rows_to_columns(rows: Any, signature: Signature) -> dict[str, list[Any]]:
    if not isinstance(rows, list):
        raise RequestError(f"'instances' must be a list, not {kind_of(rows)}; a single instance is a list of one")
    if not rows:
        raise RequestError("'instances' is empty; at least one instance is needed")
    named = [isinstance(row, dict) and not is_base64(row) for row in rows]
    if not any(named):
        return {_only_input(signature, "'instances' is a plain list"): rows}
    if not all(named):
        odd = named.index(not named[0])
        raise RequestError(f"instances[{odd}]: {kind_of(rows[odd])}, but instances[0] is {kind_of(rows[0])}")
    for i, row in enumerate(rows):
        signature.check_names(row, place=f"instances[{i}]: ")
    return {name: [row[name] for row in rows] for name in signature.inputs}


def _only_input(signature: Signature, what: str) -> str:
    if len(signature.inputs) != 1:
        names = ", ".join(map(repr, signature.inputs))
        raise RequestError(f"{what}, but signature {signature.name!r} takes {names}: name them in an object")
    return next(iter(signature.inputs))


def _array(name: str, value: Any, spec: InputSpec) -> np.ndarray:
    try:
        cells = np.array(value, dtype=object)
    except ValueError as error:
        raise RequestError(f"input {name!r}: lists of different lengths do not make a tensor") from error
    if spec.dtype == "string":
        return _strings(name, cells)
    dtype = np.dtype(spec.dtype)
    allowed: set[Any] = {int} if dtype.kind in "iu" else {bool} if dtype.kind == "b" else {int, float}
    # one pass at C speed; only invalid requests are searched cell by cell
    if not set(map(type, cells.flat)) <= allowed:
        expected = "true or false" if bool in allowed else "a number" if float in allowed else "an integer"
        place = next(i for i, cell in np.ndenumerate(cells) if type(cell) not in allowed)
        hint = "; a missing number is NaN" if cells[place] is None and float in allowed and spec.is_column else ""
        raise _wrong_type(name, cells, place, expected + hint)
    try:
        if dtype.kind in "biu":
            return cells.astype(dtype) if dtype.kind == "b" else _whole(cells, dtype)
        wide = cells.astype(np.float64)
    except OverflowError as error:
        raise RequestError(f"input {name!r}: holds an integer that does not fit {spec.dtype}") from error
    with np.errstate(over="ignore"):
        array = wide.astype(dtype)
    if (too_large := np.isfinite(wide) & ~np.isfinite(array.astype(np.float64))).any():
        first = tuple(int(i) for i in np.argwhere(too_large)[0])
        raise RequestError(f"input {name!r}: {wide[first]} at {list(first)} is too large for {spec.dtype}")
    return array


def _whole(cells: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    if cells.size and not limits.min <= cells.min() <= cells.max() <= limits.max:
        raise OverflowError
    return cells.astype(dtype)


def _strings(name: str, cells: np.ndarray) -> np.ndarray:
    array = np.empty(cells.shape, dtype=object)
    for place, cell in np.ndenumerate(cells):
        if not (isinstance(cell, str) or is_base64(cell)):
            hint = '; a missing category is ""' if cell is None else ""
            raise _wrong_type(name, cells, place, f"a string{hint}")
        try:
            array[place] = cell.encode() if isinstance(cell, str) else base64.b64decode(cell["b64"], validate=True)
        except UnicodeEncodeError as error:  # "\ud800" is valid JSON, but half a character
            raise RequestError(f"input {name!r}: the text at {list(place)} is not valid Unicode") from error
        except ValueError as error:
            raise RequestError(f"input {name!r}: 'b64' at {list(place)} is not base64") from error
    return array


def _wrong_type(name: str, cells: np.ndarray, place: tuple[int, ...], expected: str) -> RequestError:
    cell = cells[place]
    if not isinstance(cell, list):
        where = f" at {list(place)}" if place else ""
        return RequestError(f"input {name!r}: {_short(cell)}{where} is {kind_of(cell)}, not {expected}")
    # numpy stops at the level at which list lengths differ
    for other, value in np.ndenumerate(cells):
        if not isinstance(value, list) or len(value) != len(cell):
            reason = f"has {len(value)} values" if isinstance(value, list) else f"is {kind_of(value)}"
            return RequestError(f"input {name!r}: {list(other)} {reason}, but {list(place)} has {len(cell)} values")
    return RequestError(f"input {name!r}: lists of different lengths below {list(place)} do not make a tensor")


def is_base64(value: object) -> bool:
    """Whether a value is `{"b64": ...}`, TF Serving's way to write bytes."""
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def kind_of(value: object) -> str:
    """The type of a JSON value, for messages."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _short(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**40:  # Python does not convert integers with thousands of digits
        return f"{'-' if value < 0 else ''}an integer of more than 40 digits"
    return shorten(json.dumps(value[:80] if isinstance(value, str) else value, ensure_ascii=False))


def to_json(outputs: Mapping[str, np.ndarray], *, rows: bool) -> bytes:
    """The answer: `predictions`, with a value or object per row, or `outputs`, a value or object of columns.

    Args:
        outputs: name -> array; a single name is omitted.
        rows: whether the request was in row form.

    Raises:
        RequestError: row form, but the outputs do not have one row per instance.
    """
    finite = all(array.dtype.kind != "f" or np.isfinite(array).all() for array in outputs.values())
    values = {name: _plain(name, array, as_array=finite) for name, array in outputs.items()}
    write: Callable[[Any], bytes] = functools.partial(orjson.dumps, option=orjson.OPT_SERIALIZE_NUMPY)
    if not finite:  # orjson writes null for NaN
        write = lambda value: json.dumps(value, ensure_ascii=False).encode()  # noqa: E731
    if not rows:
        return b'{\n    "outputs": ' + write(next(iter(values.values())) if len(values) == 1 else values) + b"\n}\n"
    sizes = {name: len(array) if array.ndim else None for name, array in outputs.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        raise RequestError(f"the outputs have no common batch ({sizes}); ask in column form, with 'inputs'")
    cells: Iterable[Any] = next(iter(values.values()), ())
    if len(values) > 1:
        cells = (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
    text = bytearray(b'{\n    "predictions": [')
    for place, cell in enumerate(cells):  # one at a time: orjson uses kilobytes per stored text
        text += b",\n        " if place else b"\n        "
        text += write(cell)
    return bytes(text + b"\n    ]\n}\n")


def _plain(name: str, array: np.ndarray, *, as_array: bool) -> Any:
    """Converts an array to lists and values; arrays of float32 stay arrays if possible, which orjson writes faster."""
    if array.dtype == object:
        coded = name.endswith("_bytes")  # TF Serving's convention for bytes
        nested = np.empty(array.shape, dtype=object)
        for place, cell in np.ndenumerate(array):
            nested[place] = {"b64": base64.b64encode(cell).decode()} if coded else cell.decode("utf-8", "replace")
        return nested.tolist()
    if array.dtype == np.float32:
        # the shortest digits that give the same float32, as in TF Serving
        return np.ascontiguousarray(array) if as_array and array.ndim else array.astype(str).astype(np.float64).tolist()
    return array.astype(np.float32).tolist() if array.dtype.kind not in "biuf" else array.tolist()
