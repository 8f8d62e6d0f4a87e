"""Reads the values of long requests and writes long answers, in a process without TensorFlow and with little memory.

`python -m crowdzoo.serving.reader_process FILE_DESCRIPTOR` answers on that pipe; `ReaderPool` starts and stops it.
"""

import contextlib
import ctypes
import functools
import gc
import os
import resource
import sys
import traceback
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from google.protobuf import descriptor_pool

from crowdzoo.serving.array_frames import pack_arrays, receive, send, unpack_arrays
from crowdzoo.serving.examples import examples_from_input, examples_from_json
from crowdzoo.serving.input_spec import InputSpec, SignatureInputs
from crowdzoo.serving.json_tensors import check_memory, read_request, to_json
from crowdzoo.serving.messages import message_class, own_message
from crowdzoo.serving.proto_tensors import arrays_from_protos, parsed
from crowdzoo.serving.request_error import RequestError

__all__ = ["main"]


def main() -> None:
    """Answers until the input ends."""
    os.nice(5)  # short requests, which the server reads itself, go first
    pipe = Connection(int(sys.argv[1]))
    settings, files = receive(pipe)
    request_class = _class_from(files, settings["message"])
    most = settings["memory"]
    _limit_memory(most + most // 4)
    gc.disable()  # the values of a request hold no cycles, and looking for them takes most of the time
    while True:
        try:
            job, payload = receive(pipe)
        except (EOFError, ConnectionError):
            return
        try:
            header, parts = _done(job, payload, request_class, most)
        except RequestError as error:
            header, parts = {"error": error.reason, "code": error.code}, []
        except (MemoryError, SystemError):  # orjson's where it gets no memory
            header, parts = {"error": _too_large(most).reason, "code": "TOO_LARGE"}, []
        except Exception:
            header, parts = {"error": traceback.format_exc(), "code": "INTERNAL"}, []
        del payload
        send(pipe, header, parts)
        del header, parts
        gc.collect()
        _give_back()


def _done(job: dict[str, Any], payload: list[bytes], request_class: Any, most: int) -> tuple[dict[str, Any], list[Any]]:
    if job["kind"] == "write":
        return {}, [to_json(unpack_arrays(job["arrays"], payload), rows=job["rows"])]
    if job["kind"] == "examples":
        check_memory(payload[0], most)
        name, examples = examples_from_json(payload[0], functools.partial(_check_size, most))
        described, parts = pack_arrays({"examples": examples})
        return {"signature": name, "arrays": described}, parts
    if job["kind"] == "examples_proto":
        message = parsed(own_message("ExamplesRequest"), payload[0])
        examples = examples_from_input(message, functools.partial(_check_size, most))
        described, parts = pack_arrays({"examples": examples})
        return {"asked": [asked.hex() for asked in message.asked[: job["most"]]], "arrays": described}, parts
    if job["kind"] == "json":
        check_memory(payload[0], most)
        try:
            signature, arrays, rows = read_request(payload[0], functools.partial(_signature, job))
        except _UnknownSignatureError as error:  # the server, which knows the model, says what it has
            return {"signature": error.args[0], "rows": True, "arrays": None}, []
        header: dict[str, Any] = {"signature": signature.name, "rows": rows}
    else:
        message = parsed(request_class, payload[0])
        header = {"spec": message.model_spec.SerializeToString().hex(), "filter": list(message.output_filter)}
        arrays = arrays_from_protos(message.inputs, max_bytes=most)
    described, parts = pack_arrays(arrays)
    return header | {"arrays": described}, parts


class _UnknownSignatureError(LookupError):
    pass


def _signature(job: Mapping[str, Any], name: str) -> SignatureInputs:
    name = name or job["default"]
    if name not in job["signatures"]:
        raise _UnknownSignatureError(name)
    return SignatureInputs(name, {key: InputSpec(*spec) for key, spec in job["signatures"][name].items()})


def _check_size(most: int, size: int) -> None:
    if size > most:
        raise _too_large(most)


def _too_large(most: int) -> RequestError:
    return RequestError(
        f"its values take more than the {most:,} bytes of memory that one request may take here", "TOO_LARGE"
    )


def _class_from(files: Iterable[bytes], name: str) -> Any:
    """A message class by its name, from the files that describe it, each after those that it imports."""
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file)
    return message_class(pool, name)


def _limit_memory(most: int) -> None:
    # where this is not Linux, the estimate before reading is the limit
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + most, used + most))


def _give_back() -> None:
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
