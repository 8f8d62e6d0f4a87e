"""Set-up of the process of `crowdzoo`: streams, one-line warnings, SIGTERM, Keras' backend, memory."""

import contextlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

_reported: set[str] = set()  # warnings that this command has shown
_noted: set[str] = set()  # their `notes`, see `crowdzoo.errors.NotedWarning`
NO_LIMIT = 1 << 60  # limit of an unlimited control group of version 1, or more


class Terminated(SystemExit):
    """SIGTERM was received. `finally` and `with` blocks run, so that no temporary files remain."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def open_streams() -> bool:
    """Opens /dev/null in place of closed standard streams, as other files would get their numbers.

    Returns:
        Whether standard output was open.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # this is the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return False
    return True


@contextlib.contextmanager
def escaped_output() -> Iterator[None]:
    """Prints characters that standard output cannot encode as backslash escapes."""
    output = sys.stdout
    if not isinstance(output, io.TextIOWrapper):
        yield
        return
    before = output.errors
    output.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if before is not None and not output.closed:
            with contextlib.suppress(OSError):  # a full disk
                output.reconfigure(errors=before)


@contextlib.contextmanager
def command_process(debug: bool) -> Iterator[None]:
    """Context of a command: warnings are one line each, SIGTERM raises an exception.

    Args:
        debug: show all warnings with their places in the code.
    """
    owner = os.getpid()

    def terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
        if os.getpid() != owner:  # a forked child
            os.kill(os.getpid(), signal.SIGTERM)
        raise Terminated

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Shows each warning that is meant for users once, without the place in the code."""
        text = str(message)
        if issubclass(category, UserWarning) and text not in _reported:
            _reported.add(text)
            _noted.update(getattr(message, "notes", ()))
            say(f"warning: {text}")

    earlier = None
    if threading.current_thread() is threading.main_thread():
        earlier = signal.signal(signal.SIGTERM, terminate)
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.showwarning = show
            yield
    finally:
        _reported.clear()
        _noted.clear()
        if earlier is not None:
            signal.signal(signal.SIGTERM, earlier)


def is_reported(note: str) -> bool:
    """Whether this command has shown the same warning, possibly with the file, the method and rows."""
    return note in _noted


def quiet_libraries() -> None:
    """Leave the terminal to crowdzoo: TensorFlow's start-up lines, and a library's notice about Python 3.10."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.filterwarnings("ignore", message="You are using a .*Python version", category=FutureWarning)


def use_tensorflow() -> None:
    """Choose Keras' backend before its first import: the SavedModel, the pipeline and the server need this one."""
    os.environ["KERAS_BACKEND"] = "tensorflow"


def say(text: str) -> None:
    """Prints a line to standard error, if that can be written to."""
    with contextlib.suppress(OSError, ValueError):
        print(f"crowdzoo: {text}", file=sys.stderr, flush=True)


def finish_output(after_failure: bool = False) -> str | None:
    """Flushes standard output.

    Args:
        after_failure: an `OSError` occurred, perhaps from standard output: test it with an empty line.

    Returns:
        None, or why standard output cannot be written to; buffered output is then dropped.
    """
    try:
        if after_failure:
            sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:  # `crowdzoo … | head`
        _drop_output()
    except (OSError, ValueError) as error:
        _drop_output()
        return getattr(error, "strerror", None) or str(error)
    return None


def _drop_output() -> None:
    with contextlib.suppress(OSError):  # no file in tests
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def available_memory() -> int | None:
    """Bytes available to this process from the machine and its control group; None if unknown."""
    limits = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except OSError:
        pass
    group = Path("/sys/fs/cgroup")
    for limit, used in (
        (group / "memory.max", group / "memory.current"),
        (group / "memory" / "memory.limit_in_bytes", group / "memory" / "memory.usage_in_bytes"),
    ):
        try:
            most, now = (int(path.read_text(encoding="ascii")) for path in (limit, used))
        except (OSError, ValueError):  # no such group, or "max"
            continue
        if most < NO_LIMIT:
            limits.append(max(most - now, 0))
    return min(limits, default=None)
