"""Iterative: a method that raises an objective until it converges, and its starting point.

VariationalBayes: the methods with Dirichlet distributions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Aggregator, check_classification, warn_not_converged
from crowdzoo.aggregation.classes.history import Prior, with_prior
from crowdzoo.aggregation.engine.block import Additive, Block, blocks_of, occurrences
from crowdzoo.aggregation.engine.confusions import Counts, first_counts, first_shares, posteriors_and_labels
from crowdzoo.aggregation.engine.right_wrong import Answers, given_answers
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Initial: TypeAlias = ArrayLike | Aggregation | None  # argument of `fit`
P = TypeVar("P")


class Iterative(Aggregator):
    """Base class of the methods with the settings `max_iter` and `tol`, whose state between iterations is a `Run`.

    `max_iter` counts iterations after the start, as in scikit-learn: an E-step and an M-step each. The M-step that
    computes the first parameters from the votes is not counted; a last E-step computes the posteriors.

    Attributes:
        title: name of the method in messages.
    """

    max_iter: int
    tol: float
    title: ClassVar[str]

    def _advance(self, run: Run[P], objective: float, counts: Additive, m_step: Callable[[], P]) -> Run[P]:
        """Runs one iteration with the settings of this method; see `crowdzoo.aggregation.engine.run.advance`.

        Args:
            run: the run so far.
            objective: objective at `run.params`, nats.
            counts: counts of all blocks, computed with `run.params`.
            m_step: returns the next parameters.
        """
        likelihood, number = counts.log_likelihood, counts.num_annotations
        later = advance(run, objective, likelihood, number, self.max_iter, self.tol, m_step)
        return replace(later, counts=counts) if later.done and isinstance(counts, Counts) else later


def warn_unless_converged(method: Iterative, run: Run[Any], number: int) -> None:
    """Warns if a finished run has not converged, and says what to do.

    Args:
        method: method of the run.
        run: the best run.
        number: number of annotations.
    """
    if not run.converged:
        change = run.last_rise(number)
        warn_not_converged(method.title, method.max_iter, method.tol, change, "gain in log-likelihood per annotation")


# === Where an algorithm begins, if the caller says so ===


def first_answers(
    blocks: Sequence[Block], num_annotators: int, num_classes: int, first: NDArray[np.float64] | None, *, by_label: bool
) -> Answers:
    """Answers of all blocks under `first_shares`, with one cell per annotator, or per annotator and label."""
    shape = (num_annotators, num_classes) if by_label else (num_annotators,)
    votes = np.ones(num_annotators)
    answers = (given_answers(block, first_shares(block, votes, num_classes, first), shape) for block in blocks)
    return sum(answers, Answers.zero(shape, num_classes))


def same_crowd(initial: Initial, method: str, annotations: Annotations) -> TypeGuard[Aggregation]:
    """Whether `initial` is an earlier result of the method for the same annotators and classes."""
    return (
        isinstance(initial, Aggregation)
        and initial.method == method
        and np.array_equal(initial.annotators, annotations.annotators)
        and np.array_equal(initial.classes, np.asarray(annotations.classes))
    )


def taken(
    annotations: Annotations, title: str, gold: ArrayLike | None, initial: Initial
) -> tuple[list[Block], NDArray[np.float64] | None]:
    """Checks the arguments of `fit` of a method; returns blocks, and posteriors [N, K] to start from."""
    check_classification(annotations, title)
    return blocks_of(annotations, gold), initial_posteriors(initial, annotations)


def initial_posteriors(initial: Initial, annotations: Annotations) -> NDArray[np.float64] | None:
    """Returns posteriors [N, K] to start from, or None.

    Args:
        initial: posteriors [N, K], an earlier `Aggregation` of the same tasks and classes for its posteriors, or None.
        annotations: N tasks, K classes.

    Raises:
        DataError: wrong shape, rows that are not probabilities, or an `Aggregation` of other tasks or classes.
    """
    if initial is None:
        return None
    if isinstance(initial, Aggregation):
        check_same(initial, annotations, "tasks", "classes")
        return initial.posteriors
    return checked_initial(initial, annotations.num_tasks, annotations.num_classes)


def check_same(initial: Aggregation, annotations: Annotations, *names: str) -> None:
    """Raises an error for an earlier result of other tasks, annotators or classes.

    Raises:
        DataError: one of the attributes differs.
    """
    for name in names:
        if not np.array_equal(getattr(initial, name), getattr(annotations, name)):
            raise DataError(f"initial: that Aggregation has other {name} than the annotations.")


def checked_initial(initial: ArrayLike, *shape: int) -> NDArray[np.float64]:
    """Returns `initial` as float64 of this shape, whose rows (last axis) are probabilities.

    Raises:
        DataError: wrong shape, or rows that are not probabilities.
    """
    start = np.asarray(initial, np.float64)
    if start.shape != shape:
        kind = "posteriors [N, K]" if len(shape) == 2 else "confusions [R, K, K]"
        raise DataError(f"initial must be {kind} = {list(shape)}, got shape {list(start.shape)}.")
    if not (start >= 0).all() or not np.allclose(start.sum(axis=-1), 1, atol=1e-6):
        raise DataError("initial must contain probabilities: non-negative rows that sum to one.")
    return start


class Incremental(Aggregator):
    """Base class of the methods whose `fit` accepts `initial`, so that they can continue from an earlier result."""

    def partial_fit(
        self, annotations: Annotations, earlier: Aggregation | None = None, gold: ArrayLike | None = None
    ) -> Aggregation:
        """Fits all annotations, old and new, starting where an earlier fit ended.

        The parameters of the earlier result determine the first posteriors; new annotators start with the mean matrix
        of the others. The rest is `fit`, so at convergence the result is that of a fit to all annotations, if both
        reach the same maximum. EM may reach another one, as it does not start from the votes. Fewer iterations are
        needed, and each takes as long as in `fit`.

        Unlike a scikit-learn estimator, an aggregator has no state between calls: the state is `earlier`.

        Args:
            annotations: all N tasks, R annotators, K classes so far; tasks and annotators may differ from those of
                `earlier`, and be in another order.
            earlier: result of a method with confusion matrices for some of these annotators, and the same classes in
                the same order. None for the first call, which is `fit`.
            gold: known class codes, int [N], -1 where unknown.

        Returns:
            As `fit`.

        Raises:
            DataError: as `fit`; or `earlier` has no confusion matrices, or other classes.
        """
        if earlier is None:
            result: Aggregation = self.fit(annotations, gold)
        else:
            result = self.fit(annotations, gold, initial=_continued(earlier, annotations))
        return result


def _continued(earlier: Aggregation, annotations: Annotations) -> NDArray[np.float64]:
    """Posteriors [N, K] of all tasks under an earlier result's parameters."""
    if earlier.confusions is None or earlier.class_prior is None:
        raise DataError(f"earlier: {earlier.method} has no confusion matrices to continue from. Use fit.")
    classes = np.asarray(annotations.classes)
    if not np.array_equal(earlier.classes, classes):
        raise DataError(
            f"earlier has the classes {earlier.classes.tolist()}, the annotations have {classes.tolist()}. Read both "
            "with the same `classes`, or use fit."
        )
    seen = np.maximum(earlier.annotations_per_annotator, 1e-9)  # weights of an average, even if nobody has annotations
    mean = np.average(earlier.confusions, axis=0, weights=seen) if len(seen) else None
    size = len(earlier.classes)
    confusions = np.tile(np.full((size, size), 1 / size) if mean is None else mean, (annotations.num_annotators, 1, 1))
    place = {name: code for code, name in enumerate(earlier.annotators.tolist())}
    old = np.array([place.get(name, -1) for name in annotations.annotators.tolist()], np.int64)
    confusions[old >= 0] = earlier.confusions[old[old >= 0]]
    known = replace(
        earlier,
        annotators=annotations.annotators,
        confusions=confusions,
        annotations_per_annotator=occurrences(annotations.annotator_ids, annotations.num_annotators),
    )
    return known.posteriors_of(annotations)


