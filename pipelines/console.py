"""The terminal during a run: one line per component, with everything else in a log file."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO


class Console:
    """Prints `[3/8] CrowdAggregator … 2.1 s` to the terminal while other output of a run goes to a log file.

    A run writes thousands of lines, some of them from C++ and not through Python's streams. So file descriptors 1 and 2
    are redirected to the log, and a duplicate of the old 2 is used for progress.

    Args:
        log: path of the log file; it is created, with its folder.
        quiet: print nothing.
    """

    def __init__(self, log: str | Path, quiet: bool = False):
        self.log = Path(log)
        self.quiet = quiet
        self._terminal: TextIO | None = None

    @contextmanager
    def captured(self) -> Iterator["Console"]:
        """Redirects standard output and error to the log within the block, including tracebacks."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        streams = sys.stdout, sys.stderr
        for stream in streams:
            stream.flush()
        kept = os.dup(1), os.dup(2)
        with (
            open(self.log, "a", encoding="utf-8", buffering=1) as log,
            os.fdopen(kept[1], "w", closefd=False) as terminal,
        ):
            self._terminal = terminal
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            sys.stdout = sys.stderr = log
            try:
                yield self
            except BaseException:
                traceback.print_exc(file=log)
                raise
            finally:
                self._terminal = None
                sys.stdout, sys.stderr = streams
                _hand_over(log, sys.stderr)
                for descriptor, old in enumerate(kept, start=1):
                    os.dup2(old, descriptor)
                    os.close(old)

    def say(self, text: str, end: str = "\n") -> None:
        """Prints to the terminal, also while file descriptor 2 is captured."""
        if not self.quiet:
            print(text, end=end, file=self._terminal or sys.stderr, flush=True)

    @contextmanager
    def step(self, number: int, total: int, name: str) -> Iterator["Step"]:
        """Prints a component's line: its name when it starts, and its outcome when it ends."""
        self.say(f"[{number}/{total}] {name} … ", end="")
        step, started = Step(), time.monotonic()
        try:
            yield step
        except BaseException as error:
            self.say("interrupted" if isinstance(error, KeyboardInterrupt | SystemExit) else "failed")
            raise
        step.seconds = time.monotonic() - started
        self.say("cached" if step.cached else f"{step.seconds:.1f} s")


def _hand_over(log: TextIO, stream: TextIO) -> None:
    """Redirects loggers that were set up while the log was standard error to the terminal; the log will be closed."""
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler) and handler.stream is log:
                handler.setStream(stream)


@dataclass
class Step:
    """One component's turn.

    Attributes:
        cached: set by the caller where an earlier result was used.
        seconds: how long it took, once it has ended.
    """

    cached: bool = False
    seconds: float = 0.0


def error_message(error: BaseException) -> str:
    """An error's type and the first line of its text; text that Beam and TFX add is only in the log."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
