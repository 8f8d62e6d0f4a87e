"""The processes that read long requests and write long answers."""

import contextlib
import logging
import os
import queue
import subprocess
import sys
import threading
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from crowdzoo.serving.array_frames import read_frame, write_frame
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

__all__ = ["ReaderPool"]

log = logging.getLogger("crowdzoo.serving")


class ReaderPool:
    """Reader processes, started when first used; one for every two processors, four at most.

    Args:
        limits: `request_memory` bounds the memory of each, `read_seconds` the time of one job.
    """

    def __init__(self, limits: Limits):
        self._memory = limits.request_memory
        self._seconds = limits.read_seconds
        self.size = max(1, min(4, (os.cpu_count() or 1) // 2))
        self._idle: queue.LifoQueue[subprocess.Popen[bytes] | None] = queue.LifoQueue()
        for _ in range(self.size):
            self._idle.put(None)
        self._lock = threading.Lock()
        self._all: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(self, job: dict[str, Any], *payload: Any) -> tuple[dict[str, Any], bytes]:
        """One job in one process; waits for a free one.

        Returns:
            The header of the answer, and its bytes.

        Raises:
            RequestError: what the reader says; UNAVAILABLE where none is free in time or one is lost.
        """
        try:
            process = self._idle.get(timeout=self._seconds)
        except queue.Empty as error:
            raise RequestError("too many long requests at the same time; try again later", "UNAVAILABLE") from error
        overdue = threading.Event()
        try:
            if process is None or process.poll() is not None:
                process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(self._seconds, _end, (process, overdue))
            timer.start()
            try:
                write_frame(process.stdin, job, *payload)
                header, content = read_frame(process.stdout)
            except (OSError, EOFError, ValueError) as error:
                _end(process)
                if overdue.is_set():
                    reason = f"reading it takes longer than {self._seconds:g} s; send fewer instances in a request"
                    raise RequestError(reason, "TOO_LARGE") from error
                log.error("crowdzoo serve: a reader process ended with status %s", process.poll())
                raise RequestError("the process that read this request was lost; try again", "UNAVAILABLE") from error
            finally:
                timer.cancel()
        finally:
            self._idle.put(process)
        if "error" in header:
            if header["code"] == "INTERNAL":
                raise RuntimeError(header["error"])
            raise RequestError(header["error"], header["code"])
        return header, content

    def close(self) -> None:
        """Ends all processes."""
        with self._lock:
            self._closed = True
            for process in self._all:
                _end(process)

    def _start(self) -> "subprocess.Popen[bytes]":
        # the folders this process imports from, as the reader's: it may not be installed
        path = os.pathsep.join(part for part in sys.path if part)
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with self._lock:
            if self._closed:
                raise RequestError("the server stops; try again later", "UNAVAILABLE")
            self._all = {process for process in self._all if process.poll() is None}
            process = subprocess.Popen(
                [sys.executable, "-m", "crowdzoo.serving.reader_process"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                start_new_session=True,  # Ctrl-C is for the server, which closes its readers
            )  # fmt: skip
            self._all.add(process)
        assert process.stdin is not None
        files = FileDescriptorSet()
        _add_files(files, PredictRequest.DESCRIPTOR.file, set())
        settings = {"memory": self._memory, "message": PredictRequest.DESCRIPTOR.full_name}
        write_frame(process.stdin, settings, files.SerializeToString())
        return process


def _end(process: "subprocess.Popen[bytes]", overdue: threading.Event | None = None) -> None:
    if overdue is not None:
        overdue.set()
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)


def _add_files(files: FileDescriptorSet, file: Any, added: set[str]) -> None:
    if file.name in added:
        return
    added.add(file.name)
    for needed in file.dependencies:
        _add_files(files, needed, added)
    described = FileDescriptorProto()
    file.CopyToProto(described)
    files.file.append(described)
