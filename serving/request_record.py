"""What is known of one request, for metrics and the log; nothing of what was sent or answered."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

__all__ = ["RequestRecord"]


@dataclass
class RequestRecord:
    """One request, filled while it is answered.

    Attributes:
        entrypoint: `REST` or `GRPC`.
        api: what is asked, such as `predict` or `status`; "" where that is unknown.
        model: name of the served model that is asked, "" where there is none.
        version: version that answers.
        signature: signature that answers.
        rows: instances or examples.
        status: gRPC's name of the status, `OK` or an error.
        request_bytes: length of the body or message as it was sent.
        answer_bytes: length of the answer's body or message.
        model_seconds: time in TensorFlow, with the wait for the batch where requests are computed together.
        started: on the monotonic clock.
    """

    entrypoint: str
    api: str = ""
    model: str = ""
    version: int | None = None
    signature: str = ""
    rows: int | None = None
    status: str = "OK"
    request_bytes: int = 0
    answer_bytes: int = 0
    model_seconds: float | None = None
    started: float = field(default_factory=time.monotonic)
