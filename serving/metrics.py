"""Prometheus metrics under TF Serving's names, where they mean the same."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.serving.request_record import RequestRecord

__all__ = ["Metrics"]

# prometheus-client would append "_total" to the names of counters, which TF Serving does not
_PREFIX = ":tensorflow:serving:"
# Upper ends of the buckets, `monitoring::Buckets::Exponential` of TF Serving's servables/tensorflow/util.cc
_MICROSECONDS = [10 * 1.8**power for power in range(33)]
_EXAMPLES = [2.0**power for power in range(15)]
# What is asked -> its name in `runtime_latency`
_RUNTIME = {"predict": "Predict", "classify": "Classify", "regress": "Regress", "multi_inference": "MultiInference"}


class Metrics:
    """Counts requests that ask a served model for an answer.

    - `request_count` by model and status,
    - `request_latency` in microseconds, of answered requests, by model, API and entrypoint,
    - `runtime_latency` in microseconds, the part of it in TensorFlow, by model, API and runtime,
    - `request_example_count_total` and `request_example_counts` by model, of Classify, Regress and MultiInference.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, dict[tuple[tuple[str, str], ...], int]] = {}
        self._histograms: dict[str, tuple[list[float], dict[tuple[tuple[str, str], ...], _Histogram]]] = {
            "request_latency": (_MICROSECONDS, {}),
            "runtime_latency": (_MICROSECONDS, {}),
            "request_example_counts": (_EXAMPLES, {}),
        }

    def add(self, record: RequestRecord, seconds: float) -> None:
        """Counts a request.

        Args:
            record: of the request, which has ended.
            seconds: how long it took.
        """
        runtime = _RUNTIME.get(record.api)
        if runtime is None or not record.model:
            return
        model = {"model_name": record.model}
        with self._lock:
            self._count("request_count", {**model, "status": record.status}, 1)
            if record.model_seconds is not None:
                labels = {**model, "API": runtime, "runtime": "TF2"}
                self._observe("runtime_latency", labels, 1e6 * record.model_seconds)
            if record.status == "OK":
                labels = {**model, "API": record.api, "entrypoint": record.entrypoint}
                self._observe("request_latency", labels, 1e6 * seconds)
            if record.api != "predict" and record.rows is not None:
                self._count("request_example_count_total", {"model": record.model}, record.rows)
                self._observe("request_example_counts", {"model": record.model}, record.rows)

    def page(self) -> str:
        """All metrics in Prometheus' text format."""
        with self._lock:
            return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, counted in sorted(self._counters.items()):
            yield f"# TYPE {_PREFIX}{name} counter"
            for labels, count in counted.items():
                yield f"{_PREFIX}{name}{{{_text(labels)}}} {count}"
        for name, (ends, histograms) in self._histograms.items():
            if histograms:
                yield f"# TYPE {_PREFIX}{name} histogram"
            for labels, histogram in histograms.items():
                below = 0
                for end, count in zip([*(f"{end:g}" for end in ends), "+Inf"], histogram.counts, strict=True):
                    below += count
                    yield f'{_PREFIX}{name}_bucket{{{_text(labels)},le="{end}"}} {below}'
                yield f"{_PREFIX}{name}_sum{{{_text(labels)}}} {histogram.sum:g}"
                yield f"{_PREFIX}{name}_count{{{_text(labels)}}} {below}"

    def _count(self, name: str, labels: Mapping[str, str], by: int) -> None:
        counted = self._counters.setdefault(name, {})
        key = tuple(labels.items())
        counted[key] = counted.get(key, 0) + by

    def _observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        ends, histograms = self._histograms[name]
        histogram = histograms.setdefault(tuple(labels.items()), _Histogram(len(ends)))
        histogram.counts[bisect.bisect_right(ends, value)] += 1  # TensorFlow's buckets do not hold their upper end
        histogram.sum += value


class _Histogram:
    def __init__(self, buckets: int):
        self.counts = [0] * (buckets + 1)
        self.sum = 0.0


def _text(labels: Any) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
