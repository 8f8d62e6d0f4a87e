"""Loops over annotations, compiled to machine code and run on all cores without the interpreter's lock."""

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
_current = threading.local()  # in a thread of the pool: `stop`, which ends the call of the thread


def compiled(inline: str = "never") -> Callable[[F], F]:
    """Decorator for loops over arrays, which Numba compiles at the first call and caches on disk.

    The function releases the interpreter's lock, so threads may run it in parallel. Division by zero gives inf or
    NaN, as in NumPy. If no folder is writeable, the code is compiled again in each process.

    Of LLVM's fast-math flags only "contract" (fused multiply-add) is on, which is always safe; "reassoc" would
    vectorise sums and so change their last bits.

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
    """Number of threads: the environment variable CROWDZOO_THREADS, else the cores available to this process.

    Raises:
        ConfigError: the variable is not a positive integer.
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
    """Calls `function` with consecutive parts of `items`, one part per thread.

    The parts depend only on the number of threads, so sums are the same in every run. A call from within `function`
    processes its parts in its own thread: all threads may wait for such calls, and none would be left to run them.

    If the caller is interrupted (Ctrl-C) or an earlier part fails, the others stop at their next call of
    `in_threads`, or at the end of their part.

    Args:
        function: function that computes one part.
        items: work items; no more threads than items are started.
        threads: maximum number of threads.

    Returns:
        The results, in the order of the parts; one for an empty part if there are no items.
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
            # with a time limit, because an interrupt that another thread receives does not wake this one
            while not wait([future], timeout=0.1).done:
                pass
            results.append(future.result())
        return results
    except BaseException as error:
        stop.set()
        for future in futures:
            future.cancel()
        if isinstance(error, KeyboardInterrupt):  # the pool's exit does not know threads that are just starting
            pool.shutdown(wait=False)
            _pool.cache_clear()
        raise


def _parts(items: Sequence[Item], threads: int) -> list[Sequence[Item]]:
    """Splits items into consecutive parts of about equal length, at most one per thread; a single one may be empty."""
    threads = max(1, min(threads, len(items)))
    ends = [len(items) * part // threads for part in range(threads + 1)]
    return [items[begin:end] for begin, end in pairwise(ends)]


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads to reuse, as starting them costs more than an iteration on a small table. A forked process has none."""
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdzoo")
