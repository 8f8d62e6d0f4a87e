"""Instructions for compiled loops: vector instructions, or plain loops if LLVM's interface refuses them.

- `add_run(target, i, source, j, length)`: target[i : i + length] += source[j : j + length], float64; `length` is known
  when compiled.
- `add_rows(target, i, table, annotators, labels, begin, end, far, ahead, length)`: for each j from `begin` to `end`,
  target[i : i + length] += the row of a table [R, length, length] at annotators[j], labels[j]; if j is below `far`,
  row j + ahead is prefetched. `length` is known when compiled.
- `prefetch(source, i)`: prefetches the cache line of source[i], which need not exist.
- `exp(x)`: exponential for x <= 0; 0 below -708.

`VECTORISED` says which are in use. Plain loops give the same results up to rounding, but more slowly.
"""

import math
import warnings

import numpy as np

from crowdzoo.aggregation.engine.loops import compiled

__all__ = ["VECTORISED", "add_rows", "add_run", "exp", "prefetch"]

try:
    from crowdzoo.aggregation.engine.vector import add_rows, add_run, exp, prefetch, trial

    problem = "" if trial(np.ones(3)) == 10.0 else "a trial of them gave a wrong number"
# No error of a new llvmlite or Numba may stop aggregation: removed names (ImportError, AttributeError), other
# arguments (TypeError), their own errors of typing and lowering, and RuntimeError if LLVM refuses the code
except Exception as error:
    problem = f"{type(error).__name__}: {error}"
VECTORISED = not problem

if not VECTORISED:
    warnings.warn(f"aggregation runs without vector instructions, several times slower: {problem}", stacklevel=2)

    @compiled(inline="always")
    def add_run(target, i, source, j, length):  # type: ignore[no-untyped-def]  # for Numba
        """See the module."""
        for k in range(np.uint64(length)):
            target[i + k] += source[j + k]

    @compiled(inline="always")
    def add_rows(  # type: ignore[no-untyped-def]  # for Numba
        target, i, table, annotators, labels, begin, end, far, ahead, length
    ):
        """See the module; does not prefetch."""
        for j in range(begin, end):
            row = (np.uint64(annotators[j]) * np.uint64(length) + np.uint64(labels[j])) * np.uint64(length)
            for k in range(np.uint64(length)):
                target[i + k] += table[row + k]

    @compiled(inline="always")
    def prefetch(source, i):  # type: ignore[no-untyped-def]  # for Numba
        """Does nothing; prefetching would only save time."""

    @compiled()
    def exp(x):  # type: ignore[no-untyped-def]  # for Numba
        """See the module."""
        return math.exp(x) if x > -708.0 else 0.0
