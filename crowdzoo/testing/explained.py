"""explained: makes failures of a check report the check, the data and advice."""

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def explained(check: Callable[[Any], None], data: Callable[[Any], str]) -> Callable[[Any], None]:
    """Wraps a check so that all its errors become an AssertionError with advice.

    Args:
        check: function of the object to check; its docstring states the requirement, and after an empty line the
            advice.
        data: function of the object to check that describes the data.
    """

    @functools.wraps(check)
    def run(subject: Any) -> None:
        if not __debug__:
            raise RuntimeError("python -O leaves out what checks assert: run the tests without -O and PYTHONOPTIMIZE.")
        try:
            check(subject)
        except Exception as error:  # custom code may raise anything
            *_, last = frames = traceback.extract_tb(error.__traceback__)
            own = [frame.line for frame in frames if Path(frame.filename).parent == Path(__file__).parent]
            raise AssertionError(
                f"{check.__name__.strip('_')} of {subject!r}.\n{inspect.getdoc(check)}\nData: {data(subject)}\n"
                f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}: "
                f"{str(error).strip() or own[-1]}"
            ) from error

    return run
