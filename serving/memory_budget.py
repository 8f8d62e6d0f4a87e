"""Memory of all requests under way together."""

import threading
from types import TracebackType

from crowdzoo.serving.limits import Limits
from crowdzoo.serving.request_error import RequestError

__all__ = ["MemoryBudget", "Share"]


class MemoryBudget:
    """Bytes that requests may take, one by one and together.

    Args:
        limits: `request_memory` and `memory` are kept.
    """

    def __init__(self, limits: Limits):
        self.per_request = limits.request_memory
        self._total = limits.memory
        self._taken = 0
        self._changed = threading.Condition()

    @property
    def taken(self) -> int:
        """Bytes in use now."""
        return self._taken

    def share(self) -> "Share":
        """What one request takes, nothing yet; a context manager that gives it back."""
        return Share(self)

    def _take(self, count: int, seconds: float) -> bool:
        with self._changed:
            # alone, a request has what one may have
            if not self._changed.wait_for(lambda: self._taken + count <= self._total or not self._taken, seconds):
                return False
            self._taken += count
            return True

    def _give(self, count: int) -> None:
        if count:
            with self._changed:
                self._taken -= count
                self._changed.notify_all()


class Share:
    """A request's part of the budget."""

    def __init__(self, budget: MemoryBudget):
        self._budget = budget
        self._parts: dict[str, int] = {}

    @property
    def per_request(self) -> int:
        """Most bytes that a request may take."""
        return self._budget.per_request

    def hold(self, part: str, count: int, what: str = "this request", *, wait: float = 0.0) -> None:
        """Takes `count` bytes for one part of the request, in place of what that part took before.

        Args:
            part: such as "body" or "answer".
            count: bytes.
            what: for the error.
            wait: seconds to wait for other requests to give memory back.

        Raises:
            RequestError: more than one request may take, or, as UNAVAILABLE, than is left beside the other requests.
        """
        more = count - self._parts.get(part, 0)
        whole = sum(self._parts.values()) + more
        if whole > self.per_request:
            raise RequestError(
                f"{what} takes about {whole:,} bytes of memory, more than the {self.per_request:,} that one request "
                "may take here; send fewer or shorter instances",
                "TOO_LARGE",
            )
        if more > 0 and not self._budget._take(more, wait):
            raise RequestError("the memory for requests is in use; try again later", "UNAVAILABLE")
        if more < 0:
            self._budget._give(-more)
        self._parts[part] = count

    def close(self) -> None:
        """Gives everything back."""
        self._budget._give(sum(self._parts.values()))
        self._parts.clear()

    def __enter__(self) -> "Share":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
