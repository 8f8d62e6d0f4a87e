"""Requests of several clients computed in one call of the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping

import numpy as np

from crowdzoo.serving.batching_settings import BatchingSettings
from crowdzoo.serving.request_error import RequestError

__all__ = ["Batcher"]

Arrays = Mapping[str, np.ndarray]


class _Batch:
    def __init__(self) -> None:
        self.parts: list[Arrays] = []
        self.rows = 0
        self.full = threading.Event()
        self.done = threading.Event()
        self.outputs: dict[str, np.ndarray] | None = None  # None where the call failed


class Batcher:
    """Joins requests as TF Serving's batching does.

    The first request of a batch computes it, in its own thread, as soon as a batch thread is free and the timeout is
    over; those that come before then join it.

    Args:
        settings: sizes and times.
    """

    def __init__(self, settings: BatchingSettings):
        self._settings = settings
        self._lock = threading.Lock()
        self._open: dict[Hashable, _Batch] = {}
        self._enqueued = 0
        self._threads = threading.Semaphore(settings.num_batch_threads)

    def run(
        self, key: Hashable, compute: Callable[[Arrays], dict[str, np.ndarray]], inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """Computes inputs together with others of the same key.

        Args:
            key: requests with the same key may be joined: same graph, same shapes but for the rows.
            compute: the graph. Each row of its outputs must depend on that row of the inputs alone.
            inputs: arrays `[n, ...]`.

        Returns:
            Arrays `[n, ...]`, the rows of these inputs.

        Raises:
            RequestError: UNAVAILABLE where too many batches wait; and what `compute` raises for these inputs.
        """
        rows = len(next(iter(inputs.values())))
        if rows >= self._settings.max_batch_size:
            return compute(inputs)
        with self._lock:
            batch = self._open.get(key)
            first = batch is None or batch.rows + rows > self._settings.max_batch_size
            if first:
                if self._enqueued >= self._settings.max_enqueued_batches:
                    raise RequestError("too many batches wait already; try again later", "UNAVAILABLE")
                self._enqueued += 1
                if batch is not None:
                    batch.full.set()
                batch = self._open[key] = _Batch()
            assert batch is not None
            start = batch.rows
            batch.parts.append(inputs)
            batch.rows += rows
            if batch.rows == self._settings.max_batch_size:
                del self._open[key]
                batch.full.set()
        if first:
            self._compute(key, batch, compute)
        else:
            batch.done.wait()
        if batch.outputs is None:  # a request of the batch is wrong: each gets its own answer, or its own error
            return compute(inputs)
        return {name: array[start : start + rows] for name, array in batch.outputs.items()}

    def _compute(self, key: Hashable, batch: _Batch, compute: Callable[[Arrays], dict[str, np.ndarray]]) -> None:
        try:
            if self._settings.batch_timeout_micros:
                batch.full.wait(self._settings.batch_timeout_micros / 1e6)
            with self._threads:
                with self._lock:
                    self._enqueued -= 1
                    if self._open.get(key) is batch:  # from here on nobody joins
                        del self._open[key]
                parts = batch.parts
                joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                outputs = compute(joined if len(parts) > 1 else parts[0])
                if all(array.ndim and len(array) == batch.rows for array in outputs.values()):
                    batch.outputs = outputs
        except Exception:
            if len(batch.parts) == 1:
                raise
        finally:
            batch.done.set()
