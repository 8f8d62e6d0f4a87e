"""Iterative: a method that raises an objective until it no longer changes, and where it begins.

VariationalBayes: those by Dirichlet distributions.
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

Initial: TypeAlias = ArrayLike | Aggregation | None  # what `fit` takes
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


# === Where an algorithm begins, if the caller says so ===


def first_answers(
    blocks: Sequence[Block], num_annotators: int, num_classes: int, first: NDArray[np.float64] | None, *, by_label: bool
) -> Answers:
    """Answers of all blocks under `first_shares`, for a cell an annotator, or one an annotator and label."""
    shape = (num_annotators, num_classes) if by_label else (num_annotators,)
    votes = np.ones(num_annotators)
    answers = (given_answers(block, first_shares(block, votes, num_classes, first), shape) for block in blocks)
    return sum(answers, Answers.zero(shape, num_classes))


def same_crowd(initial: Initial, method: str, annotations: Annotations) -> TypeGuard[Aggregation]:
    """Whether `initial` is an earlier result of that method, for the same annotators and classes."""
    return (
        isinstance(initial, Aggregation)
        and initial.method == method
        and np.array_equal(initial.annotators, annotations.annotators)
        and np.array_equal(initial.classes, np.asarray(annotations.classes))
    )


def taken(
    annotations: Annotations, title: str, gold: ArrayLike | None, initial: Initial
) -> tuple[list[Block], NDArray[np.float64] | None]:
    """Arguments of `fit` of the method with that title, checked: blocks, and posteriors [N, K] to begin from."""
    check_classification(annotations, title)
    return blocks_of(annotations, gold), initial_posteriors(initial, annotations)


def initial_posteriors(initial: Initial, annotations: Annotations) -> NDArray[np.float64] | None:
    """Posteriors [N, K] to begin from; None stays None.

    Args:
        initial: posteriors [N, K], or an earlier `Aggregation` of the same tasks and classes, whose posteriors count.
        annotations: N tasks, K classes.

    Raises:
        DataError: another shape, rows that are not probabilities, or an `Aggregation` of other tasks or classes.
    """
    if initial is None:
        return None
    if isinstance(initial, Aggregation):
        check_same(initial, annotations, "tasks", "classes")
        return initial.posteriors
    return checked_initial(initial, annotations.num_tasks, annotations.num_classes)


def check_same(initial: Aggregation, annotations: Annotations, *names: str) -> None:
    """Refuses an earlier result of other tasks, annotators or classes.

    Raises:
        DataError: one of the attributes differs.
    """
    for name in names:
        if not np.array_equal(getattr(initial, name), getattr(annotations, name)):
            raise DataError(f"initial: that Aggregation has other {name} than the annotations.")


def checked_initial(initial: ArrayLike, *shape: int) -> NDArray[np.float64]:
    """`initial` as float64 of that shape, with rows (last axis) that are probabilities.

    Raises:
        DataError: another shape, or rows that are not probabilities.
    """
    start = np.asarray(initial, np.float64)
    if start.shape != shape:
        kind = "posteriors [N, K]" if len(shape) == 2 else "confusions [R, K, K]"
        raise DataError(f"initial holds {kind} = {list(shape)}, got shape {list(start.shape)}.")
    if not (start >= 0).all() or not np.allclose(start.sum(axis=-1), 1, atol=1e-6):
        raise DataError("initial holds probabilities: each row is non-negative and sums to one.")
    return start


class Incremental(Aggregator):
    """Base of the methods whose `fit` takes `initial`, and that can so go on from an earlier result."""

    def partial_fit(
        self, annotations: Annotations, earlier: Aggregation | None = None, gold: ArrayLike | None = None
    ) -> Aggregation:
        """Fits all annotations, old and new, beginning where an earlier fit ended.

        The parameters of the earlier result give the first posteriors; annotators who are new have the mean matrix of
        the others there. The rest is `fit`, so at convergence the result is that of a fit to all annotations, if both
        reach the same maximum. EM may find another one: the start is not the votes. Fewer iterations are needed, and
        each takes as long as one of `fit`.

        An aggregator keeps nothing between calls, unlike an estimator of scikit-learn: the state is `earlier`.

        Args:
            annotations: all N tasks, R annotators, K classes so far; tasks and annotators may be others than those of
                `earlier`, and in another order.
            earlier: result of this or another method with confusion matrices for some of these annotators, and the same
                classes in the same order. None, for the first time: `fit`.
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
        raise DataError(f"earlier: {earlier.method} has no confusion matrices to go on from. Use fit.")
    classes = np.asarray(annotations.classes)
    if not np.array_equal(earlier.classes, classes):
        raise DataError(
            f"earlier has the classes {earlier.classes.tolist()}, the annotations have {classes.tolist()}. Read both "
            "with the same `classes`, or use fit."
        )
    seen = np.maximum(earlier.annotations_per_annotator, 1e-9)  # an average, also where nobody has annotations
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
