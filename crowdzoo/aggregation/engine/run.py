"""Run: one start of an iterative algorithm, whoever adds up its counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from crowdzoo.aggregation.engine.confusions import Counts

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Run(Generic[P]):
    """One start, between two steps.

    Attributes:
        params: parameters of the next E-step; the final ones once `done`.
        history: objective of the start and of each iteration so far, nats.
        log_likelihood: of the last E-step, without prior, nats.
        converged: the objective no longer changes.
        done: converged, or out of iterations.
        counts: once `done`, of all blocks under `params`; None where the method has others than `Counts`.
    """

    params: P
    history: tuple[float, ...] = ()
    log_likelihood: float = 0.0
    converged: bool = False
    done: bool = False
    counts: Counts | None = None

    @property
    def num_iterations(self) -> int:
        """M-steps after the start."""
        return max(len(self.history) - 1, 0)

    @property
    def facts(self) -> dict[str, Any]:
        """What a result says of the run that is kept, by the names of its attributes."""
        return {
            "log_likelihood": self.log_likelihood,
            "history": self.history,
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            **({} if self.counts is None else self.counts.facts),
        }

    def last_rise(self, num_annotations: int) -> float:
        """By how much the last iteration raised the objective, nats per annotation."""
        return (self.history[-1] - self.history[-2]) / max(num_annotations, 1) if len(self.history) > 1 else 0.0


def best_of(runs: Sequence[Run[P]]) -> Run[P]:
    """The run with the highest objective; the earliest of equals."""
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
    """One iteration; a run that is done stays as it is.

    Args:
        run: so far.
        objective: of `run.params`, nats.
        log_likelihood: of `run.params`, nats.
        num_annotations: all of them.
        max_iter: most M-steps after the start.
        tol: converged when the objective rose by no more than this per annotation.
        m_step: gives the next parameters; called if there is a next iteration.
    """
    if run.done:
        return run
    history = (*run.history, objective)
    converged = len(history) > 1 and history[-1] - history[-2] <= tol * max(num_annotations, 1)
    done = converged or len(history) > max_iter
    return Run(run.params if done else m_step(), history, log_likelihood, converged, done)
