"""compiled: how the package's loops become machine code."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(inline: str = "never") -> Callable[[F], F]:
    """Decorator: a loop over arrays, compiled by Numba at its first call and kept on disk for the next process.

    The function runs without the interpreter's lock, so threads may call it side by side. Division by zero gives inf or
    NaN, as in NumPy. Where no folder can be written the code is compiled again in each process.

    Of LLVM's liberties it has "contract" (fused multiply-add), which is always safe; "reassoc" would let sums be
    vectorised and so change their last bits.

    Args:
        inline: "always" copies the function into its callers.
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "inline": inline}
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # "cannot cache function: no locator available"
            return njit(**options)(function)

    return decorate