# === By Dirichlet distributions ===


class VariationalBayes(Incremental, Iterative):
    """Base class of the methods that estimate Dirichlet distributions of the annotators' confusion matrices.

    Beliefs about the annotators have `params` (expected logarithms, for Dawid-Skene's E-step), `divergence` (from the
    priors, nats) and `means` (expected matrices and class probabilities).

    Attributes:
        name: name of the method in results.
    """

    name: ClassVar[str]
    seed: int

    def fit(
        self, annotations: Annotations, gold: ArrayLike | None = None, initial: Initial = None, prior: Prior = None
    ) -> Aggregation:
        """Estimates truths and annotators jointly.

        Memory in addition to the annotations: as `DawidSkene`, plus 8 K**2 bytes per annotator.

        Args:
            annotations: N tasks, R annotators, K classes; not changed.
            gold: known class codes, int [N], -1 where unknown. The posteriors of these tasks are fixed, and the bound
                includes them.
            initial: starting point instead of vote shares: posteriors [N, K], or an earlier `Aggregation` of the
                same tasks and classes, whose posteriors are used.
            prior: an earlier result for classes. Its annotations, with their posteriors there, count in the estimates
                of annotators and classes. Annotators and classes are matched by name; those that only the prior has are
                last in the result. Its tasks are not aggregated again.

        Returns:
            Posteriors under the last beliefs; the class prior for tasks without annotations. `confusions` and
            `class_prior` are posterior means, and `log_likelihood` is that of the annotations (and known classes) under
            these means. `history` is the variational lower bound of the log-probability of annotations and known
            classes at the start and after each iteration, nats. Ties are broken at random, as in `MajorityVote`.

        Raises:
            DataError: annotations are not of kind classification, or `gold`, `initial` or `prior` does not match them.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
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
        """Returns the variational lower bound, nats.

        Each task adds its log normaliser, log of the sum over k of exp(E[log rho_k] + sum of E[log pi_rkl]), as its
        posterior is optimal; the divergence of the beliefs from the priors is subtracted.

        Args:
            counts: counts computed with `beliefs.params`.
            beliefs: beliefs at which the bound is evaluated.
            num_idle: number of counted tasks with neither annotations nor a known class; they are not data.
        """
        idle = num_idle * float(np.logaddexp.reduce(beliefs.params.log_class_prior)) if num_idle else 0.0
        return counts.log_likelihood - idle - beliefs.divergence + self._log_density(beliefs)

    @abstractmethod
    def _first(self, counts: Counts) -> Any:
        """First beliefs, from counts under the first posteriors."""

    @abstractmethod
    def _next(self, counts: Counts, earlier: Any) -> Any:
        """Next beliefs, from counts under the earlier ones."""

    def _log_density(self, beliefs: Any) -> float:
        """Log density of what the priors depend on (up to a constant), nats; 0 if they are fixed."""
        return 0.0
