"""A log of requests, one line of JSON each."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import queue
import sys
import threading
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler

from crowdzoo.errors import ConfigError, DataError, ServingError
from crowdzoo.files.paths import local_path
from crowdzoo.files.regular import check_regular
from crowdzoo.serving.request_record import RequestRecord

__all__ = ["RequestLog"]

log = logging.getLogger("crowdzoo.serving")

# Lines that wait to be written
_MOST_WAITING = 10_000
_CLOSE_SECONDS = 2.0


class RequestLog:
    """Writes a line for each request: when, what, how long, with what status. No inputs, answers or addresses.

    A file is appended to, and opened again where it was moved away, as `logrotate` does. Lines are lost where the disk
    is full or too slow; the server's log says so once.

    Args:
        path: of the file, `-` for the standard error.

    Raises:
        ServingError: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._complained = False
        target: logging.Handler
        if os.fspath(path) == "-":
            target = logging.StreamHandler(sys.stderr)
        else:
            try:
                local_path(path, "request log")
                if os.path.lexists(path):
                    check_regular(path)
                target = WatchedFileHandler(path, encoding="utf-8")
            except (OSError, DataError, ConfigError) as error:
                raise ServingError(f"request log {os.fspath(path)}: cannot be written ({error})") from error
        # written in a thread of its own: a disk that does not answer holds up no request
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_MOST_WAITING)
        self._queue = QueueHandler(lines)
        self._listener = QueueListener(lines, target)
        for handler in (self._queue, target):  # a full disk, or queue, ends no request
            handler.handleError = self._complain  # type: ignore[method-assign]
        self._listener.start()

    def write(self, record: RequestRecord, seconds: float) -> None:
        """Adds a line.

        Args:
            record: of the request, which has ended.
            seconds: how long it took.
        """
        now = datetime.datetime.now(datetime.timezone.utc)
        line = {
            "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "entrypoint": record.entrypoint,
            "api": record.api or None,
            "model": record.model or None,
            "version": record.version,
            "signature": record.signature or None,
            "rows": record.rows,
            "status": record.status,
            "request_bytes": record.request_bytes,
            "answer_bytes": record.answer_bytes,
            "milliseconds": round(1e3 * seconds, 3),
            "model_milliseconds": None if record.model_seconds is None else round(1e3 * record.model_seconds, 3),
        }
        text = json.dumps({key: value for key, value in line.items() if value is not None})
        self._queue.handle(logging.makeLogRecord({"msg": text}))

    def close(self) -> None:
        """Writes what waits and closes the file; gives up where the disk does not answer."""
        closing = threading.Thread(target=self._close, name="crowdzoo-request-log", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    def _close(self) -> None:
        with contextlib.suppress(queue.Full):
            self._listener.stop()
        for handler in self._listener.handlers:
            handler.close()

    def _complain(self, record: logging.LogRecord) -> None:
        if not self._complained:
            self._complained = True
            log.error("crowdzoo serve: the request log cannot be written: %s", sys.exc_info()[1])
