"""The likelihood of annotators' comparisons of two tasks, and its gradient, compiled.

An annotator r who sees task i on the left and j on the right gives one of the answers y, left, right or equal:

    P_r(y) = share[r] F(y | lead, tie) + (1 - share[r]) G_r(y)
    lead   = slope[r] (score[i] - score[j]) + bias[r] + effects . x,   tie = ties + tie_bias[r]

with x the covariates of the left side minus those of the right, if there are any.

F is one of the `FORMS`; G is one of the `ALTERNATIVES`: none (share is one), the annotator's own guess whatever
the tasks, or the answer of F reversed.
"""

import math
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from crowdzoo.aggregation.engine.loops import compiled

# Bradley and Terry, 1952; Davidson, 1970; Rao and Kupper, 1967
FORMS = {"none": 0, "davidson": 1, "rao-kupper": 2}
ALTERNATIVES = {"none": 0, "guess": 1, "reversed": 2}
LEFT, RIGHT, EQUAL = range(3)

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """A comparisons.

    Attributes:
        left: task codes, int64 [A].
        right: task codes, int64 [A].
        annotators: annotator codes, int64 [A].
        answers: 0 left, 1 right, 2 equal, int64 [A].
        weights: weight of each comparison, [A].
        differences: C covariates, left minus right, [A, C].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    annotators: NDArray[np.int64]
    answers: NDArray[np.int64]
    weights: Vector
    differences: Vector = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class PairParams:
    """Parameters of the model, or a gradient with respect to them; N tasks, R annotators, K answers.

    Attributes:
        scores: scores of the tasks, [N].
        slopes: how strongly an annotator's answers follow the scores, [R].
        biases: how much an annotator prefers the left, in units of the scores, [R].
        tie_biases: how much an annotator prefers to answer "equal", [R].
        shares: log odds of the probability that the answer follows F, [R].
        guesses: logarithms of the probabilities of the annotator's guesses, up to a constant, [R, K].
        common: position bias and tie parameter of all annotators, [2].
        effects: effects of the covariates, [C].
    """

    scores: Vector
    slopes: Vector
    biases: Vector
    tie_biases: Vector
    shares: Vector
    guesses: Vector
    common: Vector
    effects: Vector = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def neutral(cls, num_tasks: int, num_annotators: int, num_answers: int, num_covariates: int = 0) -> "PairParams":
        """Equal tasks, annotators without biases, shares of one half, covariates without effects."""
        zeros = np.zeros(num_annotators)
        guesses = np.zeros((num_annotators, num_answers))
        return cls(
            np.zeros(num_tasks),
            np.ones(num_annotators),
            zeros,
            zeros,
            zeros,
            guesses,
            np.zeros(2),
            np.zeros(num_covariates),
        )


def likelihood(pairs: Pairs, params: PairParams, form: str, alternative: str) -> tuple[float, PairParams]:
    """Computes the log-likelihood of the comparisons, nats, and its gradient.

    Args:
        pairs: comparisons; with form "none" no answer is "equal".
        params: parameters at which it is evaluated.
        form: one of `FORMS`.
        alternative: one of `ALTERNATIVES`.
    """
    gradient = PairParams(*(np.zeros_like(getattr(params, each.name)) for each in fields(params)))
    total = _add(
        pairs.left, pairs.right, pairs.annotators, pairs.answers, pairs.weights, pairs.differences,
        params.scores, params.slopes, params.biases, params.tie_biases, params.shares, params.guesses, params.common,
        params.effects,
        gradient.scores, gradient.slopes, gradient.biases, gradient.tie_biases, gradient.shares, gradient.guesses,
        gradient.common, gradient.effects, FORMS[form], ALTERNATIVES[alternative],
    )  # fmt: skip
    if alternative == "guess":  # the kernel only sums guesses; the softmax remains
        gradient.guesses[:] -= gradient.guesses.sum(axis=1, keepdims=True) * softmax(params.guesses, axis=1)
    return total, gradient


def answer_probabilities(
    lead: Vector, tie: Vector | float, form: str, share: Vector | float = 1.0, guess: Vector | None = None
) -> Vector:
    """Probabilities of the answers left, right and (unless the form is "none") equal, [n, K].

    Args:
        lead: lead of the left task, [n].
        tie: parameter of ties, [n] or one for all.
        form: one of `FORMS`.
        share: probability that the answer follows the form, [n] or one for all.
        guess: probabilities of other answers, [n, K]; None: the reversed answer.
    """
    probabilities = np.empty((len(lead), 2 if form == "none" else 3))
    _fill(lead, np.full(len(lead), tie), FORMS[form], probabilities)
    other = probabilities[:, [RIGHT, LEFT, EQUAL][: probabilities.shape[1]]] if guess is None else guess
    share = np.broadcast_to(share, lead.shape)[:, None]
    return share * probabilities + (1 - share) * other


@compiled(inline="always")
def _softplus(x):  # type: ignore[no-untyped-def]  # for Numba
    """log(1 + exp(x))."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@compiled(inline="always")
