"""Iterative: a method that raises an objective until it no longer changes; VariationalBayes: those by Dirichlets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.classes.history import Prior, with_prior
from crowdzoo.aggregation.classes.initial import Incremental, Initial, taken
from crowdzoo.aggregation.engine.block import Additive
from crowdzoo.aggregation.engine.confusions import Counts, first_counts, posteriors_and_labels
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.result import Aggregation

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

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


class VariationalBayes(Incremental, Iterative):
    """Base of the methods that find Dirichlet distributions of the annotators' confusion matrices.

    What is believed of the annotators has `params` (expected logarithms, for Dawid-Skene's E-step), `divergence` (from
    the priors, nats) and `means` (expected matrices and class probabilities).

    Attributes:
        name: of the method, in results.
    """

    name: ClassVar[str]
    seed: int

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None, prior: Prior = None
    ) -> Aggregation:
        """Finds truths and annotators together.

        Memory beyond the table of annotations: as `DawidSkene`, and 8 K**2 bytes an annotator more.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. Those tasks keep their class throughout, and the bound
                counts it.
            initial: starting point instead of vote shares: posteriors [N, K], or an earlier `Aggregation` of the
                same tasks and classes, whose posteriors count.
            prior: an earlier result for classes, whose annotations count for annotators and classes as if they were
                fitted here with the posteriors that they had; annotators and classes are matched by name, and those
                that only the prior has follow in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors under the last beliefs; where there are no annotations, the class prior. `confusions` and
            `class_prior` are posterior means, and `log_likelihood` is that of the annotations (and known classes) under
            these means. `history` is the variational lower bound of the log probability of annotations and known
            classes at the start and after each iteration, nats. Ties are drawn, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold`, `initial` or `prior` does not fit them.

        Warns:
            ConvergenceWarning: `max_iter` was not enough.
        """
        annotations, history = with_prior(annotations, prior, self.title)
        blocks, first_posteriors = taken(annotations, self.title, gold, initial)
        num_idle = sum(int((~block.informed).sum()) for block in blocks)
        first = first_counts(blocks, annotations.num_annotators, annotations.num_classes, first_posteriors)
        run = Run(self._first(history.added(first)))
        while not run.done:
            beliefs = run.params
            counts = history.added(Counts.expected(blocks, beliefs.params), beliefs.params)
            bound = self._bound(counts, beliefs, num_idle)
            run = self._advance(run, bound, counts, partial(self._next, counts, beliefs))
        warn_unless_converged(self, run, len(annotations))
        posteriors, labels = posteriors_and_labels(annotations, blocks, run.params.params, self.seed)
        means = run.params.means
        for block in blocks:
            posteriors[block.tasks[~block.informed]] = means.class_prior
        facts = run.facts | {"log_likelihood": Counts.expected(blocks, means).log_likelihood}
        return history.noted(Aggregation.of(self.name, annotations, posteriors, labels, means, **facts))

    def _bound(self, counts: Counts, beliefs: Any, num_idle: int) -> float:
        """The variational lower bound, nats.

        Each task's log normaliser, log of the sum over k of exp(E[log rho_k] + sum of E[log pi_rkl]), is what it adds
        once its posterior is the best one; the beliefs subtract their divergence from the priors.

        Args:
            counts: made with `beliefs.params`.
            beliefs: where the bound is taken.
            num_idle: how many of the counted tasks have neither annotations nor a known class; they are not data.
        """
        idle = num_idle * float(np.logaddexp.reduce(beliefs.params.log_class_prior)) if num_idle else 0.0
        return counts.log_likelihood - idle - beliefs.divergence + self._log_density(beliefs)

    @abstractmethod
    def _first(self, counts: Counts) -> Any:
        """What is believed first, from counts under the first posteriors."""

    @abstractmethod
    def _next(self, counts: Counts, earlier: Any) -> Any:
        """What is believed next, from counts under what was believed before."""

    def _log_density(self, beliefs: Any) -> float:
        """Log density of what the priors depend on (up to a constant), nats; 0 where they are fixed."""
        return 0.0
