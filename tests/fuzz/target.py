"""What a fuzzing target is: a strategy for inputs, and the check that each of them has to pass."""

import contextlib
import faulthandler
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import strategies as st

HANG_SECONDS = 30  # by the clock, beside other programs
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True)
class Target:
    """A door of crowdzoo, and what comes through it.

    Attributes:
        inputs: Hypothesis strategy for one input.
        check: gives the input to crowdzoo. Expected errors (`CrowdzooError`, a status 4xx) are part of the check;
            whatever it raises is unforeseen.
        examples: inputs that `make test` tries.
        seconds: CPU-seconds that one input may take, of small ones that must not stand for much work; None: no limit.
    """

    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    examples: int = 30
    seconds: float | None = None


class TooLongError(Exception):
    """An input took more CPU-seconds than its target allows."""


class _TimeIsUp(BaseException):
    """As `TooLongError`, which no `except Exception` of a reader catches."""


@contextlib.contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Ends what takes longer than so many CPU-seconds, or MEMORY_BYTES more of address space than there is."""
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise _TimeIsUp

    before, limits = signal.signal(signal.SIGPROF, stop), resource.getrlimit(resource.RLIMIT_AS)
    if (size := Path("/proc/self/statm")).exists():
        now = int(size.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 2 * MEMORY_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except _TimeIsUp:
        raise TooLongError(f"took more than {seconds:g} CPU-seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


class TooMuchMemoryError(Exception):
    """An input made the process grow by more than MEMORY_BYTES."""


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def run(target: Target, seed: int, examples: int, watch: bool = False) -> int:
    """Tries a target.

    Args:
        target: the target.
        seed: of the inputs.
        examples: how many inputs.
        watch: end the process with a traceback where one input takes longer than HANG_SECONDS.

    Returns:
        How many inputs were checked.

    Raises:
        Exception: what the check raised, for the smallest input that Hypothesis found.
        TooMuchMemoryError: the process grew by more than MEMORY_BYTES.
    """
    checked = 0
    start = peak_bytes()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(target.inputs)
    def one(value: Any) -> None:
        nonlocal checked
        if watch:
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=sys.__stderr__)
        try:
            with limited(target.seconds):
                target.check(value)
        finally:
            faulthandler.cancel_dump_traceback_later()
        checked += 1
        grown = peak_bytes() - start
        if grown > MEMORY_BYTES:
            raise TooMuchMemoryError(f"{grown / (1 << 20):,.0f} MiB above start")

    one()
    return checked
