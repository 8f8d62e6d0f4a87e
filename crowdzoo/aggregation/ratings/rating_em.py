"""Ratings whose annotators have a bias and a precision each, by variational expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.against_votes import warn_of_notes
from crowdzoo.aggregation.aggregator import Aggregator, warn_not_converged
from crowdzoo.aggregation.base import names_and_counts
from crowdzoo.aggregation.checks import check_ratings
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import block_of_ratings
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.aggregation.ratings.rating_steps import (
    COMMON,
    RESOLUTION,
    SHAPES,
    WORTH,
    RatingAnnotators,
    RatingBeliefs,
    add_expected,
    add_ratings,
    iterated,
    started,
)
from crowdzoo.checks.constraints import END, LEVEL, MAX_ITER, TOL, Flag, Number, setting
from crowdzoo.errors import DataError, short_repr

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

SHRUNK = 0.5  # of the mean ratings' spread, under which the estimates may have collapsed
APART = 0.25  # of the ratings' spread, by which ratings that do not follow the truth may move the level unsaid
LONGEST_SCALE = 10  # of whole numbers, from the lowest to the highest
CONSTANT = 0.2  # of the ratings' spread, under which an annotator's own say little


@dataclass(frozen=True)
class RatingEM(Aggregator):
    """Annotators with a bias and a precision each, found together with the true ratings.

    | what | its distribution |
    |------|------------------|
    | rating of task i by annotator r | `y_ir ~ N(z_i + b_r, 1 / lambda_r)` |
    | true rating | `z_i ~ N(m, 1 / tau)` |
    | bias | `b_r ~ N(0, 1 / omega)` |
    | precision | `lambda_r ~ Gamma(alpha, beta)` |

    An annotator's ratings may also have nothing to do with the truth, with probability `unrelated`: then
    `y_ir ~ N(c_r, 1 / kappa_r)`, with a prior on c and kappa that is worth a tenth of a rating. Otherwise someone who
    gives the same rating each time would be the most precise of all, and the estimates would be that rating.

    Variational EM: z, b, lambda and whether an annotator's ratings follow the truth have distributions, taken to be
    independent of one another (b and lambda given that they do; c and kappa are integrated out); `m, tau, omega, alpha`
    and `beta` are what makes the bound on the log-evidence highest. So nothing has to be chosen: how much annotators
    of few ratings are drawn to the others (the Gamma prior's strength `alpha`, in halves of ratings) is learnt, and a
    change of unit (`a y + c`) changes the result by the same. Annotators' biases are shrunk towards zero by how much
    biases vary in this crowd: one rating moves little.

    A constant added to all z and taken from all b changes no rating. The prior on b nearly settles it; the result is
    anchored: over all annotations the biases sum to zero, so that the crowd as a whole is taken to be right on average,
    as by the mean. With `level="following"` ratings count by the probability that they follow the truth.

    A rating counts as known to a thousandth of the ratings' standard deviation; annotators who agree with one another
    to the last digit would have no finite precision otherwise. Where all ratings are equal, the deviation counts as 1.

    Args:
        bias: whether annotators have biases; False fixes them at zero.
        precision: whether annotators have precisions of their own; False gives all the same.
        unrelated: the probability that an annotator's ratings have nothing to do with the truth, before any is seen,
            from 0 to 0.5. 0: all follow the truth. Without `precision` all do.
        level: the ratings whose biases sum to zero: "all", or "following", those that follow the truth.
        shape: alpha, the strength of the prior on precisions, from 0.1 to 100; None learns it.
        low: lowest rating of the scale, or None for any. With a scale, estimates beyond its ends are set to them.
        high: highest rating of the scale, or None for any.
        max_iter: most iterations.
        tol: stop when the bound rises by less, in nats per annotation.

    Raises:
        ConfigError: a setting out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import RatingEM
        >>> task, annotator = [task for task in range(5) for _ in "abc"], ["ann", "bob", "cem"] * 5
        >>> values = [1, 2, 1, 3, 4, 3, 5, 6, 4, 2, 3, 2, 4, 5, 4]  # bob rates about one higher
        >>> result = RatingEM().fit(Annotations.from_arrays(task, annotator, values, kind="regression"))
        >>> result.estimates.shape
        (5,)
        >>> str(result.annotators[result.biases.argmax()])  # the mildest annotator
        'bob'

    Source:
        The model with biases and precisions is that of V. Raykar et al.: Learning from Crowds. JMLR 2010, section 4
        (regression; there without biases), and of F. Rodrigues et al.: Learning Supervised Topic Models for
        Classification and Regression from Crowds. TPAMI 2017 (with biases). That an annotator may answer without
        regard to the truth is assumed by D. Hovy et al.: Learning Whom to Trust with MACE. NAACL 2013, and by
        V. Raykar, S. Yu: Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks. JMLR 2012.
        Priors, their fit and the anchor are ours.

    Needs:
        Annotators with several ratings each.
    """

    kind: ClassVar[str] = "regression"

    bias: bool = setting(True, Flag())
    precision: bool = setting(True, Flag())
    unrelated: float = setting(0.1, Number(0.0, 0.5))
    level: str = setting("all", LEVEL)
    shape: float | None = setting(None, Number(*SHAPES, optional=True))
    low: float | None = setting(None, END)
    high: float | None = setting(None, END)
    max_iter: int = setting(1000, MAX_ITER)
    tol: float = setting(1e-6, TOL)

    def fit(self, annotations: Annotations, initial: RatingAggregation | None = None) -> RatingAggregation:
        """Runs the EM.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.
            initial: an earlier result, whose biases and precisions the EM begins with, for the annotators that it has
                by name.

        Returns:
            Posterior means and standard deviations of the true ratings; a task without ratings has the prior's.
            `biases` are anchored posterior means, `precisions` posterior means; annotators without ratings have the
            prior's mean. `skills` is the probability that the ratings follow the truth, times `V / (V + e_r)`
            with `V = 1 / tau` and `e_r = 1 / lambda_r + bias_r^2`. Where ratings do not follow the truth, the bias is
            their mean error, and the precision that of these errors. `history` is the bound.

        Raises:
            ConfigError: an impossible scale.
            DataError: not ratings, none at all, or some outside of the scale.

        Warns:
            VotesWarning: the estimates follow an annotator who gives nearly the same rating each time, which happens
                with `unrelated=0`; or ratings that do not follow the truth move the level of all estimates by more
                than a quarter of the ratings' standard deviation; or, without `low` and `high`, estimates lie beyond
                the ratings, which are a few whole numbers. `notes` says so.
        """
        check_ratings(annotations, "Rating EM", self.low, self.high)
        with np.errstate(over="ignore"):  # said below
            spread = annotations.labels.std()
        if not np.isfinite(spread):
            raise DataError("Rating EM takes ratings below 1e150 in size: the variance of these is not finite.")
        if np.ptp(annotations.labels) == 0:
            return self._unanimous(annotations)
        origin, block = block_of_ratings(annotations)
        rows = np.zeros((annotations.num_annotators, 3))
        add_ratings(block, rows)
        run = Run(started(rows, self))
        if initial is not None:
            run = Run(_continued(run.params, initial, annotations))
        while not run.done:
            rows, common = np.zeros_like(rows), np.zeros(COMMON)
            truth, variance = add_expected(block, run.params, rows, common)
            run = iterated(run, rows, common, self)
        beliefs, history = run.params.annotators, run.history
        crowd, number = run.params.crowd, beliefs.number
        change = np.inf if len(history) < 2 else (history[-1] - history[-2]) / len(annotations)
        if not run.converged and self.max_iter > 1:
            warn_not_converged("Rating EM", self.max_iter, self.tol, change, "nats per annotation", 2)
        above = self._biases(beliefs)
        of_all, of_following = (
            float(above @ weights / weights.sum()) for weights in (number, beliefs.follows * number)
        )
        common = of_all if self.level == "all" else of_following
        biases = (above - common) * crowd.unit if self.bias else None
        ends = (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)
        estimates = np.clip(origin + crowd.centre + (crowd.mean + truth + common) * crowd.unit, *ends)
        errors = 1 / beliefs.precision + np.square(above - common)
        notes = _notes(annotations, estimates, number, beliefs.weight)
        notes += () if (self.low, self.high) != (None, None) else _scale_note(annotations.labels, estimates)
        if self.level == "all" and abs(of_all - of_following) > APART:
            moved = (of_all - of_following) * crowd.unit
            notes = (*notes, _level_note(annotations, number, beliefs.follows, moved))
        warn_of_notes("rating-em", notes, stacklevel=3)
        return RatingAggregation(
            method="rating-em",
            **names_and_counts(annotations),
            estimates=estimates,
            standard_errors=np.sqrt(variance) * crowd.unit,
            skills=beliefs.follows / (1 + crowd.truth_precision * errors),
            biases=biases,
            precisions=beliefs.precision / crowd.unit**2,
            history=history,
            converged=run.converged,
            num_iterations=len(history),
            notes=notes,
        )

    def partial_fit(self, annotations: Annotations, earlier: RatingAggregation | None = None) -> RatingAggregation:
        """Fits all ratings, old and new, beginning with the biases and precisions of an earlier result.

        At convergence the result is that of `fit` to all ratings, if both reach the same maximum. An aggregator keeps
        nothing between calls, unlike an estimator of scikit-learn: the state is `earlier`.

        Args:
            annotations: all ratings so far; tasks and annotators may be others than those of `earlier`.
            earlier: result of this or another method for ratings; None, for the first time: `fit`.

        Returns:
            As `fit`.

        Raises:
            ConfigError, DataError: as `fit`.
        """
        return self.fit(annotations, initial=earlier)

    def _unanimous(self, annotations: Annotations) -> RatingAggregation:
        """All ratings are equal: there is nothing to find, and no unit to find it in."""
        annotators = annotations.num_annotators
        return RatingAggregation(
            method="rating-em",
            **names_and_counts(annotations),
            estimates=np.full(annotations.num_tasks, annotations.labels[0]),
            standard_errors=np.zeros(annotations.num_tasks),
            skills=np.ones(annotators),
            biases=np.zeros(annotators) if self.bias else None,
            precisions=np.full(annotators, RESOLUTION**-2),
        )

    def _biases(self, annotators: RatingAnnotators) -> NDArray[np.float64]:
        """How far each annotator's ratings lie above the truth, [R]: the bias, or the mean error where there is none.

        The prior of the bias is that of annotators who follow the truth, and would draw the others to zero.
        """
        if not self.bias:
            return annotators.bias
        means = annotators.error / (annotators.number + WORTH)
        return annotators.follows * annotators.bias + (1 - annotators.follows) * means


def _continued(beliefs: RatingBeliefs, earlier: RatingAggregation, annotations: Annotations) -> RatingBeliefs:
    """First beliefs with biases and precisions of an earlier result, for the annotators that it has."""
    place = {name: code for code, name in enumerate(earlier.annotators.tolist())}
    old = np.array([place.get(name, -1) for name in annotations.annotators.tolist()], np.int64)
    annotators, unit = beliefs.annotators, beliefs.crowd.unit
    if (old < 0).all():
        return beliefs
    if earlier.biases is not None:
        annotators = annotators._replace(bias=np.where(old >= 0, earlier.biases[old] / unit, annotators.bias))
    if earlier.precisions is not None:
        annotators = annotators._replace(
            precision=np.where(old >= 0, earlier.precisions[old] * unit**2, annotators.precision)
        )
    return replace(beliefs, annotators=annotators)


def _notes(
    annotations: Annotations, estimates: NDArray[np.float64], number: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[str, ...]:
    """A sentence if the estimates follow an annotator whose ratings hardly vary: the likelihood has a peak there.

    `number` is how many ratings each annotator gave, and `weights` what one of them weighs, [R].
    """
    counts = annotations.redundancy
    rated = counts > 0
    means = np.bincount(annotations.task_ids, annotations.labels, annotations.num_tasks)[rated] / counts[rated]
    first = int(np.argmax(weights * (number > 1)))
    theirs = annotations.labels[annotations.annotator_ids == first]
    spread = float(means.std())
    if (
        len(theirs) < 2
        or estimates[rated].std() > SHRUNK * spread
        or theirs.std() > CONSTANT * annotations.labels.std()
    ):
        return ()
    return (
        f"The estimates have a standard deviation of {estimates[rated].std():.2g}, the mean ratings of {spread:.2g}: "
        f"they follow annotator {short_repr(annotations.annotators[first])}, who gives nearly the same rating each "
        "time. Set unrelated to 0.1, leave that annotator out, or take method mean.",
    )


def _scale_note(ratings: NDArray[np.float64], estimates: NDArray[np.float64]) -> tuple[str, ...]:
    """A sentence if estimates lie beyond all ratings, where these look like those of a scale: a few whole numbers."""
    low, high = float(ratings.min()), float(ratings.max())
    beyond = int(((estimates < low) | (estimates > high)).sum())
    if not beyond or high - low > LONGEST_SCALE or (ratings % 1).any():
        return ()
    return (
        f"{beyond:,} estimates lie beyond {low:g} to {high:g}, the ratings that occur. If that is the scale, set low "
        f"to {low:g} and high to {high:g}.",
    )


def _level_note(
    annotations: Annotations, means: NDArray[np.float64], follows: NDArray[np.float64], moved: float
) -> str:
    """A sentence on ratings that do not follow the truth and move the level by `moved`, in the labels' unit."""
    most = int(np.argmax((1 - follows) * means))
    number = int(means[follows < 0.5].sum())
    return (
        f"{number:,} of {len(annotations):,} ratings do not seem to follow the truth (most of them by annotator "
        f"{short_repr(annotations.annotators[most])}), and move the level of all estimates by {moved:+.2g}. Set level "
        "to 'following' (--set level=following) to leave them out of it."
    )
