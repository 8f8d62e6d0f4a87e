"""Limits of a server, per client and for all clients together."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any

from crowdzoo.errors import ServingError, unknown

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a server, each a number above 0. `crowdzoo serve --limit NAME=VALUE` sets one.

    Attributes:
        request_bytes: size of the longest request, as sent and with all values expanded: a tensor's last value is
            repeated for missing ones.
        request_memory: memory of the values of one request, and of those of its answer, in bytes; estimated before they
            are created.
        memory: bytes of the bodies of all current requests together; half of it for bodies that are still arriving.
        cells: rows x longest text in one call of a graph of texts, in bytes, for a tagger in words and signs. Larger
            batches are split, longer texts rejected.
        threads: number of simultaneous predictions; two per processor, at most eight.
        queue: number of requests that wait for a thread.
        connections: number of simultaneous connections per protocol.
        header_seconds: time to receive the head of a request.
        body_seconds: time to receive the body of a request.
        idle_seconds: time a connection may stay open without a request.
        write_seconds: time a client may take to read an answer.
        drain_seconds: time to finish current requests when the server stops.
    """

    request_bytes: int = 64 * MIB
    request_memory: int = 512 * MIB
    memory: int = 1024 * MIB
    cells: int = 1 << 18
    threads: int = max(2, min(8, 2 * (os.cpu_count() or 1)))
    queue: int = 64
    connections: int = 256
    header_seconds: float = 10.0
    body_seconds: float = 120.0
    idle_seconds: float = 60.0
    write_seconds: float = 30.0
    drain_seconds: float = 10.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            whole = field.type == "int"
            due = "an integer, at least 1" if whole else "a number more than 0"
            if type(value) not in ((int,) if whole else (int, float)) or not (whole <= value and 0 < value < math.inf):
                raise ServingError(f"{field.name}: must be {due}, got {value!r}")

    def changed(self, settings: Sequence[str]) -> Limits:
        """Returns these limits with some of them replaced.

        Args:
            settings: texts `NAME=VALUE`.

        Raises:
            ServingError: an unknown name, or a value that is not a number in its range.
        """
        kinds: dict[str, Any] = {
            field.name: int if field.type == "int" else float for field in dataclasses.fields(self)
        }
        changes = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if name not in kinds:
                raise ServingError(unknown("limit", name, kinds))
            try:
                changes[name] = kinds[name](value)
            except ValueError as error:
                raise ServingError(f"limit {name}: {value[:80]!r} is not a number; write {name}=VALUE") from error
        return dataclasses.replace(self, **changes)
