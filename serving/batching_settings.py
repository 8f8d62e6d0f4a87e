"""TF Serving's `--batching_parameters_file`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from crowdzoo.errors import ConfigError
from crowdzoo.serving.messages import own_message
from crowdzoo.serving.text_protos import read_text_proto

__all__ = ["BatchingSettings", "read_batching_settings"]

_LARGEST = 1 << 20


@dataclass(frozen=True)
class BatchingSettings:
    """How requests of several clients are computed together. The defaults are TF Serving's.

    Attributes:
        max_batch_size: most rows of a batch.
        batch_timeout_micros: how long the first request of a batch waits for others, in microseconds. With 0 a batch is
            made of those that came while all batch threads were busy.
        max_enqueued_batches: batches that wait for a thread; further ones are refused.
        num_batch_threads: batches that are computed at the same time.

    Raises:
        ConfigError: a number out of its range.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        for name, least in (("max_batch_size", 1), ("batch_timeout_micros", 0), ("max_enqueued_batches", 1),
                            ("num_batch_threads", 1)):  # fmt: skip
            value = getattr(self, name)
            most = 10_000_000 if name == "batch_timeout_micros" else _LARGEST
            if not least <= value <= most:
                raise ConfigError(f"{name}: must be from {least:,} to {most:,}, got {value}")


def read_batching_settings(path: str | os.PathLike[str]) -> BatchingSettings:
    """The settings of a `BatchingParameters` in protobuf's text format, such as `max_batch_size { value: 32 }`.

    Raises:
        ConfigError: no such file or message, a number out of its range, or a setting that is not followed here.
    """
    parameters = read_text_proto(path, own_message("BatchingParameters"))
    if parameters.allowed_batch_sizes or parameters.pad_variable_length_inputs:
        what = "allowed_batch_sizes and pad_variable_length_inputs"
        raise ConfigError(f"{os.fspath(path)}: {what} are not followed here; leave them out")
    given = {
        name: getattr(parameters, name).value
        for name in BatchingSettings.__dataclass_fields__
        if parameters.HasField(name)
    }
    try:
        return BatchingSettings(**given)
    except ConfigError as error:
        raise ConfigError(f"{os.fspath(path)}: {error}") from None
