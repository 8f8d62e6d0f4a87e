"""next_questions, next_annotations: which annotator to ask about which task next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
    from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
    from crowdzoo.aggregation.result import Aggregation

    AnswerResult = TextAggregation | RegionAggregation

SURE = 0.95  # probability from which a label is called sure
CELLS_AT_ONCE = 2**21  # numbers of confusion matrices: 16 MiB in float64
FEWEST = 2  # annotations of a task that can be sure
LEAST = 1e-6  # that an annotator's agreement lacks
ALTERNATIVES = 64  # annotators of a task that are considered where each may only be asked so often
MOST_CANDIDATES = 256  # annotators who are considered; for more, those whose answers to some tasks tell most
SAMPLED = 64  # tasks that say so

Confusions = Callable[[NDArray[np.int64], NDArray[np.int64]], Any]
Gains = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class NextAnnotations:
    """Questions to ask, the most informative first.

    Attributes:
        tasks: task codes, int64 [n].
        annotators: annotator codes, int64 [n].
        gains: expected information from each answer, float64 [n]; for classes in nats.
        costs: cost of each answer, float64 [n].
        rights: for preferences, codes of the tasks on the right, int64 [n] (`tasks` are on the left); else None.
    """

    tasks: NDArray[np.int64]
    annotators: NDArray[np.int64]
    gains: NDArray[np.float64]
    costs: NDArray[np.float64]
    rights: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return f"<NextAnnotations: {len(self.tasks):,} questions, cost {self.costs.sum():,.6g}>"

    def take(self, places: list[int] | NDArray[np.int64]) -> NextAnnotations:
        """Selects questions, in the order of `places`."""
        return NextAnnotations(self.tasks[places], self.annotators[places], self.gains[places], self.costs[places])


def information_gain(posteriors: ArrayLike, confusions: ArrayLike) -> NDArray[np.float64]:
    """Expected information of an answer about the truth.

    It is the mutual information of truth and answer: entropy of the answer minus its mean entropy given the truth,
    which equals the expected decrease of the posterior's entropy (D. V. Lindley: On a measure of the information
    provided by an experiment. Annals of Mathematical Statistics 27(4), 1956). It is 0 if the truth is certain, and for
    annotators whose answers do not depend on the truth.

    Args:
        posteriors: P(truth k), `[..., K]`, rows sum to one.
        confusions: P(says l | truth k), `[..., K, L]`, `[true, said]`, rows sum to one; leading axes broadcast against
            those of the posteriors.

    Returns:
        `[...]`, nats, from 0 to the smaller of log K and log L.
    """
    truth = np.asarray(posteriors, dtype=np.float64)
    rows = np.asarray(confusions, dtype=np.float64)
    answers = np.einsum("...k,...kl->...l", truth, rows)
    noise = np.einsum("...k,...k->...", truth, entr(rows).sum(axis=-1))
    return np.maximum(entr(answers).sum(axis=-1) - noise, 0.0)  # rounding may go below


def sure_tasks(result: Aggregation, sure: float = SURE) -> NDArray[np.bool_]:
    """Finds tasks whose label is sure; pages, commands and simulations count them with this function.

    A task with one annotation is never sure: nobody has contradicted its annotator, and if most tasks have one
    annotation, a method finds no errors and its posteriors are near 1.

    Args:
        result: an `Aggregation` of N tasks.
        sure: probability from which on the most probable class counts as sure, above 0 to 1.

    Returns:
        bool [N].
    """
    return (result.posteriors.max(axis=1, initial=0) >= sure) & (result.annotations_per_task >= FEWEST)


def agreement_gains(
    spread: NDArray[np.float64],
    result: AnswerResult,
    agreement: NDArray[np.float64],
    crowd: Annotations,
) -> Gains:
    """Expected improvement of a task's answer by a further answer, in units of the spread.

    Answers scatter around the true one as in RASA: by the task's spread over the annotator's weight. A mean with total
    weight W has variance s / W, and an answer of weight w reduces it by s w / (W (W + w)). The weight is the mean of
    1 - agreement over the annotator's own 1 - agreement; W includes one additional usual answer for what is known
    without any.

    Args:
        spread: s, spread of answers to each task, [N].
        result: result of an aggregation.
        agreement: agreement of each annotator, [R].
        crowd: the aggregated annotations.
    """
    counts, rates = result.annotations_per_annotator, np.maximum(1 - agreement, LEAST)
    weights = float(counts @ rates) / max(counts.sum(), 1) / rates
    before = 1 + np.bincount(crowd.task_ids, weights[crowd.annotator_ids], crowd.num_tasks)

    def nearer(tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> NDArray[np.float64]:
        total, weight = before[tasks, None], weights[annotators]
        return np.asarray(spread[tasks, None] * weight / (total * (total + weight)))

    return nearer


@checked(
    number=Number(1, whole=True),
    per_task=Number(1, whole=True, optional=True),
    per_annotator=Number(1, whole=True, optional=True),
    budget=Number(0, above=True, optional=True),
)
def next_annotations(
    posteriors: ArrayLike,
    confusions: ArrayLike | Confusions,
    number: int = 10,
    *,
    annotators: ArrayLike | None = None,
    annotations: Annotations | None = None,
    per_task: int | None = None,
    per_annotator: int | None = None,
    costs: ArrayLike | None = None,
    budget: float | None = None,
    sure: ArrayLike | None = None,
) -> NextAnnotations:
    """Selects the pairs of a task and an annotator with the most informative answers.

    Each pair is evaluated by itself: a first answer for a task does not reduce the gain of a second one. Ask for a few
    at a time, or set `per_task`.

    Args:
        posteriors: class probabilities of the tasks, `[N, K]`, rows sum to one: those of an aggregation, or
            `CrowdModel.posteriors`.
        confusions: P(annotator says l | truth k): `[R, K, K]`, `[annotator, true, said]`, for annotators who treat all
            tasks alike; or a function from task codes int64 `[B]` and annotator codes int64 `[B, M]` to `[B, M, K, K]`,
            such as `lambda tasks, annotators: np.exp(model.log_confusions(x[tasks], annotators))` for a `CrowdModel`
            whose crowd layer uses the instances.
        number: n, number of pairs.
        annotators: codes of available annotators; None for all, with a function all annotators of `annotations`.
        annotations: known annotations of these tasks; no annotator is asked twice about a task.
        per_task: maximum number of annotators per task; None sets no limit.
        per_annotator: maximum number of tasks per annotator; None sets no limit. Only the best 64 annotators of each
            task are considered, and of more than 256 annotators those with the most informative answers on average.
        costs: cost of an answer of each annotator, `[R]`, above 0, in any unit; None is 1. Pairs are ranked by gain
            over cost.
        budget: maximum total cost of the pairs, in that unit; None sets no limit.
        sure: tasks to leave out, bool `[N]`, such as those of `sure_tasks`; None leaves out none.

    Returns:
        At most n pairs, fewer if there are not enough. Ties go to the lower task, then to the earlier annotator.

    Raises:
        ConfigError: a number is out of range.
        DataError: shapes do not match, costs are not above 0, or the annotators are unknown.
    """
    truth = np.asarray(posteriors, dtype=np.float64)
    if truth.ndim != 2:
        raise DataError(f"next_annotations: posteriors have the shape [tasks, classes], got {truth.shape}")
    ask, everybody = _asked_for(confusions, truth.shape[1])
    if annotations is not None and annotations.num_tasks != len(truth):
        raise DataError(
            f"next_annotations: posteriors of {len(truth)} tasks, but {annotations.num_tasks} annotated ones"
        )
    if annotators is not None:
        candidates = np.asarray(annotators, dtype=np.int64)
    elif everybody is not None:
        candidates = np.arange(everybody)
    elif annotations is not None:
        candidates = np.arange(annotations.num_annotators)
    else:
        raise DataError("next_annotations: a function does not say who can be asked; give annotators or annotations")

    return next_questions(
        class_gains(truth, ask), len(truth), number,
        annotators=candidates, annotations=annotations, per_task=per_task, per_annotator=per_annotator, costs=costs,
        budget=budget, sure=sure, cells=truth.shape[1] ** 2,
    )  # fmt: skip


def class_gains(posteriors: NDArray[np.float64], confusions: ArrayLike | Confusions) -> Gains:
    """Returns the function of information gains for `next_questions`; arguments as in `next_annotations`."""
    ask, _ = _asked_for(confusions, posteriors.shape[1])
    return lambda tasks, annotators: information_gain(posteriors[tasks, None], ask(tasks, annotators))


def next_questions(
    gains: Gains,
    num_tasks: int,
    number: int = 10,
    *,
    annotators: ArrayLike,
    annotations: Annotations | None = None,
    per_task: int | NDArray[np.int64] | None = None,
    per_annotator: int | None = None,
    costs: ArrayLike | None = None,
    budget: float | None = None,
    sure: ArrayLike | None = None,
    cells: int = 1,
) -> NextAnnotations:
    """Selects the pairs of a task and an annotator with the largest gains, for any kind of answers.

    Args:
        gains: function from task codes int64 `[B]` and annotator codes int64 `[B, M]` to the expected information in
            their answers, `[B, M]`, in any unit.
        num_tasks: N.
        number: n, number of pairs; this argument and the others as in `next_annotations`.
        annotators: codes of available annotators.
        annotations: known annotations.
        per_task: maximum number of annotators per task; int64 `[N]`: for each task.
        per_annotator: maximum number of tasks per annotator.
        costs: cost of an answer of each annotator, `[R]`.
        budget: maximum total cost of the pairs.
        sure: tasks to leave out, bool `[N]`.
        cells: numbers that `gains` needs in memory per pair.

    Raises:
        DataError: shapes do not match, or costs are not above 0.
    """
    candidates = np.asarray(annotators, dtype=np.int64)
    price = prices_of(costs, candidates)
    left_out = np.zeros(num_tasks, bool) if sure is None else np.asarray(sure, dtype=bool)
    if left_out.shape != (num_tasks,):
        raise DataError(f"next_annotations: sure has one value for each of {num_tasks} tasks, got {left_out.shape}")

    best = NextAnnotations(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    limits = None if per_task is None else np.broadcast_to(per_task, num_tasks)
    # some of the best pairs may be passed over
    wide = per_annotator is not None or budget is not None or isinstance(per_task, np.ndarray)
    limit = ALTERNATIVES if wide else None if limits is None else int(limits.max(initial=0))
    most = None if wide else number
    open_tasks = np.flatnonzero(~left_out)
    most_candidates = MOST_CANDIDATES if per_annotator is None else max(MOST_CANDIDATES, 2 * number // per_annotator)
    if len(candidates) > most_candidates and len(open_tasks):
        few = max(1, min(SAMPLED, CELLS_AT_ONCE // (len(candidates) * cells)))
        sample = open_tasks[:: -(-len(open_tasks) // few)]
        value = gains(sample, np.broadcast_to(candidates, (len(sample), len(candidates)))).mean(axis=0) / price
        kept = np.sort(np.argsort(-value, kind="stable")[:most_candidates])
        candidates, price = candidates[kept], price[kept]
    step = max(1, CELLS_AT_ONCE // max(1, len(candidates) * cells))
    rows, columns = _answered_pairs(annotations, open_tasks, candidates, num_tasks)
    parts = [best]
    for start in range(0, len(open_tasks), step):
        tasks = open_tasks[start : start + step]
        gain = gains(tasks, np.broadcast_to(candidates, (len(tasks), len(candidates))))
        begin, end = np.searchsorted(rows, (start, start + len(tasks)))
        gain[rows[begin:end] - start, columns[begin:end]] = -np.inf
        parts.append(_best_of(gain, tasks, candidates, price, limit))
        if not wide:  # only the best are kept, or all pairs would be held
            parts = [_together(parts, number)]
    best = _together(parts, most)
    return _within(best, number, limits, per_annotator, budget) if wide else best


def prices_of(costs: ArrayLike | None, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cost of an answer of each candidate."""
    if costs is None:
        return np.ones(len(candidates))
    known = np.asarray(costs, dtype=np.float64)
    if known.ndim != 1 or (len(candidates) and candidates.max() >= len(known)):
        raise DataError(f"next_annotations: costs have one number for each annotator, got shape {known.shape}")
    if not (np.isfinite(known) & (known > 0)).all():
        raise DataError("next_annotations: costs are finite numbers above 0")
    return known[candidates]


