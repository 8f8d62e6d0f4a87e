"""Runs of all starts: how they begin, go on and end, wherever the annotators' parameters are."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.beam.methods.base import Method
from crowdzoo.beam.values import State, Sums, Tally

__all__ = ["begun", "best_run", "best_start", "finished_run", "next_run", "sum_of", "without_rows"]

Array = NDArray[np.float64]


def sum_of(values: Iterable[Sums]) -> Sums:
    """All of them added up; at least one."""
    return functools.reduce(Sums.__add__, values)


def without_rows(state: State) -> State:
    """All that is small of a state."""
    return replace(state, rows=())


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


def best_start(state: State) -> int:
    """The start with the highest objective; the earliest of equals."""
    return max(range(len(state.runs)), key=lambda start: state.runs[start].history[-1])


def best_run(state: State, method: Method) -> Run:
    """The best start as the local engine has it; with shards, of no annotator."""
    best = best_start(state)
    return finished_run(method, state.runs[best], state.rows[best] if state.rows else method.zero(0).rows)


def finished_run(method: Method, run: Run[Array], rows: Array) -> Run:
    """A run as the local engine has it."""
    history = run.history if method.max_iter else ()
    return replace(run, params=method.params(rows, run.params), history=history)
