"""first_annotations, first_pairs: a balanced plan of who answers which tasks, before there are any answers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.errors import DataError
from crowdzoo.quality.next_annotation import NextAnnotations, prices_of

PER_TASK = 3
GOLD_SHARE = 0.1  # of an annotator's questions


@checked(
    num_tasks=Number(1, whole=True),
    num_annotators=Number(1, whole=True),
    number=Number(1, whole=True, optional=True),
    per_task=Number(1, whole=True),
    per_annotator=Number(1, whole=True, optional=True),
    budget=Number(0, above=True, optional=True),
    seed=SEED,
)
def first_annotations(
    num_tasks: int,
    num_annotators: int,
    number: int | None = None,
    *,
    per_task: int = PER_TASK,
    per_annotator: int | None = None,
    gold: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    budget: float | None = None,
    seed: int = 0,
) -> NextAnnotations:
    """Plans the first round: annotators get equal loads, and every pair of them shares tasks.

    Shared tasks are needed to estimate Krippendorff's alpha and reliabilities, and to find copies. Tasks are processed
    in random order. Each goes to the annotator with the fewest questions so far; ties go to those who share the fewest
    tasks with its annotators: a greedy form of a balanced incomplete block design (W. G. Cochran, G. M. Cox:
    Experimental Designs, 1957, chapter 9). Tasks with gold are separate: they are a tenth of each annotator's
    questions, at least one, and each of them goes to about equally many annotators.

    Args:
        num_tasks: N.
        num_annotators: R.
        number: maximum number of questions; None sets no limit.
        per_task: answers per task without gold, from different annotators.
        per_annotator: maximum number of questions per annotator; None sets no limit.
        gold: whether the answer of each task is known, bool `[N]`; None if all are unknown.
        costs: cost of an answer of each annotator, `[R]`, above 0; None is 1.
        budget: maximum total cost of the questions; None sets no limit.
        seed: seed of the order of tasks, and of ties.

    Returns:
        Questions in random order of tasks, so that the first ones are also balanced. Gains are 0, as none is known yet.

    Raises:
        ConfigError: a number is out of range.
        DataError: shapes do not match, or costs are not above 0.
    """
    known = np.zeros(num_tasks, bool) if gold is None else np.asarray(gold, dtype=bool)
    if known.shape != (num_tasks,):
        raise DataError(f"first_annotations: gold has one value for each of {num_tasks} tasks, got {known.shape}")
    rng, price = np.random.default_rng(seed), prices_of(costs, np.arange(num_annotators))
    left, most = np.inf if budget is None else budget * (1 + 1e-12), np.inf if number is None else number
    limit, answers = np.inf if per_annotator is None else per_annotator, min(per_task, num_annotators)
    load, together = np.zeros(num_annotators), np.zeros((num_annotators, num_annotators))
    who_by_task: dict[int, list[int]] = {}
    gold_tasks, others = rng.permutation(np.flatnonzero(known)), rng.permutation(np.flatnonzero(~known))
    share = min(most, left / price.mean(), num_annotators * limit, answers * len(others)) / num_annotators
    each = min(len(gold_tasks), max(1, round(GOLD_SHARE * share)))
    for turn, annotator in np.ndindex(each, num_annotators):
        if load.sum() >= most or load[annotator] >= limit or price[annotator] > left:
            continue
        task = int(gold_tasks[(annotator * each + turn) % len(gold_tasks)])
        who_by_task.setdefault(task, []).append(annotator)
        load[annotator], left = load[annotator] + 1, left - price[annotator]
    for task in others.tolist():
        chosen: list[int] = []
        able = load < limit
        while len(chosen) < answers:
            able &= price <= left - price[chosen].sum()
            able[chosen] = False
            if not able.any():
                break
            order = np.lexsort((rng.random(num_annotators), load, together[chosen].sum(axis=0), ~able))
            chosen.append(int(order[0]))
        if len(chosen) < answers or load.sum() + answers > most:
            break
        who_by_task[task] = chosen
        load[chosen] += 1
        together[np.ix_(chosen, chosen)] += 1
        left -= price[chosen].sum()
    order_of_tasks = rng.permutation(list(who_by_task))
    pairs = [(task, annotator) for task in order_of_tasks.tolist() for annotator in who_by_task[task]]
    tasks, annotators = np.array(pairs, np.int64).reshape(-1, 2).T
    return NextAnnotations(tasks, annotators, np.zeros(len(tasks)), price[annotators])


@checked(num_tasks=Number(2, whole=True), number=Number(1, whole=True), seed=SEED)
def first_pairs(num_tasks: int, number: int, seed: int = 0) -> NDArray[np.int64]:
    """Plans the first comparisons: each cycle through all tasks in random order links them all.

    Tasks are compared about equally often, and about as often on the left as on the right.

    Args:
        num_tasks: N.
        number: number of pairs; fewer if there are not enough.
        seed: seed of the order.

    Returns:
        Codes of left and right, int64 `[P, 2]`; all pairs are distinct.

    Raises:
        ConfigError: a number is out of range.
    """
    rng, most = np.random.default_rng(seed), min(number, num_tasks * (num_tasks - 1) // 2)
    pairs: dict[frozenset[int], tuple[int, int]] = {}
    while len(pairs) < most:
        order = rng.permutation(num_tasks).tolist()
        for left, right in zip(order, [*order[1:], order[0]], strict=True):
            if len(pairs) < most:
                pairs.setdefault(frozenset((left, right)), (left, right))
    return np.array(list(pairs.values()), np.int64)
