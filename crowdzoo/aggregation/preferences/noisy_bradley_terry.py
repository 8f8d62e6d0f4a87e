"""Noisy Bradley-Terry: annotators who look at the tasks at times, and otherwise guess with a habit of their own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdzoo.aggregation.engine.comparisons import PairParams
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod, beta
from crowdzoo.checks.constraints import PRIOR, setting


@dataclass(frozen=True)
class NoisyBradleyTerry(PreferenceMethod):
    """Annotators who follow the scores with a probability of their own, and otherwise guess.

    The objective of crowd-kit's method of this name, after Bugakova, Fedorova, Gusev and Drutsa, "Aggregation of
    pairwise comparisons with reduction of biases", 2019: annotator r answers by `BradleyTerry` with probability
    gamma[r], and otherwise left, right or equal with probabilities q[r], whatever the tasks are. The difference of
    left and right in q[r] is a position bias.

    Args:
        max_iter: see `BradleyTerry`.
        tol: see `BradleyTerry`.
        ties: see `BradleyTerry`.
        prior: see `BradleyTerry`.
        right: pseudo-count of answers of each annotator that follow the scores.
        wrong: pseudo-count of answers of each annotator that are guesses.
        guess: pseudo-count of each answer among an annotator's guesses.

    Raises:
        ConfigError: a setting that is out of range.

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
        Tasks that comparisons connect, and annotators with several comparisons each.

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
