"""alternative_annotator_test: tests whether labels of a model may replace those of people."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.quality.figures import name_column
from crowdzoo.quality.model_agreement import codes_of

POWER = 0.8


@dataclass(frozen=True, eq=False)
class AlternativeAnnotator:
    """Result of the test for one model.

    Attributes:
        model: name of the model.
        epsilon: `epsilon` of the test; the verdict depends on it.
        shared: maximum number of tasks that a person shares with the model and other people; if it is below
            `least_tasks`, nobody is compared, `people` has no rows, and the numbers are NaN.
        winning_rate: share of the people for whom the test finds that the model may replace them.
        advantage: probability that the model agrees with the others at least as well as the person does, averaged over
            people. It is for comparing models; the test decides.
        passes: whether the winning rate is .5 or more.
        decided: whether there are enough tasks for a verdict: the model passes, or the reverse test finds that it may
            not replace more than half of the people. Otherwise not passing says little.
        tasks_needed: approximate number of tasks per person (median) that would decide in 80 % of cases, if the model
            did equally well on all of them; infinite for a borderline model.
        people: one row per person: `annotator`, `tasks` (compared on), `advantage`, `person_advantage` (the reverse
            probability), `p_value` (adjusted for the number of people), `won`.
    """

    model: str
    epsilon: float
    shared: int
    winning_rate: float
    advantage: float
    passes: bool
    decided: bool
    tasks_needed: float
    people: pa.Table

    def __repr__(self) -> str:
        verdict = "passes" if self.passes else "does not pass" if self.decided else "has too few tasks to decide"
        return (
            f"AlternativeAnnotator({self.model!r} {verdict}: epsilon {self.epsilon:g}, "
            f"winning rate {self.winning_rate:.2f}, advantage {self.advantage:.2f}, {self.people.num_rows} people)"
        )


@checked(epsilon=Number(0, 1), level=Number(0, 1, above=True, below=True), least_tasks=Number(2, whole=True))
def alternative_annotator_test(
    annotations: Annotations,
    models: Sequence[object],
    *,
    epsilon: float = 0.2,
    level: float = 0.05,
    least_tasks: int = 30,
) -> list[AlternativeAnnotator]:
    """Tests for each model whether its labels may replace those of people (the alt-test).

    Each person is left out in turn. On a task that both labelled, the labels of the model and of the person are
    compared by the share of the other people's labels that they equal; a tie counts as a win for both. The null
    hypothesis is that the model wins less often than the person by `epsilon` or more. It is tested by Student's t for
    the mean of the differences, corrected for the number of people by the procedure of Benjamini and Yekutieli. A model
    passes if it can replace at least half of the people.

    `epsilon` is the allowed loss for the lower cost of a model's labels. The paper uses .2 for experts, .15 for trained
    annotators and .1 for crowd workers. The verdict depends on it: with .2 a model may pass that agrees with others
    clearly less often than people do.

    Source: N. Calderon, R. Reichart, R. Dror: The alternative annotator test for LLM-as-a-judge: How to statistically
    justify replacing human annotators with LLMs. ACL 2025, arXiv:2501.10970.

    Args:
        annotations: annotations of people and models, kind classification; at least three people should have labelled
            each task.
        models: names of the annotators that are models; all others are people.
        epsilon: allowed loss, from 0 to 1.
        level: false discovery rate, between 0 and 1.
        least_tasks: people who share fewer tasks with the model and other people are left out; if nobody remains, the
            model has too few tasks. The paper requires 30; with fewer, the test is only approximate.

    Returns:
        One result per model, in the order of `models`.

    Raises:
        ConfigError: no models, an unknown model, or an option out of range.
        DataError: wrong kind of labels, or no annotations by people.
        ImportError: SciPy is missing.
    """
    if not annotations.label_kind.one_class:
        raise DataError(f"the alternative annotator test is for classes, got kind {annotations.kind}.")
    annotations.check_no_repeats("The alternative annotator test")
    if not models:
        raise ConfigError(f"{Setting('models')}: name one annotator or more that is a model.")
    codes = codes_of(annotations, models)
    by_model = np.isin(annotations.annotator_ids, codes)
    if by_model.all():
        raise DataError(
            "alternative_annotator_test: no person labelled a task, so there is nobody to compare the models with."
        )
    people = annotations.select_rows(~by_model)
    return [
        _test(annotations, people, code, str(model), (epsilon, level, least_tasks))
        for code, model in zip(codes, models, strict=True)
    ]


def _wins(
    people: Annotations, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Annotator codes, and whether the model and the person win, for labels of people on tasks with at least two.

    Args:
        people: annotations of the people.
        labels: a model's labels, class codes [N], -1 where it has none.
    """
    counts = weighted_votes(people)
    compared = (people.redundancy[people.task_ids] > 1) & (labels[people.task_ids] >= 0)
    task, label = people.task_ids[compared], people.labels[compared]
    model = counts[task, labels[task]] - (labels[task] == label)  # without the person who is left out
    person = counts[task, label] - 1
    return people.annotator_ids[compared], model >= person, person >= model


