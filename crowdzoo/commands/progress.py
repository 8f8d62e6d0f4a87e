"""A bar for what takes long."""

import contextlib
from typing import Any

__all__ = ["fitted", "progress"]


@contextlib.contextmanager
def progress(title: str, total: int) -> Any:
    """A bar on the terminal's error stream; yields a function that counts one step."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def fitted(aggregator: Any, crowd: Any, **known: Any) -> Any:
    """The result of `aggregator.fit`, with a bar where that makes several fits (`num_fits`).

    Args:
        aggregator: of any kind.
        crowd: what it is fitted to.
        **known: further arguments of `fit`, such as `gold`.
    """
    if not hasattr(aggregator, "num_fits"):
        return aggregator.fit(crowd, **known)
    with progress("choosing", aggregator.num_fits(**known)) as step:
        return aggregator.fit(crowd, **known, on_fit=step)
