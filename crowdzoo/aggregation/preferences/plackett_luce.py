"""Plackett-Luce: one score per task, from lists that annotators ordered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator, warn_not_converged
from crowdzoo.aggregation.engine.comparisons import PairParams
from crowdzoo.aggregation.engine.lbfgs import maximize
from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.aggregation.preferences.preference_aggregation import PreferenceAggregation
from crowdzoo.aggregation.preferences.preference_method import normal, virtual_task
from crowdzoo.checks.constraints import FLAG, MAX_ITER, PRIOR, TOL, Number, setting
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.rankings import Rankings


@dataclass(frozen=True)
class PlackettLuce(Aggregator):
    """Scores from ordered lists: the best task is chosen first, then the best of the rest, and so on.

    At each stage of a list, annotator r chooses task i from the remaining tasks C with probability
    `exp(a[r] s[i]) / sum over C of exp(a[r] s[j])`. Tasks without a rank remain at the end. A list of two is a
    comparison as in `BradleyTerry`. a[r] is how strongly the annotator's order follows the scores, with a normal prior
    around 1; each task also wins and loses `prior` comparisons against a task of score 0, as in `BradleyTerry`.

    It is not one of `PREFERENCE_METHODS`, which compare two tasks, because it needs `Rankings`.

    Args:
        max_iter: maximum number of iterations.
        tol: converged if the slope of the objective in each parameter is at most this, in nats.
        prior: number of comparisons that each task wins, and loses, against a task of score 0.
        slopes: whether annotators have slopes; False: all are 1.
        slope_variance: variance of the prior of a[r].

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo.aggregation import PlackettLuce
        >>> from crowdzoo.tables import Rankings
        >>> task, annotator = ["a", "b", "c", "a", "c", "b"], ["ann"] * 3 + ["bob"] * 3
        >>> rankings = Rankings.from_arrays(task, annotator, rank=[1, 2, 3, 1, 2, 3])
        >>> result = PlackettLuce().fit(rankings)
        >>> str(result.tasks[result.scores.argmax()])  # the best task
        'a'

    Source:
        R. L. Plackett: The Analysis of Permutations. Applied Statistics 24, 1975; R. D. Luce: Individual Choice
        Behavior. 1959. Slopes of annotators as in `AnnotatorBradleyTerry`.
    """

    kind: ClassVar[str] = "preference"
    title: ClassVar[str] = "Plackett-Luce"

    max_iter: int = setting(1000, MAX_ITER)
    tol: float = setting(1e-4, TOL)
    prior: float = setting(0.5, PRIOR)
    slopes: bool = setting(True, FLAG)
    slope_variance: float = setting(0.25, Number(1e-9, 1e12))

    def fit(self, rankings: Rankings) -> PreferenceAggregation:
        """Estimates the scores and the annotators' slopes.

        Time and memory of an iteration are proportional to the places of all lists.

        Args:
            rankings: L lists of N tasks by R annotators.

        Returns:
            Scores, ranks and slopes. `pairs` are those of `Rankings.preferences`; `log_likelihood` is that of the
            lists.

        Raises:
            DataError: there are no lists.

        Warns:
            ConvergenceWarning: `max_iter` was reached.
        """
        if not len(rankings):
            raise DataError("Plackett-Luce needs at least one list.")
        size, people = len(rankings.tasks), len(rankings.annotators)
        neutral = PairParams.neutral(size, people, 2)
        table = rankings.starts, rankings.task_ids, rankings.ranked, rankings.annotator_ids

        def objective(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            scores, slopes = point[:size], point[size:] if self.slopes else neutral.slopes
            to_scores, to_slopes = np.zeros(size), np.zeros(people)
            value = _add(*table, scores, slopes, to_scores, to_slopes)
            value += virtual_task(scores, to_scores, self.prior)
            if not self.slopes:
                return value, to_scores
            value += normal(slopes, to_slopes, 1.0, self.slope_variance)
            return value, np.concatenate([to_scores, to_slopes])

        places = np.bincount(rankings.task_ids, minlength=size)
        scale = [1 / (0.1 + self.prior / 2 + places / 4)]
        start = [neutral.scores]
        if self.slopes:
            of_lists = np.bincount(rankings.annotator_ids[rankings.list_ids], minlength=people)
            scale.append(1 / (1 / self.slope_variance + of_lists / 4))
            start.append(neutral.slopes)
        optimum = maximize(
            objective, np.concatenate(start), np.concatenate(scale), max_iter=self.max_iter, tol=self.tol
        )
        if not optimum.converged:
            warn_not_converged(self.title, self.max_iter, self.tol, optimum.slope, "slope of the log-likelihood", 2)
        params = replace(neutral, scores=optimum.point[:size])
        if self.slopes:
            params = replace(params, slopes=optimum.point[size:])
        value = _add(*table, params.scores, params.slopes, np.zeros(size), np.zeros(people))
        return PreferenceAggregation.of(
            "plackett-luce",
            rankings.preferences(),
            params,
            "none",
            ("slopes",) if self.slopes else (),
            log_likelihood=value,
            **optimum.facts,
        )


@compiled()
def _add(  # type: ignore[no-untyped-def]  # for Numba
    starts, tasks, ranked, annotators, scores, slopes, to_scores, to_slopes
):
    """Adds the gradient to the `to_` arrays; returns the log-likelihood of all stages."""
    total = 0.0
    for row in range(len(annotators)):
        start, end, who = starts[row], starts[row + 1], annotators[row]
        left = np.empty(end - start)  # log of the sum over remaining tasks at each stage
        rest = -np.inf
        for place in range(end - 1, start - 1, -1):
            value = slopes[who] * scores[tasks[place]]
            peak = max(rest, value)
            rest = peak + math.log(math.exp(rest - peak) + math.exp(value - peak))
            left[place - start] = rest
        stages = -np.inf  # log of the sum of 1 / left over the stages so far
        for place in range(start, end):
            task = tasks[place]
            value = slopes[who] * scores[task]
            by_value = 0.0
            if ranked[place] and place < end - 1:  # the last one is not a choice
                total += value - left[place - start]
                by_value = 1.0
                peak = max(stages, -left[place - start])
                stages = peak + math.log(math.exp(stages - peak) + math.exp(-left[place - start] - peak))
            by_value -= math.exp(value + stages)
            to_scores[task] += slopes[who] * by_value
            to_slopes[who] += scores[task] * by_value
    return total