def _within(
    best: NextAnnotations,
    number: int,
    per_task: NDArray[np.int64] | None,
    per_annotator: int | None,
    budget: float | None,
) -> NextAnnotations:
    """Returns the pairs, best first, that respect the limits."""
    left = np.inf if budget is None else budget * (1 + 1e-12)
    of_task: dict[int, int] = {}
    of_annotator: dict[int, int] = {}
    kept: list[int] = []
    cheapest = best.costs.min(initial=np.inf)
    for place, (task, annotator, cost) in enumerate(
        zip(best.tasks.tolist(), best.annotators.tolist(), best.costs.tolist(), strict=True)
    ):
        if len(kept) == number or left < cheapest:
            break
        if (
            cost > left
            or (per_task is not None and of_task.get(task, 0) >= per_task[task])
            or (per_annotator is not None and of_annotator.get(annotator, 0) >= per_annotator)
        ):
            continue
        of_task[task] = of_task.get(task, 0) + 1
        of_annotator[annotator] = of_annotator.get(annotator, 0) + 1
        left -= cost
        kept.append(place)
    return best.take(kept)


def _asked_for(confusions: ArrayLike | Confusions, num_classes: int) -> tuple[Confusions, int | None]:
    """Returns a function of tasks and annotators, and the number of annotators if known."""
    if callable(confusions):
        return confusions, None
    matrices = np.asarray(confusions, dtype=np.float64)
    if matrices.ndim != 3 or matrices.shape[1] != num_classes:
        raise DataError(
            f"next_annotations: confusions have the shape [annotators, {num_classes}, said], got {matrices.shape}"
        )
    return lambda tasks, annotators: matrices[annotators], len(matrices)


