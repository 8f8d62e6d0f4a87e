"""Runs of all starts together, wherever the annotators' parameters are."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

from crowdzoo.aggregation.engine.run import Run
from crowdzoo.large.beam.values import State, Sums
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.runs import finished_run

__all__ = ["best_run", "best_start", "sum_of", "without_rows"]


def sum_of(values: Iterable[Sums]) -> Sums:
    """All of them added up; at least one."""
    return functools.reduce(Sums.__add__, values)


def without_rows(state: State) -> State:
    """All that is small of a state."""
    return replace(state, rows=())


def best_start(state: State) -> int:
    """The start with the highest objective; the earliest of equals."""
    return max(range(len(state.runs)), key=lambda start: state.runs[start].history[-1])


def best_run(state: State, method: Method) -> Run:
    """The best start as the local engine has it; with shards, of no annotator."""
    best = best_start(state)
    return finished_run(method, state.runs[best], state.rows[best] if state.rows else method.no_rows)
