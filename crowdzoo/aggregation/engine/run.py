"""Run: one start of an iterative algorithm, independent of who computes its counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from crowdzoo.aggregation.engine.confusions import Counts

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Run(Generic[P]):
    """State of one start between two steps.

    Attributes:
        params: parameters of the next E-step; the final ones if `done`.
        history: objective of the start and of each iteration so far, nats.
        log_likelihood: log-likelihood of the last E-step, without prior, nats.
        converged: whether the objective has converged.
        done: whether the run has converged or reached `max_iter`.
        counts: if `done`, counts of all blocks under `params`; None if the method uses other counts than `Counts`.
    """

    params: P
    history: tuple[float, ...] = ()
    log_likelihood: float = 0.0
    converged: bool = False
    done: bool = False
    counts: Counts | None = None

    @property
    def num_iterations(self) -> int:
        """Number of M-steps after the start."""
        return max(len(self.history) - 1, 0)

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes of a result that describe the best run."""
        return {
            "log_likelihood": self.log_likelihood,
            "history": self.history,
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            **({} if self.counts is None else self.counts.facts),
        }

    def last_rise(self, num_annotations: int) -> float:
        """Increase of the objective in the last iteration, nats per annotation."""
        return (self.history[-1] - self.history[-2]) / max(num_annotations, 1) if len(self.history) > 1 else 0.0


def best_of(runs: Sequence[Run[P]]) -> Run[P]:
    """The run with the highest objective; ties go to the earliest."""
    return max(runs, key=lambda run: run.history[-1:])


def advance(
    run: Run[P],
    objective: float,
    log_likelihood: float,
    num_annotations: int,
    max_iter: int,
    tol: float,
    m_step: Callable[[], P],
) -> Run[P]:
    """Runs one iteration; a finished run is unchanged.

    Args:
        run: the run so far.
        objective: objective at `run.params`, nats.
        log_likelihood: log-likelihood at `run.params`, nats.
        num_annotations: total number of annotations.
        max_iter: maximum number of M-steps after the start.
        tol: converged if the objective rises by at most this per annotation.
        m_step: function that returns the next parameters; only called if there is a next iteration.
    """
    if run.done:
        return run
    history = (*run.history, objective)
    converged = len(history) > 1 and history[-1] - history[-2] <= tol * max(num_annotations, 1)
    done = converged or len(history) > max_iter
    return Run(run.params if done else m_step(), history, log_likelihood, converged, done)