def _answered_pairs(
    annotations: Annotations | None, open_tasks: NDArray[np.int64], candidates: NDArray[np.int64], num_tasks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs with an annotation: the index of the task among the open ones, ascending, and the annotator's column."""
    if annotations is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    place = np.full(num_tasks, -1)
    place[open_tasks] = np.arange(len(open_tasks))
    rows = place[annotations.task_ids]
    kept = (rows >= 0) & np.isin(annotations.annotator_ids, candidates)
    order = np.argsort(candidates, kind="stable")
    columns = order[np.searchsorted(candidates, annotations.annotator_ids[kept], sorter=order)]
    rows = rows[kept]
    by_row = np.argsort(rows, kind="stable")
    return rows[by_row], columns[by_row]


def _best_of(
    gains: NDArray[np.float64],
    tasks: NDArray[np.int64],
    candidates: NDArray[np.int64],
    price: NDArray[np.float64],
    per_task: int | None,
) -> NextAnnotations:
    """The best pairs of each of some tasks."""
    order = np.argsort(-gains / price, axis=1, kind="stable")[:, :per_task]
    rows = np.repeat(np.arange(len(tasks)), order.shape[1])
    columns = order.ravel()
    possible = np.isfinite(gains[rows, columns])
    rows, columns = rows[possible], columns[possible]
    return NextAnnotations(tasks[rows], candidates[columns], gains[rows, columns], price[columns])


def _together(parts: list[NextAnnotations], number: int | None) -> NextAnnotations:
    """Combines the best pairs of all parts."""
    fields = ("tasks", "annotators", "gains", "costs")
    together = NextAnnotations(*(np.concatenate([getattr(part, field) for part in parts]) for field in fields))
    return together.take(np.argsort(-together.gains / together.costs, kind="stable")[:number])
