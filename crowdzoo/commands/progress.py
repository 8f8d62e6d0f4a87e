"""A bar for what takes long."""

import contextlib
from typing import Any


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Any:
    """A bar on the terminal's error stream; yields a function that counts one step.

    Args:
        title: what is done.
        total: number of steps, of which the time left follows; None shows the time so far.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = () if total is not None else (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def fitted(aggregator: Any, crowd: Any, **known: Any) -> Any:
    """The result of `aggregator.fit`, with the time so far.

    Args:
        aggregator: of any kind.
        crowd: what it is fitted to.
        **known: further arguments of `fit`, such as `gold`.
    """
    from crowdzoo.aggregation.named import result_of

    with progress(getattr(aggregator, "title", "aggregating"), None):
        return result_of(aggregator, crowd, **known)
