"""How a run begins, goes on and ends, whoever adds up its tallies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.tally import Tally

__all__ = ["begun", "finished_run", "next_run", "next_start"]

Array = NDArray[np.float64]


def begun(method: Method, common: Array) -> Run[Array]:
    """A run with its first parameters; where there is nothing to iterate, it is done."""
    return Run(common) if method.max_iter else Run(common, (0.0,), 0.0, True, True)


def next_run(method: Method, run: Run[Array], total: Tally, penalty: float) -> Run[Array]:
    """A run after one more iteration, with the parameters that belong to no annotator.

    Args:
        method: whose steps.
        run: before.
        total: counts under the run's parameters.
        penalty: the annotators' part of the objective, nats.
    """
    nobody = replace(total, rows=total.rows[:0])
    return advance(
        run,
        method.objective(total.common, run.params) + penalty,
        float(total.common[-3]),
        int(total.common[-1]),
        method.max_iter,
        method.tol,
        lambda: method.maximise(nobody, None, run.params)[1],
    )


def next_start(
    method: Method, run: Run[Array], total: Tally, rows: Callable[[], Array], penalty: float
) -> tuple[Run[Array], Array]:
    """A run after one more iteration, and its annotators' parameters, where those of all of them are at hand.

    Args:
        method: whose steps.
        run: before.
        total: counts under the run's parameters.
        rows: gives the annotators' parameters before.
        penalty: the annotators' part of the objective, nats.
    """
    if method.judges_m_step:
        return method.iterated(run, total, rows)
    after = next_run(method, run, total, penalty)
    if after.done:
        return after, rows()
    return after, method.maximise(total, rows() if method.needs_rows else None, run.params)[0]


def finished_run(method: Method, run: Run[Array], rows: Array) -> Run:
    """A run as the local engine has it."""
    history = run.history if method.max_iter else ()
    return replace(run, params=method.params(rows, run.params), history=history)
