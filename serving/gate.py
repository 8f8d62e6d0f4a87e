"""The queue: a bounded number of predictions at the same time, a bounded number that wait, none for whoever left."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

# A longer request, in bytes with all its values written out, has its turn alone, next to the short ones: what it
# becomes may fill `request_memory`
LONG = 1 << 19


class Gate:
    """Places and turns of both protocols.

    Args:
        limits: `threads` turns at the same time, `queue` requests that wait for one, `memory` of all their bodies.

    Attributes:
        limits: as given.
        inside: whole requests that are not answered.
        running: threads that have a turn.
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
        """Holds the place of a request of `size` bytes, which is here to its end.

        Raises:
            RequestError: UNAVAILABLE, no place is left.
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

        Gives a function to call before the values of the request are expanded, with their bytes. Where they make the
        request a long one, it gives the turn back, and waits for that of a long request.

        Args:
            size: bytes of the request.
            is_gone: whether nobody waits for the answer any more.
            seconds: time until the client's deadline, None for none.

        Raises:
            RequestError: DEADLINE_EXCEEDED, the client is gone or its deadline is over.
        """
        # gRPC gives calls without a deadline one in thousands of years, for which no lock can wait
        end = time.monotonic() + min(self.limits.body_seconds, 1e9 if seconds is None else seconds)
        held: list[threading.Semaphore] = []

        def take(size: int) -> None:
            turns = self._turns[size > LONG]
            if held and (turns is held[0] or size <= LONG):
                return
            release()
            if not turns.acquire(timeout=max(0.0, end - time.monotonic())):
                raise RequestError("the deadline is over before there is a turn", "DEADLINE_EXCEEDED")
            held.append(turns)
            self.running.add(threading.get_ident())
            if is_gone():
                raise RequestError("the client did not wait for its turn", "DEADLINE_EXCEEDED")

        def release() -> None:
            self.running.discard(threading.get_ident())
            while held:
                held.pop().release()

        try:
            take(size)
            yield take
        finally:
            release()


def full() -> RequestError:
    """The error where too many requests wait already."""
    return RequestError("too many requests wait already; try again later", "UNAVAILABLE")
