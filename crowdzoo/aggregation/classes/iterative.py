"""Iterative: a method that raises an objective until it no longer changes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.params import Additive
from crowdzoo.aggregation.engine.run import Run, advance

P = TypeVar("P")


class Iterative(Aggregator):
    """Base of the methods with the settings `max_iter` and `tol`, whose state between two iterations is a `Run`.

    `max_iter` counts what comes after the start, as in scikit-learn: an E-step and an M-step each. Where the first
    parameters are made of the votes, that M-step is not counted; a last E-step gives the posteriors.

    Attributes:
        title: the method's name in messages.
    """

    max_iter: int
    tol: float
    title: ClassVar[str]

    def _advance(self, run: Run[P], objective: float, counts: Additive, m_step: Callable[[], P]) -> Run[P]:
        """One iteration with this method's settings; see `crowdzoo.aggregation.engine.run.advance`.

        Args:
            run: so far.
            objective: of `run.params`, nats.
            counts: of all blocks, made with `run.params`.
            m_step: gives the next parameters.
        """
        likelihood, number = counts.log_likelihood, counts.num_annotations
        later = advance(run, objective, likelihood, number, self.max_iter, self.tol, m_step)
        return replace(later, counts=counts) if later.done and isinstance(counts, Counts) else later


def warn_unless_converged(method: Iterative, run: Run[Any], number: int) -> None:
    """Says what to do about a run that is done without having converged.

    Args:
        method: whose run it is.
        run: the one that is kept.
        number: of annotations.
    """
    if not run.converged:
        change = run.last_rise(number)
        warn_not_converged(method.title, method.max_iter, method.tol, change, "nats per annotation")
