"""A bar for what takes long."""

import contextlib
from typing import Any

__all__ = ["progress"]


@contextlib.contextmanager
def progress(title: str, total: int) -> Any:
    """A bar on the terminal's error stream; yields a function that counts one step."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)
