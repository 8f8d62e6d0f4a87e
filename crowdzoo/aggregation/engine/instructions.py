"""Instructions that compiled loops call: vector instructions, and plain loops where LLVM's interface refuses them.

- `add_run(target, i, source, j, length)`: target[i : i + length] += source[j : j + length], float64; `length` is known
  when compiled.
- `sum_run(source, i, length)`: sum of source[i : i + length].
- `prefetch(source, i)`: asks for the cache line of source[i], which need not exist, ahead of its use.
- `exp(x)`: of x <= 0; 0 below -708.

`VECTORISED` says which they are. Plain loops give the same results but for rounding, more slowly.
"""

import math
import warnings

import numpy as np

from crowdzoo.aggregation.engine.compiled import compiled

__all__ = ["VECTORISED", "add_run", "exp", "prefetch", "sum_run"]

try:
    from crowdzoo.aggregation.engine.vector import add_run, exp, prefetch, sum_run, trial

    VECTORISED = trial(np.ones(3)) == 7.0
except Exception as error:  # whatever a new llvmlite or Numba raises must not stop aggregation
    VECTORISED = False
    warnings.warn(f"aggregation runs without vector instructions, several times slower: {error}", stacklevel=2)

if not VECTORISED:

    @compiled(inline="always")
    def add_run(target, i, source, j, length):  # type: ignore[no-untyped-def]  # for Numba
        """See the module."""
        for k in range(np.uint64(length)):
            target[i + k] += source[j + k]

    @compiled(inline="always")
    def sum_run(source, i, length):  # type: ignore[no-untyped-def]  # for Numba
        """See the module."""
        total = 0.0
        for k in range(np.uint64(length)):
            total += source[i + k]
        return total

    @compiled(inline="always")
    def prefetch(source, i):  # type: ignore[no-untyped-def]  # for Numba
        """Nothing: it would only save time."""

    @compiled()
    def exp(x):  # type: ignore[no-untyped-def]  # for Numba
        """See the module."""
        return math.exp(x) if x > -708.0 else 0.0
