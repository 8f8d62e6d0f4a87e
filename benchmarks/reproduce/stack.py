"""What a row was computed on. Each row has its own, because rows of one table are often computed on different days."""

import os
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

__all__ = ["PAGES", "elsewhere", "recorded", "stack", "told"]

# what the rows of pages are computed on; a page names it by `told()`, and rows of other stacks one by one
PAGES = {"python": "3.10.13", "numpy": "1.26.4", "backend": "tensorflow", "keras": "3.12.4", "tensorflow": "2.16.2"}
NAMES = {"numpy": "NumPy", "keras": "Keras", "tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def stack(keras: bool = True) -> dict[str, Any]:
    """Versions, backend and number of cores.

    Args:
        keras: whether the row trains a network; else Keras and its backend have no part in it.
    """
    versions: dict[str, Any] = {"python": platform.python_version(), "numpy": version("numpy"), "cores": os.cpu_count()}
    if keras:
        backend = os.environ.get("KERAS_BACKEND", "tensorflow")
        versions |= {"backend": backend, "keras": version("keras"), backend: version(backend)}
    return versions


def told(versions: dict[str, Any] = PAGES) -> str:
    """A stack in words: "Python 3.10.13, NumPy 1.26.4, Keras 3.12.4 on TensorFlow 2.16.2"."""
    words = f"Python {versions['python']}, NumPy {versions['numpy']}"
    if "backend" in versions:
        number = versions.get(versions["backend"], "(version not stored)")
        words += f", Keras {versions['keras']} on {NAMES[versions['backend']]} {number}"
    return words


def elsewhere(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Rows that were not computed on the stack of the pages, and on which they were.

    Args:
        rows: name and `stack()` of each row. The number of cores says nothing about figures and is not compared.
    """
    return {
        name: told(versions)
        for name, versions in rows
        if any(PAGES.get(part) != value for part, value in versions.items() if part != "cores")
    }


def recorded(results: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every stack in a results file, with the name of what it belongs to: "music: CL MW"; "all" for one of the file.

    Args:
        results: what the file has. A row's stack is under "stack".
        name: of what `results` is part of.
    """
    if isinstance(results, dict):
        if isinstance(results.get("stack"), dict):
            yield name or "all", results["stack"]
        for key, part in results.items():
            yield from recorded(part, f"{name}: {key}" if name else key)
    elif isinstance(results, list):
        for number, part in enumerate(results):
            yield from recorded(part, f"{name} {number}".strip())
