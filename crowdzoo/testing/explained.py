"""explained: a check of a battery whose failure says what was checked, on which data, and what to do."""

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def explained(check: Callable[[Any], None], data: Callable[[Any], str]) -> Callable[[Any], None]:
    """The check, with all that it raises as an AssertionError whose message can be acted on.

    Args:
        check: takes what is checked; its docstring says what has to hold, and after an empty line what to do if not.
        data: from what is checked to a few words on the data.
    """

    @functools.wraps(check)
    def run(subject: Any) -> None:
        if not __debug__:
            raise RuntimeError("python -O leaves out what checks assert: run the tests without -O and PYTHONOPTIMIZE.")
        try:
            check(subject)
        except Exception as error:  # whatever one's own code raises
            *_, last = frames = traceback.extract_tb(error.__traceback__)
            own = [frame.line for frame in frames if Path(frame.filename).parent == Path(__file__).parent]
            raise AssertionError(
                f"{check.__name__.strip('_')} of {subject!r}.\n{inspect.getdoc(check)}\nData: {data(subject)}\n"
                f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}: "
                f"{str(error).strip() or own[-1]}"
            ) from error

    return run
