"""The queue: limits simultaneous and waiting predictions, and drops those whose client has left."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

# Requests above this size, in bytes with all values expanded, run one at a time, in parallel to short ones, because
# their values may fill `request_memory`
LONG = 1 << 19


class Gate:
    """Places in the queue and turns, for both protocols.

    Args:
        limits: `threads` simultaneous turns, `queue` requests that wait for one, `memory` of all their bodies.

    Attributes:
        limits: the given limits.
        inside: number of received requests that are not answered yet.
        running: number of threads that have a turn.
    """

    def __init__(self, limits: Limits):
        self.limits = limits
        self._turns = {False: threading.Semaphore(limits.threads), True: threading.Semaphore(1)}
        self._lock = threading.Lock()
        self._bytes = 0
        self.inside = 0
        self.running: set[int] = set()

    @property
    def is_full(self) -> bool:
        """Whether no more requests may wait."""
        return self.inside >= self.limits.threads + self.limits.queue

    @contextmanager
    def place(self, size: int) -> Iterator[None]:
        """Holds a place for a received request of `size` bytes.

        Raises:
            RequestError: UNAVAILABLE, all places are taken.
        """
        with self._lock:
            if self.is_full or (self._bytes and self._bytes + size > self.limits.memory):
                raise full()
            self.inside += 1
            self._bytes += size
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1
                self._bytes -= size

    @contextmanager
    def turn(
        self, size: int, is_gone: Callable[[], bool], seconds: float | None = None
    ) -> Iterator[Callable[[int], None]]:
        """Waits for a turn and holds it.

        Yields a function to call with the bytes of the request's values before they are expanded. If they make the
        request a long one, it returns the turn and waits for the turn of a long request.

        Args:
            size: bytes of the request.
            is_gone: function that tells whether the client has left.
            seconds: time until the client's deadline, or None.

        Raises:
            RequestError: DEADLINE_EXCEEDED, the client has left or its deadline has passed.
        """
        # gRPC gives calls without a deadline one in thousands of years, too long for waiting on a lock
        end = time.monotonic() + min(self.limits.body_seconds, 1e9 if seconds is None else seconds)
        turns_taken: list[threading.Semaphore] = []

        def take(size: int) -> None:
            turns = self._turns[size > LONG]
            if turns_taken and (turns is turns_taken[0] or size <= LONG):
                return
            release()
            if not turns.acquire(timeout=max(0.0, end - time.monotonic())):
                raise RequestError("the deadline is over before there is a turn", "DEADLINE_EXCEEDED")
            turns_taken.append(turns)
            self.running.add(threading.get_ident())
            if is_gone():
                raise RequestError("the client did not wait for its turn", "DEADLINE_EXCEEDED")

        def release() -> None:
            self.running.discard(threading.get_ident())
            while turns_taken:
                turns_taken.pop().release()

        try:
            take(size)
            yield take
        finally:
            release()


def full() -> RequestError:
    """The error for too many waiting requests."""
    return RequestError("too many requests wait already; try again later", "UNAVAILABLE")
