"""The steps of rating EM: E-step of a block, sums over blocks, and all else from those sums.

Everything but `RatingCrowd.centre` and `unit` is in units of the ratings' standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.ratings.rating_em import RatingEM

# A rating is not known better than this: annotators who always agree would have no finite precision.
RESOLUTION = 1e-3
PRECISIONS = (1e-6, 1e6)  # of the spread of tasks and of biases
SHAPES = (0.1, 100.0)  # of the Gamma distribution of the annotators' precisions
WORTH = 0.1  # ratings that the prior on mean and precision of unrelated ratings is worth
MOST_ODDS = 30.0  # logarithm of the odds that an annotator's ratings follow the truth, or do not

Array = NDArray[np.float64]

# What is added up over blocks is `rows` [R, 3] and `common` [COMMON].
# Before there are beliefs, a row is: number of ratings, their sum, that of their squares; and `common` is zero.
# Later it is the sum of errors (rating - mean - truth - bias), that of their squares, that of the truths' variances.
# Over tasks that have ratings, `common` sums: truth^2, its variance, the logarithm of that, and one.
COMMON = 4


class RatingAnnotators(NamedTuple):
    """What is believed of annotators, [R] each.

    Attributes:
        number: of ratings.
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
        """What a rating weighs, [R]."""
        return self.follows * self.precision


class RatingCrowd(NamedTuple):
    """Hyperparameters, and the unit of all else.

    Attributes:
        centre: mean of all ratings.
        unit: their standard deviation; 1 where all are equal.
        mean: of the true ratings.
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
    """What is believed of annotators and of the crowd as a whole."""

    annotators: RatingAnnotators
    crowd: RatingCrowd


# === Over a block ===


def add_ratings(block: Block, rows: Array) -> None:
    """Adds the ratings of a block, as they are, to the rows [R, 3]."""
    block.check_annotators(len(rows))
    _add_ratings(block.annotator_ids, block.labels, rows)


def add_expected(block: Block, beliefs: RatingBeliefs, rows: Array, common: Array) -> tuple[Array, Array]:
    """Truths of a block's tasks and their variances, [T] each; adds what follows from them to rows and `common`."""
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
    """What is believed at first.

    Args:
        rows: of all ratings, see `add_ratings`, [R, 3].
        settings: the aggregator.

    Raises:
        DataError: there are no ratings.
    """
    total, ratings, squares = rows.sum(axis=0).tolist()
    if not total:
        raise DataError("Rating EM needs at least one rating: there are no annotations.")
    centre = ratings / total
    # one spread for all, so that ratings in another unit give the same
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
    """One more iteration: beliefs, and the bound on the log-probability of the ratings under them and the truths.

    Args:
        run: before.
        rows: sums under `run.params`, see `add_expected`, [R, 3].
        common: see there.
        settings: the aggregator.
    """
    beliefs, bound = _updated(run.params, rows, common, settings)
    history = (*run.history, bound)
    change = np.inf if len(history) < 2 else (history[-1] - history[-2]) / beliefs.annotators.number.sum()
    converged = bool(change <= settings.tol)
    return Run(beliefs, history, 0.0, converged, converged or len(history) >= settings.max_iter)


def _updated(beliefs: RatingBeliefs, rows: Array, common: Array, settings: RatingEM) -> tuple[RatingBeliefs, float]:
    """Biases, precisions and who follows the truth, each given the others; then the hyperparameters, and the bound."""
    old, crowd = beliefs.annotators, beliefs.crowd
    number, (errors, *_) = old.number, rows.T
    bias, bias_variance = np.zeros((2, len(number)))
    if settings.bias:
        bias_variance = 1 / (crowd.bias_precision + old.precision * number)
        bias = old.precision * (errors + number * old.bias) * bias_variance

    def squares(shift: Array) -> Array:
        """Expected squared errors of every annotator, summed, where errors are less by so much, [R]."""
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
            rates = shapes / precision  # which has this mean
            entropy = shapes - np.log(rates) + gammaln(shapes) + (1 - shapes) * digamma(shapes)
            prior = crowd.shape * np.log(crowd.rate) - gammaln(crowd.shape)
            bound += entropy + prior + (crowd.shape - 1) * log_precision - crowd.rate * precision
        return bound

    mixed = settings.precision and settings.unrelated > 0
    if mixed:
        odds = np.log(1 / settings.unrelated - 1) + evidence(crowd, found) - old.unrelated
        follows = 1 / (1 + np.exp(-np.clip(odds, -MOST_ODDS, MOST_ODDS)))

    # the hyperparameters, each where the bound is highest; of tasks and annotators that have ratings
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
    """Log-probability of each annotator's ratings if they have nothing to do with the truth, in nats, [R].

    They are normal; their precision is Gamma(`WORTH`, `WORTH`), and their mean given it normal about zero with `WORTH`
    times that precision. Both are integrated out (K. Murphy, Conjugate Bayesian analysis of the Gaussian distribution,
    2007, equation 95).

    Args:
        number: of ratings, [R].
        sums: of them, [R].
        squares: sums of their squares, [R].
    """
    means = sums / np.maximum(number, 1)
    around = np.maximum(squares - number * np.square(means), 0.0) + number * RESOLUTION**2
    shapes, share = WORTH + number / 2, WORTH / (WORTH + number)
    rates = WORTH + (around + share * number * np.square(means)) / 2
    log_odds: Array = gammaln(shapes) - gammaln(WORTH) + WORTH * np.log(WORTH)
    return log_odds - shapes * np.log(rates) + (np.log(share) - number * np.log(2 * np.pi)) / 2


def _gamma_shape(gap: float) -> float:
    """The shape whose Gamma distribution is the likeliest for values with `log mean - mean log = gap`.

    The root of `log a - digamma(a) = gap`, the left side falling in a, within `SHAPES`.
    """
    gaps, logs = _gaps()
    return float(np.exp(np.interp(gap, gaps, logs)))


@cache
def _gaps() -> tuple[Array, Array]:
    """`log a - digamma(a)`, ascending, and `log a`: close enough for linear interpolation."""
    logs = np.linspace(np.log(SHAPES[1]), np.log(SHAPES[0]), 8192)
    return logs - digamma(np.exp(logs)), logs
