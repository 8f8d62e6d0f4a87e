"""RatingEM: annotators with a bias and a precision each, and the steps of its EM.

The steps use units of the ratings' standard deviation, except for `RatingCrowd.centre` and `unit`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from crowdzoo.aggregation.base import Aggregator, check_ratings, names_and_counts, warn_not_converged, warn_of_notes
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import block_of_ratings
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.checks.constraints import END, LEVEL, MAX_ITER, TOL, Flag, Number, setting
from crowdzoo.errors import DataError, short_repr

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

# Ratings are not more precise than this; otherwise annotators who always agree would have no finite precision.
RESOLUTION = 1e-3
PRECISIONS = (1e-6, 1e6)  # of the spread of tasks and of biases
SHAPES = (0.1, 100.0)  # of the Gamma distribution of the annotators' precisions
WORTH = 0.1  # ratings that the prior on mean and precision of unrelated ratings is worth
MOST_ODDS = 30.0  # log odds that an annotator's ratings follow the truth, or do not

Array = NDArray[np.float64]

# Sums over blocks are `rows` [R, 3] and `common` [COMMON].
# Before there are beliefs, a row is the number of ratings, their sum, and the sum of their squares; `common` is zero.
# Later it is the sum of errors (rating - mean - truth - bias), of their squares, and of the truths' variances.
# Over tasks with ratings, `common` sums truth^2, its variance, the logarithm of the variance, and one.
COMMON = 4


class RatingAnnotators(NamedTuple):
    """Beliefs about the annotators, [R] each.

    Attributes:
        number: number of ratings.
        unrelated: log-probability of the ratings if they have nothing to do with the truth, nats.
        follows: probability that the ratings follow the truth.
        precision: mean of the precision.
        bias: mean of the bias.
        error: sum of rating - mean - truth.
    """

    number: Array
    unrelated: Array
    follows: Array
    precision: Array
    bias: Array
    error: Array

    @property
    def weight(self) -> Array:
        """Weight of a rating, [R]."""
        return self.follows * self.precision


class RatingCrowd(NamedTuple):
    """Hyperparameters, and the unit of everything else.

    Attributes:
        centre: mean of all ratings.
        unit: standard deviation of all ratings; 1 if all are equal.
        mean: mean of the true ratings.
        truth_precision: tau.
        bias_precision: omega.
        shape: alpha.
        rate: beta.
    """

    centre: float
    unit: float
    mean: float = 0.0
    truth_precision: float = 2.0
    bias_precision: float = 10.0
    shape: float = 2.0
    rate: float = 1.0


@dataclass(frozen=True, eq=False)
class RatingBeliefs:
    """Beliefs about the annotators and the crowd."""

    annotators: RatingAnnotators
    crowd: RatingCrowd


# === Over a block ===


def add_ratings(block: Block, rows: Array) -> None:
    """Adds the ratings of a block to the rows [R, 3]."""
    block.check_annotators(len(rows))
    _add_ratings(block.annotator_ids, block.labels, rows)


def add_expected(block: Block, beliefs: RatingBeliefs, rows: Array, common: Array) -> tuple[Array, Array]:
    """Computes truths of a block's tasks and their variances, [T] each; adds their statistics to rows and `common`."""
    annotators, crowd = beliefs.annotators, beliefs.crowd
    block.check_annotators(len(rows))
    truth, variance = np.empty(len(block.tasks)), np.empty(len(block.tasks))
    columns = block.starts, block.annotator_ids, block.labels
    facts = crowd.centre, crowd.unit, crowd.mean, crowd.truth_precision
    _expect(*columns, annotators.weight, annotators.bias, *facts, truth, variance, rows, common)
    return truth, variance


@compiled()
def _add_ratings(annotators, ratings, rows):  # type: ignore[no-untyped-def]  # for Numba
    for row in range(len(annotators)):
        mine = rows[annotators[row]]
        mine[0] += 1.0
        mine[1] += ratings[row]
        mine[2] += ratings[row] * ratings[row]