def _test(
    annotations: Annotations, people: Annotations, code: int, model: str, how: tuple[float, float, int]
) -> AlternativeAnnotator:
    epsilon, level, least = how
    by_model = annotations.annotator_ids == code
    labels = np.full(annotations.num_tasks, -1)
    labels[annotations.task_ids[by_model]] = annotations.labels[by_model]
    codes, won, lost = _wins(people, labels)
    tasks = np.bincount(codes, minlength=annotations.num_annotators)
    persons = np.flatnonzero(tasks >= least)
    order = np.argsort(codes, kind="stable")
    ends = np.concatenate([[0], np.cumsum(tasks)])
    results = np.empty((len(persons), 5))
    for row, person in enumerate(persons):
        rows = order[ends[person] : ends[person + 1]]
        difference = lost[rows].astype(float) - won[rows]
        excess = difference - epsilon
        both = _p_value(excess), _p_value(-excess)
        results[row] = won[rows].mean(), lost[rows].mean(), *both, _tasks_needed(excess, len(persons), level)
    adjusted, against = (_adjust(column) for column in results[:, 2:4].T)
    replaced = adjusted <= level
    table = pa.table(
        {
            "annotator": name_column(annotations.annotators[persons]),
            "tasks": tasks[persons],
            "advantage": results[:, 0],
            "person_advantage": results[:, 1],
            "p_value": adjusted,
            "won": replaced,
        }
    )
    shared = int(tasks.max(initial=0))
    if not len(persons):
        return AlternativeAnnotator(model, epsilon, shared, math.nan, math.nan, False, False, math.nan, table)
    rate = float(replaced.mean())
    decided = rate >= 0.5 or float((against <= level).mean()) > 0.5
    needed = float(np.median(results[:, 4]))
    advantage = float(results[:, 0].mean())
    return AlternativeAnnotator(model, epsilon, shared, rate, advantage, rate >= 0.5, decided, needed, table)


def _adjust(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjusts p-values [P] by Benjamini and Yekutieli; there may be none."""
    return np.asarray(stats.false_discovery_control(p_values, method="by") if len(p_values) else p_values)


def _p_value(excess: NDArray[np.float64]) -> float:
    """P-value of the hypothesis that the mean of [n] is at least 0, against one below 0."""
    if np.ptp(excess) == 0:  # no spread, and no statistic
        return float(excess[0] >= 0)
    return float(stats.ttest_1samp(excess, 0, alternative="less").pvalue)


def _tasks_needed(excess: NDArray[np.float64], number: int, level: float) -> float:
    """Number of tasks that would show the sign of the mean of [n], if half of this number of people is to be shown."""
    mean, deviation = abs(float(excess.mean())), float(excess.std(ddof=1))
    if mean == 0:
        return math.inf
    if deviation == 0:  # no spread, and no statistic
        return float(len(excess))
    half = level * math.ceil(number / 2) / (number * (1 / np.arange(1, number + 1)).sum())  # Benjamini and Yekutieli
    errors = float(stats.norm.isf(half) + stats.norm.ppf(POWER))
    return math.ceil((errors * deviation / mean) ** 2)
