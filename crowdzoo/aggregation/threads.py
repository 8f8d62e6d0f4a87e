"""Threads: work on blocks side by side. Compiled kernels run without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from crowdzoo.errors import ConfigError

__all__ = ["in_threads", "num_threads"]

T = TypeVar("T")
Item = TypeVar("Item")

VARIABLE = "CROWDZOO_THREADS"


def num_threads() -> int:
    """How many threads to use: the environment's CROWDZOO_THREADS, else the cores that this process may run on.

    Raises:
        ConfigError: the variable holds no positive integer.
    """
    given = os.environ.get(VARIABLE, "")
    if given:
        if not given.isdigit() or int(given) < 1:
            raise ConfigError(f"{VARIABLE} is a positive number of threads. Received: {VARIABLE}={given!r}.")
        return int(given)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def in_threads(function: Callable[[Sequence[Item]], T], items: Sequence[Item], threads: int) -> list[T]:
    """Calls `function` with consecutive parts of `items`, one part a thread.

    Not to be called from within itself. Which thread gets what depends on the number of threads only, so sums come out
    the same in every run.

    Args:
        function: of a part.
        items: work; no more threads than items are started.
        threads: at most so many.

    Returns:
        The results, in the order of the parts; one for an empty part where there are no items.
    """
    threads = max(1, min(threads, len(items)))
    if threads == 1:
        return [function(items)]
    ends = [len(items) * part // threads for part in range(threads + 1)]
    parts = (items[begin:end] for begin, end in pairwise(ends))
    return list(_pool(os.getpid(), threads).map(function, parts))


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them costs more than an iteration on a small table. A fork has none of them."""
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdzoo")