@compiled()
def _expect(starts, annotators, ratings, weights, biases, centre, unit, mean, precision, truth, variance, rows, common):  # type: ignore[no-untyped-def]  # for Numba
    for task in range(len(starts) - 1):
        first, last = starts[task], starts[task + 1]
        total, pull = precision, 0.0
        for row in range(first, last):
            annotator = annotators[row]
            error = (ratings[row] - centre) / unit - mean - biases[annotator]
            total += weights[annotator]
            pull += weights[annotator] * error
        variance[task] = 1 / total
        truth[task] = pull / total
        if first == last:
            continue
        common[0] += truth[task] * truth[task]
        common[1] += variance[task]
        common[2] += np.log(variance[task])
        common[3] += 1.0
        for row in range(first, last):
            annotator = annotators[row]
            error = (ratings[row] - centre) / unit - mean - biases[annotator] - truth[task]
            rows[annotator, 0] += error
            rows[annotator, 1] += error * error
            rows[annotator, 2] += variance[task]


# === From sums to beliefs ===


def started(rows: Array, settings: RatingEM) -> RatingBeliefs:
    """First beliefs.

    Args:
        rows: sums over all ratings, see `add_ratings`, [R, 3].
        settings: the aggregator.
    """
    total, ratings, squares = rows.sum(axis=0).tolist()
    centre = ratings / total
    # one spread for all, so that the result does not depend on the unit
    unit = float(np.sqrt(max(squares / total - centre**2, 0.0))) or 1.0
    shape = settings.shape or 2.0
    mixed = settings.precision and settings.unrelated > 0
    number, (bias, error) = rows[:, 0].copy(), np.zeros((2, len(rows)))
    follows = np.full(len(rows), 1 - settings.unrelated if mixed else 1.0)
    precision = np.full(len(rows), 2.0)
    sums = (rows[:, 1] - number * centre) / unit, (rows[:, 2] - 2 * centre * rows[:, 1] + number * centre**2) / unit**2
    unrelated = _unrelated(number, *sums) if mixed else np.zeros(len(rows))
    annotators = RatingAnnotators(number, unrelated, follows, precision, bias, error)
    return RatingBeliefs(annotators, RatingCrowd(centre, unit, shape=shape, rate=shape / 2.0))


def iterated(run: Run[RatingBeliefs], rows: Array, common: Array, settings: RatingEM) -> Run[RatingBeliefs]:
    """Runs one more iteration: beliefs, and the bound on the log-probability of the ratings under them and the truths.

    Args:
        run: the run so far.
        rows: sums under `run.params`, see `add_expected`, [R, 3].
        common: sums under `run.params`, see `add_expected`.
        settings: the aggregator.
    """
    beliefs, bound = _updated(run.params, rows, common, settings)
    history = (*run.history, bound)
    change = np.inf if len(history) < 2 else (history[-1] - history[-2]) / beliefs.annotators.number.sum()
    converged = bool(change <= settings.tol)
    return Run(beliefs, history, 0.0, converged, converged or len(history) >= settings.max_iter)


