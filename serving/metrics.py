"""Prometheus metrics under TF Serving's names."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from crowdzoo.serving.loaded_model import count_anomalies
from crowdzoo.serving.model_store import Stores

# prometheus-client would append "_total" to the names of counters, which TF Serving does not
_COUNT, _LATENCY = ":tensorflow:serving:request_count", ":tensorflow:serving:request_latency"
_WRITTEN, _ANOMALIES = "crowdzoo_model_written_timestamp_seconds", "crowdzoo_drift_anomalies"
# Upper ends of the buckets, `monitoring::Buckets::Exponential` of TF Serving's servables/tensorflow/util.cc
_MICROSECONDS = [10 * 1.8**power for power in range(33)]


@dataclass
class RequestRecord:
    """Record of one request, filled in while it is answered.

    Attributes:
        entrypoint: `REST` or `GRPC`.
        api: requested API, such as `predict` or `status`; "" if unknown.
        model: name of the requested model, "" if missing.
        status: gRPC's name of the status, `OK` or an error.
        started: start time on the monotonic clock.
    """

    entrypoint: str
    api: str = ""
    model: str = ""
    status: str = "OK"
    started: float = field(default_factory=time.monotonic)


class Metrics:
    """Counts requests to served models.

    - `request_count` by model and status,
    - `request_latency` in microseconds, for answered requests, by model, API and entrypoint.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._histograms: dict[str, tuple[list[int], list[float]]] = {}

    def finished(self, record: RequestRecord) -> None:
        """Counts a request that has just ended."""
        if record.api != "predict" or not record.model:
            return
        model = _model(record.model)
        microseconds = 1e6 * (time.monotonic() - record.started)
        with self._lock:
            key = f'{model},status="{record.status}"'
            self._counts[key] = self._counts.get(key, 0) + 1
            if record.status == "OK":
                key = f'{model},API="{record.api}",entrypoint="{record.entrypoint}"'
                counts, total = self._histograms.setdefault(key, ([0] * (len(_MICROSECONDS) + 1), [0.0]))
                counts[bisect.bisect_right(_MICROSECONDS, microseconds)] += 1  # a bucket excludes its upper end
                total[0] += microseconds

    def page(self) -> str:
        """All metrics in Prometheus' text format."""
        with self._lock:
            lines = [f"# TYPE {_COUNT} counter", *(f"{_COUNT}{{{key}}} {count}" for key, count in self._counts.items())]
            lines.append(f"# TYPE {_LATENCY} histogram")
            for key, (counts, (total,)) in self._histograms.items():
                ends = [*(f"{end:g}" for end in _MICROSECONDS), "+Inf"]
                below = list(itertools.accumulate(counts))
                lines += [f'{_LATENCY}_bucket{{{key},le="{end}"}} {n}' for end, n in zip(ends, below, strict=True)]
                lines += [f"{_LATENCY}_sum{{{key}}} {total:g}", f"{_LATENCY}_count{{{key}}} {below[-1]}"]
        return "\n".join([*lines, ""])


def gauges(stores: Stores, folder: Path | None) -> str:
    """Metrics of the served version that TF Serving does not have, in Prometheus' text format.

    - `crowdzoo_model_written_timestamp_seconds`: time of its files,
    - `crowdzoo_drift_anomalies`: number of anomalies in its training data (`data="training"`), and in requests
      according to the last `crowdzoo skew` (`data="requests"`).

    Args:
        stores: name -> the model's versions.
        folder: folder in which requests are logged, or None.
    """
    written, anomalies = [], []
    for store in stores.values():
        if not store.is_ready:
            continue
        model = store.get()
        name = f'{_model(store.name)},version="{model.version}"'
        written.append(f"{_WRITTEN}{{{name}}} {model.written:.0f}")
        counts = {"training": model.num_drift_anomalies}
        if folder is not None:
            counts["requests"] = count_anomalies(folder / f"{store.name}.{model.version}.skew.json")
        anomalies += [f'{_ANOMALIES}{{{name},data="{data}"}} {n}' for data, n in counts.items() if n is not None]
    return "\n".join([f"# TYPE {_WRITTEN} gauge", *written, f"# TYPE {_ANOMALIES} gauge", *anomalies, ""])


def _model(name: str) -> str:
    return 'model_name="' + name.replace("\\", r"\\").replace('"', r"\"") + '"'
