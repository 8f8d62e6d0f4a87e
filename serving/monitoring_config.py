"""TF Serving's `--monitoring_config_file`."""

from __future__ import annotations

import os

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.serving.messages import own_message
from crowdzoo.serving.text_protos import read_text_proto

__all__ = ["METRICS_PATH", "metrics_path"]

METRICS_PATH = "/monitoring/prometheus/metrics"


def metrics_path(path: str | os.PathLike[str]) -> str | None:
    """Where the Prometheus metrics are, by a `MonitoringConfig` in protobuf's text format.

    Args:
        path: of a file such as `prometheus_config { enable: true path: "/metrics" }`.

    Returns:
        The path of the metrics, `/monitoring/prometheus/metrics` unless the file names another; None where they are
        not enabled.

    Raises:
        ConfigError: no such file or message, or a path that does not begin with /.
    """
    config = read_text_proto(path, own_message("MonitoringConfig")).prometheus_config
    if config.path and not config.path.startswith("/"):
        raise ConfigError(f"{os.fspath(path)}: path {short_repr(config.path)} must begin with '/'")
    return (config.path or METRICS_PATH) if config.enable else None