def _logistic(x):  # type: ignore[no-untyped-def]  # for Numba
    """1 / (1 + exp(-x))."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@compiled()
def _form(form, answer, lead, tie):  # type: ignore[no-untyped-def]  # for Numba
    """Returns log F(answer), and its derivatives with respect to lead and tie."""
    if form == 0:
        sign = 1.0 if answer == LEFT else -1.0
        return -_softplus(-sign * lead), sign * _logistic(-sign * lead), 0.0
    if form == 1:  # left : right : equal = e^(lead/2) : e^(-lead/2) : e^tie
        peak = max(abs(lead) / 2, tie)
        left, right, equal = math.exp(lead / 2 - peak), math.exp(-lead / 2 - peak), math.exp(tie - peak)
        total = left + right + equal
        value = lead / 2 if answer == LEFT else -lead / 2 if answer == RIGHT else tie
        sign = 0.5 if answer == LEFT else -0.5 if answer == RIGHT else 0.0
        by_lead = sign - (left - right) / (2 * total)
        return value - peak - math.log(total), by_lead, (1.0 if answer == EQUAL else 0.0) - equal / total
    # P(left) = 1 / (1 + e^(t - lead)), t = e^tie; equal is the rest: (e^2t - 1) P(left) P(right)
    t = math.exp(min(max(tie, -300.0), 300.0))
    lost, won = _logistic(t - lead), _logistic(t + lead)
    if answer == LEFT:
        return -_softplus(t - lead), lost, -t * lost
    if answer == RIGHT:
        return -_softplus(t + lead), -won, -t * won
    rest = -math.expm1(-2 * t)
    value = 2 * t + math.log(rest) - _softplus(t - lead) - _softplus(t + lead)
    return value, lost - won, t * (2 / rest - lost - won)


@compiled()
def _fill(lead, tie, form, out):  # type: ignore[no-untyped-def]  # for Numba
    for row in range(len(lead)):
        for answer in range(out.shape[1]):
            out[row, answer] = math.exp(_form(form, answer, lead[row], tie[row])[0])


@compiled()
def _add(  # type: ignore[no-untyped-def]  # for Numba
    left, right, annotators, answers, weights, differences,
    scores, slopes, biases, tie_biases, shares, guesses, common, effects,
    to_scores, to_slopes, to_biases, to_tie_biases, to_shares, to_guesses, to_common, to_effects,
    form, alternative,
):  # fmt: skip
    """Adds the gradient to the `to_` arrays (guesses: expected counts); returns the log-likelihood."""
    total = 0.0
    log_guesses = np.empty_like(guesses)
    if alternative == 1:
        for who in range(len(guesses)):
            peak = guesses[who].max()
            log_guesses[who] = guesses[who] - peak - math.log(np.exp(guesses[who] - peak).sum())
    for row in range(len(left)):
        i, j, who, answer, weight = left[row], right[row], annotators[row], answers[row], weights[row]
        gap = scores[i] - scores[j]
        lead = slopes[who] * gap + biases[who] + common[0]
        for place in range(len(effects)):
            lead += effects[place] * differences[row, place]
        tie = common[1] + tie_biases[who]
        value, by_lead, by_tie = _form(form, answer, lead, tie)
        if alternative != 0:
            log_share, log_rest = -_softplus(-shares[who]), -_softplus(shares[who])
            if alternative == 1:
                other, other_by_lead, other_by_tie = log_guesses[who, answer], 0.0, 0.0
            else:
                reverse = RIGHT if answer == LEFT else LEFT if answer == RIGHT else EQUAL
                other, other_by_lead, other_by_tie = _form(form, reverse, lead, tie)
            odds = log_rest + other - log_share - value
            follows = _logistic(-odds)
            value = log_share + value + _softplus(odds)
            by_lead = follows * by_lead + (1 - follows) * other_by_lead
            by_tie = follows * by_tie + (1 - follows) * other_by_tie
            to_shares[who] += weight * (follows - math.exp(log_share))
            if alternative == 1:
                to_guesses[who, answer] += weight * (1 - follows)
        total += weight * value
        by_lead *= weight
        by_tie *= weight
        to_scores[i] += slopes[who] * by_lead
        to_scores[j] -= slopes[who] * by_lead
        to_slopes[who] += gap * by_lead
        to_biases[who] += by_lead
        to_tie_biases[who] += by_tie
        to_common[0] += by_lead
        to_common[1] += by_tie
        for place in range(len(effects)):
            to_effects[place] += differences[row, place] * by_lead
    return total
