"""What `Client` needs of a protocol."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from crowdzoo.errors import ServingError

__all__ = ["LOOPBACK", "Connection", "no_answer"]

# a proxy that is set for the network must not get what is meant for this machine
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Connection(Protocol):
    """A protocol's side of `Client`: requests as the server expects them, answers as arrays and plain values."""

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        """One request; `outputs` gives the numpy dtype of each output."""
        ...

    def metadata(self) -> dict[str, Any]:
        """See `Client.metadata`."""
        ...

    def status(self) -> list[dict[str, Any]]:
        """See `Client.status`."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


def no_answer(url: str, reason: object) -> ServingError:
    """The error for a server that cannot be reached."""
    return ServingError(
        f"{url} does not answer ({reason}). Is the server running? `crowdzoo serve MODEL_DIR` starts one"
    )