def _updated(beliefs: RatingBeliefs, rows: Array, common: Array, settings: RatingEM) -> tuple[RatingBeliefs, float]:
    """Updates biases, precisions and who follows the truth, each given the others; then hyperparameters and bound."""
    old, crowd = beliefs.annotators, beliefs.crowd
    number, (errors, *_) = old.number, rows.T
    bias, bias_variance = np.zeros((2, len(number)))
    if settings.bias:
        bias_variance = 1 / (crowd.bias_precision + old.precision * number)
        bias = old.precision * (errors + number * old.bias) * bias_variance

    def squares(shift: Array) -> Array:
        """Sums of expected squared errors by annotator, with errors reduced by `shift`, [R]."""
        rest = rows[:, 1] - 2 * shift * errors + number * np.square(shift)
        return np.maximum(rest, 0.0) + rows[:, 2] + number * (bias_variance + RESOLUTION**2)

    follows, shapes, found = old.follows, np.ones(len(number)), squares(bias - old.bias)
    if settings.precision:
        shapes, rates = crowd.shape + number / 2, crowd.rate + found / 2
        precision = shapes / rates
        log_precision = digamma(shapes) - np.log(rates)
    else:
        precision = np.full(len(number), number.sum() / found.sum())
        log_precision = np.log(precision)

    def evidence(crowd: RatingCrowd, squares: Array) -> Array:
        """The bound on the log-probability of each annotator's ratings if they follow the truth, nats, [R]."""
        bound: Array = (number * (log_precision - np.log(2 * np.pi)) - precision * squares) / 2
        if settings.bias:
            bound -= _divergence(bias, bias_variance, crowd.bias_precision)
        if settings.precision:
            rates = shapes / precision  # of the distribution with this mean
            entropy = shapes - np.log(rates) + gammaln(shapes) + (1 - shapes) * digamma(shapes)
            prior = crowd.shape * np.log(crowd.rate) - gammaln(crowd.shape)
            bound += entropy + prior + (crowd.shape - 1) * log_precision - crowd.rate * precision
        return bound

    mixed = settings.precision and settings.unrelated > 0
    if mixed:
        odds = np.log(1 / settings.unrelated - 1) + evidence(crowd, found) - old.unrelated
        follows = 1 / (1 + np.exp(-np.clip(odds, -MOST_ODDS, MOST_ODDS)))

    # the hyperparameters that maximise the bound, for tasks and annotators with ratings
    weights, rating = follows * precision, number > 0
    mean = float(weights @ (errors + number * (old.bias - bias + crowd.mean)) / (weights @ number))
    truth_squares, variances, log_variances, rated = common.tolist()
    new = crowd._replace(mean=mean, truth_precision=float(np.clip(rated / (truth_squares + variances), *PRECISIONS)))
    shares = follows * rating
    if settings.bias:
        spread = np.average(np.square(bias) + bias_variance, weights=shares)
        new = new._replace(bias_precision=float(np.clip(1 / spread, *PRECISIONS)))
    if settings.precision:
        average = float(np.average(precision, weights=shares))
        if settings.shape is None:
            new = new._replace(shape=_gamma_shape(float(np.log(average) - np.average(log_precision, weights=shares))))
        new = new._replace(rate=new.shape / average)

    each = follows * evidence(new, squares(bias - old.bias + mean - crowd.mean))
    if mixed:
        each += (1 - follows) * (old.unrelated - np.log((1 - follows) / settings.unrelated))
        each -= follows * np.log(follows / (1 - settings.unrelated))
    scaled = new.truth_precision * (truth_squares + variances) - rated * (1 + np.log(new.truth_precision))
    bound = float(each[rating].sum()) - (scaled - log_variances) / 2

    error = errors + number * (old.bias - (mean - crowd.mean))
    annotators = RatingAnnotators(number, old.unrelated, follows, precision, bias, error)
    return RatingBeliefs(annotators, new), bound


def _divergence(mean: Array, variance: Array, precision: float) -> Array:
    """Kullback-Leibler divergence of N(mean, variance) from N(0, 1 / precision), in nats."""
    scaled = precision * variance
    return (precision * np.square(mean) + scaled - 1 - np.log(scaled)) / 2


def _unrelated(number: Array, sums: Array, squares: Array) -> Array:
    """Log-probability of each annotator's ratings if they are unrelated to the truth, in nats, [R].

    They are normal; their precision is Gamma(`WORTH`, `WORTH`), and their mean given it normal about zero with `WORTH`
    times that precision. Both are integrated out (K. Murphy, Conjugate Bayesian analysis of the Gaussian distribution,
    2007, equation 95).

    Args:
        number: number of ratings, [R].
        sums: sums of the ratings, [R].
        squares: sums of their squares, [R].
    """
    means = sums / np.maximum(number, 1)
    around = np.maximum(squares - number * np.square(means), 0.0) + number * RESOLUTION**2
    shapes, share = WORTH + number / 2, WORTH / (WORTH + number)
    rates = WORTH + (around + share * number * np.square(means)) / 2
    log_odds: Array = gammaln(shapes) - gammaln(WORTH) + WORTH * np.log(WORTH)
    return log_odds - shapes * np.log(rates) + (np.log(share) - number * np.log(2 * np.pi)) / 2


