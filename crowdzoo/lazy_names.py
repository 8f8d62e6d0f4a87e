"""Names of a package that load their module when they are first used."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str,
    names: Mapping[str, str],
    *,
    modules: Sequence[str] = (),
    loaded: Sequence[str] = (),
    hidden: str = "",
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package whose names load when they are first used.

    Args:
        package: the package's `__name__`.
        names: module -> its names, separated by spaces.
        modules: modules of the package that are public names themselves.
        loaded: names that the package already has.
        hidden: names, separated by spaces, that can be imported but are neither listed nor imported by `*`.

    Example:
        `__all__, __getattr__, __dir__ = lazy_names(__name__, {"crowdzoo.serving.server": "Server serve"})`
    """
    module_of = {name: module for module, text in names.items() for name in text.split()}
    every = sorted({*loaded, *modules, *module_of} - {*hidden.split()})

    def load(name: str) -> Any:
        if name in module_of:
            return getattr(importlib.import_module(module_of[name]), name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return every, load, lambda: every
