"""Bradley-Terry: one score a task, all annotators alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdzoo.aggregation.engine.comparisons import Pairs
from crowdzoo.aggregation.preferences.preference_method import PreferenceMethod
from crowdzoo.checks.constraints import FLAG, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True)
class BradleyTerry(PreferenceMethod):
    """One score a task; the larger a difference of scores, the surer the answer.

    Bradley and Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952: task i is preferred to task j
    with probability `1 / (1 + exp(-(s[i] - s[j])))`. "Equal" is an answer of its own:

    - Davidson, "On extending the Bradley-Terry model to accommodate ties", JASA 65, 1970: left, right and equal have
      odds `exp(d / 2) : exp(-d / 2) : nu`, d the difference of scores.
    - Rao and Kupper, "Ties in paired-comparison experiments", JASA 62, 1967: left has probability
      `1 / (1 + exp(t - d))`, right `1 / (1 + exp(t + d))`, equal the rest.

    Each task also wins and loses `prior` comparisons with a task of score 0, so that scores stay finite where a task
    never lost, or was never compared with others.

    Args:
        max_iter: most iterations.
        tol: it has converged when the slope of the objective in each parameter is at most this, in nats.
        ties: what "equal" means: "davidson", "rao-kupper", or "half": half a win for each.
        prior: number of comparisons that each task wins, and loses, against a task of score 0. With 0 scores are those
            of the largest likelihood, which may not be finite.
        position_bias: whether the left may be preferred to the right, by all annotators alike.

    Raises:
        ConfigError: a setting that is out of range.

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
        Tasks that comparisons connect.

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
        """Equal comparisons are counted once: whose they are does not matter."""
        pairs, form = super()._pairs(annotations)
        rows, weights = np.stack([pairs.left, pairs.right, pairs.answers], axis=1), pairs.weights
        key = (rows[:, 0] * annotations.num_tasks + rows[:, 1]) * 3 + rows[:, 2]
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        left, right, answers = np.ascontiguousarray(rows[first].T)
        return Pairs(left, right, np.zeros_like(left), answers, np.bincount(place, weights).astype(np.float64)), form
