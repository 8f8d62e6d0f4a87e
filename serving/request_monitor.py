"""Whoever is told of each request that has ended."""

from __future__ import annotations

import time

from crowdzoo.serving.metrics import Metrics
from crowdzoo.serving.request_log import RequestLog
from crowdzoo.serving.request_record import RequestRecord

__all__ = ["RequestMonitor"]


class RequestMonitor:
    """Metrics and the log of requests, each where it is asked for.

    Args:
        metrics_path: REST path of the Prometheus metrics; None for none.
        request_log: file for a line of each request; None for none.

    Attributes:
        metrics: the metrics, or None.
        metrics_path: as given.
    """

    def __init__(self, metrics_path: str | None = None, request_log: RequestLog | None = None):
        self.metrics_path = metrics_path
        self.metrics = None if metrics_path is None else Metrics()
        self._log = request_log

    def finished(self, record: RequestRecord) -> None:
        """Counts and logs a request that has just ended."""
        seconds = time.monotonic() - record.started
        if self.metrics is not None:
            self.metrics.add(record, seconds)
        if self._log is not None:
            self._log.write(record, seconds)

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()
