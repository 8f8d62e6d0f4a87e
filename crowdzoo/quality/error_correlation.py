"""ErrorCorrelation: whether models err on the same tasks, estimated from labels of people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.data.annotations import Annotations

LEAST_TASKS = 30
MOST_TASKS = 5000  # that are looked at
SAMPLES = 200  # of the bootstrap
LEVELS = (0.025, 0.975)
WIDEST = 1.0  # interval that is worth a value
LEAST_SKILL = 0.05  # of a person; 0 is to guess
TINY = 1e-9


@dataclass(frozen=True)
class ErrorCorrelation:
    """Correlation of the errors of models.

    Attributes:
        value: correlation of the errors (1 for a wrong label, 0 for a right one) of two models, averaged over pairs: 0
            if they err independently, 1 if they always err together. None if unknown.
        low: lower end of the 95 % interval, or None.
        high: upper end of the 95 % interval, or None.
        reason: why it is unknown; empty if it is known.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"not known: {self.reason}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    @classmethod
    def of(
        cls, people: Annotations, machines: Annotations, right: NDArray[np.float64], seed: int = 0
    ) -> ErrorCorrelation:
        """Estimates the correlation by moments that need no true classes.

        A person who is right with probability a, and otherwise says each other class equally often, has the skill
        d = (K a - 1) / (K - 1). Two people agree with probability 1/K + (K - 1)/K d_i d_j, so their agreement
        determines the scale of the skills, and `right` their ratios. Then

            u[k] = 1/K + sum_i d_i (1[i says k] - 1/K) / sum_i d_i^2

        over the people of a task has mean 1 if k is the true class, and 0 otherwise, if people err independently of
        each other and of the models. So the mean of u[label of a model] is the probability that it is right, and that
        of u[label of two models] when they agree the probability that both are. These give the covariances and
        variances of the errors. The value is the sum of the covariances over the sum of the products of standard
        deviations, over all pairs of models and all tasks. The interval is from a bootstrap over tasks; on generated
        crowds of 50 to 400 tasks it contained the value in .88 to .97 of the cases, least often near 1. If it is wider
        than 1, there is no value.

        Source: our own, of known parts (method of moments; percentile bootstrap, B. Efron: Bootstrap Methods. Annals
        of Statistics 7, 1979).

        Args:
            people: annotations of people; kind classification, N tasks, R annotators, K classes.
            machines: annotations of models, with the same tasks, annotators and classes.
            right: accuracy of each annotator, [R]; only those of people are used.
            seed: seed of the bootstrap, and of the sample of tasks if there are more than 5,000.
        """
        rng = np.random.default_rng(seed)
        size = people.num_classes
        if people.repeats or machines.repeats:
            return cls(None, reason="annotators gave a task several labels")
        if len(np.unique(machines.annotator_ids)) < 2:
            return cls(None, reason="it takes two models")
        tasks = np.flatnonzero((people.redundancy > 0) & (machines.redundancy > 1))
        if size < 2 or len(tasks) < LEAST_TASKS:
            reason = f"people labelled {len(tasks):,} of the tasks that two models labelled or more"
            return cls(None, reason=f"{reason}, and {LEAST_TASKS} are needed")
        if len(tasks) > MOST_TASKS:
            tasks = np.sort(rng.choice(tasks, MOST_TASKS, replace=False))
        skill = np.maximum((size * right - 1) / (size - 1), LEAST_SKILL)
        votes, mine, number = weighted_votes(people), skill[people.annotator_ids], people.num_tasks
        sizes, sums, squares = votes.sum(axis=1), *(np.bincount(people.task_ids, x, number) for x in (mine, mine**2))
        pairs = sizes * (sizes - 1) / 2
        shared = int((pairs[tasks] > 0).sum())
        if shared < LEAST_TASKS:
            reason = f"two people or more labelled {shared:,} of the tasks that models labelled"
            return cls(None, reason=f"{reason}, and {LEAST_TASKS} are needed to know how often people err")
        agreed = (size * (votes * (votes - 1)).sum(axis=1) / 2 - pairs) / (size - 1)
        beyond = (weighted_votes(people, mine) - sums[:, None] / size) / np.maximum(squares, TINY)[:, None]
        moments = _Moments.of(machines, beyond, agreed, (sums**2 - squares) / 2, tasks)
        value = moments.correlation(np.ones(len(tasks)))
        if value is None:
            return cls(None, reason="people do not agree more often than by chance")
        draws = rng.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), SAMPLES)
        correlations = (moments.correlation(times.astype(np.float64)) for times in draws)
        samples = [-1.0 if sample is None else sample for sample in correlations]
        low, high = np.quantile(samples, LEVELS)
        if high - low > WIDEST:
            reason = "people labelled too few tasks, or models err too seldom, to tell"
            return cls(None, reason=f"{reason} (95 % interval {low:.2f} to {high:.2f})")
        return cls(value, float(low), float(high))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums of n tasks, for M models.

    Attributes:
        agreed: agreement of people beyond chance, [n].
        expected: expected agreement of people beyond chance from their skills, [n].
        labelled: whether a model labelled the task, [n, M].
        right: u - 1/K at each model's label, 0 without a label, [n, M].
        both: sum of u - 1/K over the pairs of models that agree, [n].
        same: number of these pairs, [n].
        num_classes: K.
    """

    agreed: NDArray[np.float64]
    expected: NDArray[np.float64]
    labelled: NDArray[np.float64]
    right: NDArray[np.float64]
    both: NDArray[np.float64]
    same: NDArray[np.float64]
    num_classes: int

    @classmethod
    def of(
        cls,
        machines: Annotations,
        beyond: NDArray[np.float64],
        agreed: NDArray[np.float64],
        expected: NDArray[np.float64],
        tasks: NDArray[np.int64],
    ) -> _Moments:
        votes = weighted_votes(machines)
        pairs = votes * (votes - 1) / 2
        codes = np.unique(machines.annotator_ids)
        place = np.full(machines.num_tasks, -1)
        place[tasks] = np.arange(len(tasks))
        rows = place[machines.task_ids] >= 0
        cells = place[machines.task_ids[rows]], np.searchsorted(codes, machines.annotator_ids[rows])
        labelled, right = np.zeros((len(tasks), len(codes))), np.zeros((len(tasks), len(codes)))
        labelled[cells] = 1
        right[cells] = beyond[machines.task_ids[rows], machines.labels[rows]]
        both, same = (pairs * beyond).sum(axis=1)[tasks], pairs.sum(axis=1)[tasks]
        return cls(agreed[tasks], expected[tasks], labelled, right, both, same, machines.num_classes)

    def correlation(self, times: NDArray[np.float64]) -> float | None:
        """Correlation of the errors, with tasks weighted by `times`, [n]; None if undefined."""
        if (agreed := times @ self.agreed) <= 0:
            return None
        scale = np.sqrt(agreed / (times @ self.expected))
        number = np.maximum(times @ self.labelled, TINY)
        rates = np.clip(1 / self.num_classes + times @ self.right / scale / number, 0, 1)
        both = times @ (self.same / self.num_classes + self.both / scale)
        spread = times @ self._pairs(np.sqrt(rates * (1 - rates)))
        if spread <= TINY:
            return None
        return float(np.clip((both - times @ self._pairs(rates)) / spread, -1, 1))

    def _pairs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of the products of [M], over the pairs of models that labelled each task, [n]."""
        return ((self.labelled @ values) ** 2 - self.labelled @ values**2) / 2