def _gamma_shape(gap: float) -> float:
    """The shape of the most likely Gamma distribution for values with `log mean - mean log = gap`.

    It solves `log a - digamma(a) = gap`, whose left side falls in a, within `SHAPES`.
    """
    gaps, logs = _gaps()
    return float(np.exp(np.interp(gap, gaps, logs)))


@cache
def _gaps() -> tuple[Array, Array]:
    """`log a - digamma(a)`, ascending, and `log a`, close enough for linear interpolation."""
    logs = np.linspace(np.log(SHAPES[1]), np.log(SHAPES[0]), 8192)
    return logs - digamma(np.exp(logs)), logs


SHRUNK = 0.5  # of the spread of mean ratings, below which the estimates may have collapsed
APART = 0.25  # of the ratings' spread, by which ratings that do not follow the truth may move the level without a note
LONGEST_SCALE = 10  # whole numbers from the lowest to the highest
CONSTANT = 0.2  # of the ratings' spread, below which an annotator's own ratings hardly vary


@dataclass(frozen=True)
class RatingEM(Aggregator):
    """Annotators with a bias and a precision each, estimated jointly with the true ratings.

    | what | its distribution |
    |------|------------------|
    | rating of task i by annotator r | `y_ir ~ N(z_i + b_r, 1 / lambda_r)` |
    | true rating | `z_i ~ N(m, 1 / tau)` |
    | bias | `b_r ~ N(0, 1 / omega)` |
    | precision | `lambda_r ~ Gamma(alpha, beta)` |

    An annotator's ratings may also be unrelated to the truth, with probability `unrelated`: then
    `y_ir ~ N(c_r, 1 / kappa_r)`, with a prior on c and kappa that is worth a tenth of a rating. Otherwise an annotator
    who always gives the same rating would seem the most precise of all, and all estimates would be that rating.

    Variational EM: z, b, lambda and whether an annotator's ratings follow the truth have independent approximate
    distributions (b and lambda given that they do; c and kappa are integrated out); `m, tau, omega, alpha` and `beta`
    maximise the bound on the log-evidence. So there is nothing to tune: how strongly annotators with few ratings are
    shrunk to the others (the Gamma prior's strength `alpha`, in half ratings) is learned, and a change of unit (`a y +
    c`) changes the result accordingly. Biases are shrunk towards zero depending on how much they vary in this crowd: a
    single rating has little effect.

    Adding a constant to all z and subtracting it from all b changes no rating. The prior on b nearly determines it; the
    result is anchored: over all annotations the biases sum to zero, so the crowd as a whole is assumed to be right on
    average, as for the mean. With `level="following"`, ratings are weighted by the probability that they follow the
    truth.

    A rating is taken as known to a thousandth of the ratings' standard deviation; otherwise annotators who agree
    exactly would have no finite precision. If all ratings are equal, the deviation is taken as 1.

    Args:
        bias: whether annotators have biases; False fixes them at zero.
        precision: whether annotators have their own precisions; False gives all the same.
        unrelated: prior probability that an annotator's ratings are unrelated to the truth, from 0 to 0.5. With 0, or
            without `precision`, all follow the truth.
        level: ratings whose biases sum to zero: "all", or "following", those that follow the truth.
        shape: alpha, the strength of the prior on precisions, from 0.1 to 100; None learns it.
        low: lowest rating of the scale, or None for any. Estimates are clipped to the scale.
        high: highest rating of the scale, or None for any.
        max_iter: maximum number of iterations.
        tol: stop if the bound rises by less than this, in nats per annotation.

    Raises:
        ConfigError: a setting is out of range.

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
        """Estimates true ratings, biases and precisions by EM.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.
            initial: an earlier result; the EM starts from its biases and precisions, for annotators with the same
                names.

        Returns:
            Posterior means and standard deviations of the true ratings; those of the prior for tasks without ratings.
            `biases` are anchored posterior means, `precisions` posterior means; annotators without ratings have the
            prior's mean. `skills` is the probability that the ratings follow the truth, times `V / (V + e_r)`
            with `V = 1 / tau` and `e_r = 1 / lambda_r + bias_r^2`. For ratings that do not follow the truth, the bias
            is their mean error, and the precision that of these errors. `history` is the bound.

        Raises:
            ConfigError: an invalid scale.
            DataError: not ratings, none at all, or some outside the scale.

        Warns:
            VotesWarning: the estimates follow an annotator who always gives nearly the same rating, which happens with
                `unrelated=0`; or ratings that do not follow the truth move the level of all estimates by more than a
                quarter of the ratings' standard deviation; or, without `low` and `high`, estimates exceed the range of
                ratings that are a few whole numbers. `notes` has the details.
        """
        check_ratings(annotations, "Rating EM", self.low, self.high)
        with np.errstate(over="ignore"):  # checked below
            spread = annotations.labels.std()
        if not np.isfinite(spread):
            raise DataError("Rating EM needs ratings below 1e150 in size: the variance of these is not finite.")
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
            warn_not_converged("Rating EM", self.max_iter, self.tol, change, "gain in log-likelihood per annotation", 2)
        above = self._biases(beliefs)
        of_all, of_following = (
            float(above @ weights / weights.sum()) for weights in (number, beliefs.follows * number)
        )
        shared = of_all if self.level == "all" else of_following
        biases = (above - shared) * crowd.unit if self.bias else None
        ends = (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)
        estimates = np.clip(origin + crowd.centre + (crowd.mean + truth + shared) * crowd.unit, *ends)
        errors = 1 / beliefs.precision + np.square(above - shared)
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
        """Fits all ratings, old and new, starting from the biases and precisions of an earlier result.

        At convergence the result is that of `fit` to all ratings, if both reach the same maximum. Unlike a scikit-learn
        estimator, an aggregator has no state between calls: the state is `earlier`.

        Args:
            annotations: all ratings so far; tasks and annotators may differ from those of `earlier`.
            earlier: result of any method for ratings; None for the first call, which is `fit`.

        Returns:
            As `fit`.

        Raises:
            ConfigError, DataError: as `fit`.
        """
        return self.fit(annotations, initial=earlier)

    def _unanimous(self, annotations: Annotations) -> RatingAggregation:
        """The result if all ratings are equal, so that there is no unit."""
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
        """Offset of each annotator's ratings from the truth, [R]: the bias, or the mean error if unrelated.

        The prior of biases is for annotators who follow the truth, and would shrink the others to zero.
        """
        if not self.bias:
            return annotators.bias
        means = annotators.error / (annotators.number + WORTH)
        return annotators.follows * annotators.bias + (1 - annotators.follows) * means


def _continued(beliefs: RatingBeliefs, earlier: RatingAggregation, annotations: Annotations) -> RatingBeliefs:
    """First beliefs with biases and precisions of an earlier result, for the annotators it has."""
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
    """Note on estimates that follow an annotator whose ratings hardly vary, a local maximum of the likelihood; or none.

    `number` is the number of ratings, and `weights` the weight of a rating, per annotator [R].
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
        f"they follow annotator {short_repr(annotations.annotators[first])}, who nearly always gives the same rating. "
        "Set unrelated to 0.1, leave that annotator out, or use method mean.",
    )


def _scale_note(ratings: NDArray[np.float64], estimates: NDArray[np.float64]) -> tuple[str, ...]:
    """Note on estimates beyond the range of the ratings, if these look like a scale: a few whole numbers; or none."""
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
    """Note on ratings that do not follow the truth and move the level by `moved`, in the unit of the labels."""
    most = int(np.argmax((1 - follows) * means))
    number = int(means[follows < 0.5].sum())
    return (
        f"{number:,} of {len(annotations):,} ratings do not seem to follow the truth (most of them by annotator "
        f"{short_repr(annotations.annotators[most])}), and move the level of all estimates by {moved:+.2g}. Set level "
        "to 'following' (--set level=following) to leave them out."
    )
