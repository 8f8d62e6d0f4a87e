"""Bradley-Terry: one score per task; annotators are equal, or guess, err or differ individually."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdzoo.aggregation.engine.comparisons import PairParams, Pairs
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod, beta, normal
from crowdzoo.checks.constraints import FLAG, PRIOR, Number, setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
    from crowdzoo.data.annotations import Annotations

VARIANCE = Number(1e-9, 1e12)


@dataclass(frozen=True)
class BradleyTerry(PreferenceMethod):
    """One score per task; the larger the difference of scores, the more certain the answer.

    Bradley and Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952: task i is preferred to task j
    with probability `1 / (1 + exp(-(s[i] - s[j])))`. "Equal" has its own model:

    - Davidson, "On extending the Bradley-Terry model to accommodate ties", JASA 65, 1970: left, right and equal have
      odds `exp(d / 2) : exp(-d / 2) : nu`, d the difference of scores.
    - Rao and Kupper, "Ties in paired-comparison experiments", JASA 62, 1967: left has probability
      `1 / (1 + exp(t - d))`, right `1 / (1 + exp(t + d))`, equal the rest.

    Each task also wins and loses `prior` comparisons against a task of score 0, so that the scores of tasks that never
    lost, or were never compared with others, are finite.

    Args:
        max_iter: maximum number of iterations.
        tol: converged if the slope of the objective in each parameter is at most this, in nats.
        ties: meaning of "equal": "davidson", "rao-kupper", or "half": half a win for each.
        prior: number of comparisons that each task wins, and loses, against a task of score 0. 0 is maximum likelihood,
            whose scores may be infinite.
        position_bias: whether all annotators share a preference for the left.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import BradleyTerry
        >>> preferences = Annotations.from_arrays(
        ...     ["a", "a", "b"], ["ann", "bob", "cem"], ["left"] * 3, right=["b", "c", "c"], kind="preference"
        ... )
        >>> result = BradleyTerry().fit(preferences)
        >>> dict(zip(result.tasks.tolist(), result.ranks.tolist(), strict=True))
        {'a': 1, 'b': 2, 'c': 3}

    Needs:
        Tasks that are linked by comparisons.

    Source:
        R. Bradley, M. Terry: Rank Analysis of Incomplete Block Designs. Biometrika 39, 1952.
    """

    title: ClassVar[str] = "Bradley-Terry"
    name: ClassVar[str] = "bradley-terry"

    position_bias: bool = setting(False, FLAG)

    @property
    def _has_bias(self) -> bool:
        return self.position_bias

    def _pairs(self, annotations: Annotations) -> tuple[Pairs, str]:
        """Merges equal comparisons, as annotators do not matter."""
        pairs, form = super()._pairs(annotations)
        rows, weights = np.stack([pairs.left, pairs.right, pairs.answers], axis=1), pairs.weights
        key = (rows[:, 0] * annotations.num_tasks + rows[:, 1]) * 3 + rows[:, 2]
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        left, right, answers = np.ascontiguousarray(rows[first].T)
        return Pairs(left, right, np.zeros_like(left), answers, np.bincount(place, weights).astype(np.float64)), form


@dataclass(frozen=True)
class NoisyBradleyTerry(PreferenceMethod):
    """Annotators who follow the scores with an individual probability, and otherwise guess.

    The objective of crowd-kit's method of this name, after Bugakova, Fedorova, Gusev and Drutsa, "Aggregation of
    pairwise comparisons with reduction of biases", 2019: annotator r answers by `BradleyTerry` with probability
    gamma[r], and otherwise left, right or equal with probabilities q[r], whatever the tasks. The difference of
    left and right in q[r] is a position bias.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        right: pseudo-count of each annotator's answers that follow the scores.
        wrong: pseudo-count of each annotator's guesses.
        guess: pseudo-count of each answer among an annotator's guesses.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import NoisyBradleyTerry
        >>> left, right, annotator = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> answers = ["left"] * 6 + ["right"] * 3
        >>> preferences = Annotations.from_arrays(left, annotator, answers, right=right, kind="preference")
        >>> result = NoisyBradleyTerry().fit(preferences)
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'
        >>> str(result.annotators[result.shares.argmin()])  # who guesses most often
        'cem'

    Needs:
        Tasks that are linked by comparisons, and annotators with several comparisons each.

    Source:
        N. Bugakova, V. Fedorova, G. Gusev, A. Drutsa: Aggregation of Pairwise Comparisons with Reduction of Biases.
        2019.
    """

    title: ClassVar[str] = "Noisy Bradley-Terry"
    name: ClassVar[str] = "noisy-bradley-terry"
    _fitted: ClassVar[tuple[str, ...]] = ("shares", "guesses")
    _alternative: ClassVar[str] = "guess"
    _first_odds: ClassVar[float] = 2.0

    right: float = setting(2.0, PRIOR)
    wrong: float = setting(1.0, PRIOR)
    guess: float = setting(1.0, PRIOR)

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        logs = params.guesses - np.logaddexp.reduce(params.guesses, axis=1, keepdims=True)
        gradient.guesses[:] += self.guess * (1 - logs.shape[1] * np.exp(logs))
        return self.guess * float(logs.sum()) + beta(params.shares, gradient.shares, (self.right, self.wrong))


@dataclass(frozen=True)
class CrowdBT(PreferenceMethod):
    """Annotators who follow the scores with an individual probability, and otherwise give the opposite answer.

    Chen, Bennett, Collins-Thompson and Horvitz, "Pairwise ranking aggregation in a crowdsourced setting", WSDM 2013,
    eq. 5: annotator r prefers i to j with probability `eta[r] p + (1 - eta[r]) (1 - p)`, p that of `BradleyTerry`; eta
    below one half means that the opposite answer is more frequent. `prior` is the paper's virtual node. The paper's
    active choice of pairs is not included.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        right: pseudo-count of each annotator's answers that follow the scores.
        wrong: pseudo-count of each annotator's opposite answers.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import CrowdBT
        >>> left, right, annotator = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> answers = ["left"] * 6 + ["right"] * 3
        >>> result = CrowdBT().fit(Annotations.from_arrays(left, annotator, answers, right=right, kind="preference"))
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'
        >>> str(result.annotators[result.shares.argmin()])  # who follows the scores least often
        'cem'

    Needs:
        Tasks that are linked by comparisons, and annotators with several comparisons each.

    Source:
        X. Chen, P. Bennett, K. Collins-Thompson, E. Horvitz: Pairwise Ranking Aggregation in a Crowdsourced Setting.
        WSDM 2013, equation 5.
    """

    title: ClassVar[str] = "CrowdBT"
    name: ClassVar[str] = "crowd-bt"
    _fitted: ClassVar[tuple[str, ...]] = ("shares",)
    _alternative: ClassVar[str] = "reversed"
    _first_odds: ClassVar[float] = 4.0

    right: float = setting(4.0, PRIOR)
    wrong: float = setting(1.0, PRIOR)

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        return beta(params.shares, gradient.shares, (self.right, self.wrong))


@dataclass(frozen=True)
class AnnotatorBradleyTerry(PreferenceMethod):
    """Annotators who differ in discrimination, position bias and frequency of "equal".

    `BradleyTerry` with the difference `a[r] (s[i] - s[j]) + b + b[r]` instead of `s[i] - s[j]`, and with the tie
    parameter `t + t[r]`: a two-parameter logistic model of item response theory with the annotators as items. The slope
    a[r] has a normal prior around 1; b[r] and t[r] have normal priors around 0; all annotators share b and t. Answers
    of an annotator with a slope near 0 are uninformative; below 0 they are mostly the opposite.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        slope_variance: variance of the prior of a[r].
        bias_variance: variance of the prior of b[r].
        tie_variance: variance of the prior of t[r].

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import AnnotatorBradleyTerry
        >>> left, right, annotator = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3, ["ann"] * 3 + ["bob"] * 3 + ["cem"] * 3
        >>> answers = ["left"] * 6 + ["right"] * 3
        >>> preferences = Annotations.from_arrays(left, annotator, answers, right=right, kind="preference")
        >>> result = AnnotatorBradleyTerry().fit(preferences)
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'
        >>> str(result.annotators[result.slopes.argmin()])  # whose answers follow the scores least
        'cem'

    Needs:
        Tasks that are linked by comparisons, and annotators with several comparisons each.

    Source:
        R. Bradley, M. Terry: Biometrika 39, 1952, with the two-parameter logistic model of item response theory for the
        annotators.
    """

    title: ClassVar[str] = "Annotator Bradley-Terry"
    name: ClassVar[str] = "annotator-bradley-terry"
    _fitted: ClassVar[tuple[str, ...]] = ("slopes", "biases", "tie_biases")

    slope_variance: float = setting(0.25, VARIANCE)
    bias_variance: float = setting(0.25, VARIANCE)
    tie_variance: float = setting(1.0, VARIANCE)

    def fit(
        self,
        annotations: Annotations,
        initial: PreferenceAggregation | None = None,
        covariates: Mapping[str, ArrayLike] | None = None,
    ) -> PreferenceAggregation:
        """Fits as `PreferenceMethod.fit`, and estimates effects of covariates of the two sides.

        A covariate with values x[i] and x[j] on the two sides adds `e (x[i] - x[j])` to the difference, with the same
        effect e for all annotators: for example how much they prefer longer answers, or those by the judge's own model.

        Args:
            annotations: see `PreferenceMethod.fit`.
            initial: see `PreferenceMethod.fit`.
            covariates: name -> numbers for the left and right side of each comparison, [A, 2], in the order of the
                annotations. They must differ between the comparisons of a task.

        Returns:
            As `PreferenceMethod.fit`, with `effects`. Scores are for sides with equal covariates.

        Raises:
            DataError: as `PreferenceMethod.fit`; or a covariate that does not match the annotations, or whose effect
                cannot be identified.
        """
        return self._fit(annotations, initial, covariates or {})

    def _annotator_prior(self, params: PairParams, gradient: PairParams) -> float:
        return (
            normal(params.slopes, gradient.slopes, 1.0, self.slope_variance)
            + normal(params.biases, gradient.biases, 0.0, self.bias_variance)
            + normal(params.tie_biases, gradient.tie_biases, 0.0, self.tie_variance)
        )
