"""Deprecated functions and arguments, which still work and warn about their replacement."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from crowdzoo.errors import ConfigError

__all__ = ["deprecated", "renamed_argument"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def deprecated(
    instead: str, *, since: str, removed_in: str
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Marks a function that will be removed.

    Args:
        instead: the replacement, as written in code.
        since: version that deprecates it, such as "1.2".
        removed_in: version that removes it, two minor releases later.

    Example:
        >>> from crowdzoo.deprecation import deprecated
        >>> @deprecated("crowdzoo.quality.raw_agreement", since="1.2", removed_in="1.4")
        ... def agreement(annotations):
        ...     return 1.0
    """

    def mark(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        name = f"{function.__module__}.{function.__qualname__}"

        @functools.wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            _warn(f"{name}()", instead, since, removed_in)
            return function(*args, **kwargs)

        return call

    return mark


def renamed_argument(
    old: str, new: str, *, since: str, removed_in: str
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Marks a function, or the `__init__` of a class, whose argument has a new name; the old one still works.

    Args:
        old: the earlier name.
        new: the name in the signature.
        since: version that renames it.
        removed_in: version that no longer accepts the old name.

    Raises:
        ConfigError: a caller passes both names.

    Example:
        >>> from crowdzoo.deprecation import renamed_argument
        >>> @renamed_argument("task", "kind", since="1.2", removed_in="1.4")
        ... def read(path, kind):
        ...     return path, kind
    """

    def mark(function: Callable[..., Result]) -> Callable[..., Result]:
        name = f"{function.__module__}.{function.__qualname__}".removesuffix(".__init__")

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Result:
            if old in kwargs:
                if new in kwargs:
                    raise ConfigError(f"{name}() got both {new}= and its earlier name, {old}=. Use {new}= only.")
                _warn(f"{old}= of {name}()", f"{new}=", since, removed_in)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return mark


def _warn(name: str, instead: str, since: str, removed_in: str) -> None:
    text = f"{name} is deprecated since crowdzoo {since} and will be removed in {removed_in}. Use {instead} instead."
    warnings.warn(text, FutureWarning, stacklevel=3)
