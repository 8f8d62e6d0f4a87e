"""Loops over annotations: compiled to machine code, and run on all cores, as they need no interpreter's lock."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from numba import njit

from crowdzoo.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Item = TypeVar("Item")

VARIABLE = "CROWDZOO_THREADS"
_current = threading.local()  # in a thread of the pool: `stop`, which ends the call that it works for


def compiled(inline: str = "never") -> Callable[[F], F]:
    """Decorator: a loop over arrays, compiled by Numba at its first call and kept on disk for the next process.

    The function runs without the interpreter's lock, so threads may call it side by side. Division by zero gives inf or
    NaN, as in NumPy. Where no folder can be written the code is compiled again in each process.

    Of LLVM's liberties it has "contract" (fused multiply-add), which is always safe; "reassoc" would let sums be
    vectorised and so change their last bits.

    Args:
        inline: "always" copies the function into its callers.
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "inline": inline}
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # "cannot cache function: no locator available"
            return njit(**options)(function)

    return decorate


def num_threads() -> int:
    """How many threads to use: the environment's CROWDZOO_THREADS, else the cores that this process may run on.

    Raises:
        ConfigError: the variable holds no positive integer.
    """
    setting = os.environ.get(VARIABLE, "")
    if setting:
        if not setting.isdigit() or int(setting) < 1:
            raise ConfigError(f"{VARIABLE} must be a positive number of threads, got {setting!r}.")
        return int(setting)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def in_threads(function: Callable[[Sequence[Item]], T], items: Sequence[Item], threads: int) -> list[T]:
    """Calls `function` with consecutive parts of `items`, one part a thread.

    Which part has which items depends on the number of threads only, so sums come out the same in every run. A call
    from within `function` works through its parts in the thread that it is in: all threads may wait for such calls, and
    none would be left to do them.

    Where the caller is interrupted (Ctrl-C) or an earlier part fails, the others stop at their next call of
    `in_threads`, or at the end of their part.

    Args:
        function: computes one part.
        items: work; no more threads than items are started.
        threads: at most so many.

    Returns:
        The results, in the order of the parts; one for an empty part where there are no items.
    """
    outer: threading.Event | None = getattr(_current, "stop", None)
    if outer is not None and outer.is_set():
        raise CancelledError("The call of in_threads that this one is part of was interrupted.")
    parts = _parts(items, threads)
    if outer is not None or len(parts) == 1:
        return [function(part) for part in parts]
    stop = threading.Event()

    def work(part: Sequence[Item]) -> T:
        _current.stop = stop
        try:
            return function(part)
        finally:
            _current.stop = None

    pool, futures, results = _pool(os.getpid(), len(parts)), list[Future[T]](), list[T]()
    try:
        for part in parts:
            futures.append(pool.submit(work, part))
        for future in futures:
            # with a time limit: an interrupt that another thread receives does not wake this one
            while not wait([future], timeout=0.1).done:
                pass
            results.append(future.result())
        return results
    except BaseException as error:
        stop.set()
        for future in futures:
            future.cancel()
        if isinstance(error, KeyboardInterrupt):  # a thread that was just starting is not known to the pool's exit
            pool.shutdown(wait=False)
            _pool.cache_clear()
        raise


def _parts(items: Sequence[Item], threads: int) -> list[Sequence[Item]]:
    """Consecutive parts of about equal length, at most one a thread; a single one may be empty."""
    threads = max(1, min(threads, len(items)))
    ends = [len(items) * part // threads for part in range(threads + 1)]
    return [items[begin:end] for begin, end in pairwise(ends)]


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them costs more than an iteration on a small table. A fork has none of them."""
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdzoo")
