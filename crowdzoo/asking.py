"""next_answers: which annotator to ask about which task next, for labels of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences, annotations_of
from crowdzoo.errors import DataError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.questions import askable, pooled
from crowdzoo.quality.first_round import PER_TASK, first_annotations
from crowdzoo.quality.next_annotation import SURE, NextAnnotations, next_questions, prices_of


@checked(
    number=Number(1, whole=True),
    sure=Number(0, 1),
    per_task=Number(1, whole=True, optional=True),
    per_annotator=Number(1, whole=True, optional=True),
    budget=Number(0, above=True, optional=True),
    seed=SEED,
)
def next_answers(
    annotations: Annotations | CrowdSequences,
    number: int = 10,
    *,
    result: Any = None,
    sure: float = SURE,
    annotators: ArrayLike | None = None,
    per_task: int | None = None,
    per_annotator: int | None = None,
    costs: ArrayLike | None = None,
    budget: float | None = None,
    seed: int = 0,
) -> NextAnnotations:
    """Chooses the questions whose answers are expected to be most informative; without any answers, a balanced plan.

    The value of an answer is its information in nats for classes, several labels and tags; the reduction of standard
    errors for ratings and scores of preferences; and the expected gain in agreement for texts and regions. See
    `crowdzoo.quality.first_annotations` for the plan. `crowdzoo next` also counts annotators who copy each other once,
    and asks about classes by `crowdzoo.quality.settlement`.

    Args:
        annotations: annotations of N tasks by R annotators, including tasks and annotators without any.
        number: n, number of questions.
        result: result of an aggregation of the annotations; None fits the default method of their kind. With a result
            for several labels per task, questions are about these labels.
        sure: tasks with two answers or more and at least this certainty are not asked about, see
            `crowdzoo next --sure`.
        annotators: codes of the annotators who can be asked; None is everybody but Zooniverse volunteers
            without an account.
        per_task: largest number of annotators per task, or pair; None is 1, and 3 in a plan.
        per_annotator: largest number of questions per annotator; None sets no limit.
        costs: cost of an answer by each annotator, `[R]`, above 0; None is 1.
        budget: largest total cost of the questions; None sets no limit.
        seed: seed of the method, and of the plan.

    Returns:
        At most n questions, the most informative first; for preferences with `rights`.

    Raises:
        ConfigError: a number out of its range.
        DataError: a result whose method does not model annotators, unknown codes, shapes that do not fit, or only
            volunteers without an account; without any answers also if there are no annotators.

    Example:
        >>> from crowdzoo import Annotations, next_answers
        >>> task, annotator = [1, 1, 2, 2, 3], ["ann", "bob", "ann", "bob", "ann"]
        >>> ratings = Annotations.from_arrays(task, annotator, [3.0, 4.0, 1.0, 2.0, 5.0], kind="regression")
        >>> questions = next_answers(ratings, 1)
        >>> int(ratings.tasks[questions.tasks[0]]), str(ratings.annotators[questions.annotators[0]])
        (3, 'bob')
    """
    table = annotations_of(annotations)
    kind = kind_of(table.kind if result is None else result.kind)
    people = askable(table) if annotators is None else np.asarray(annotators, np.int64)
    if annotators is None and len(people) < min(1, table.num_annotators):
        raise DataError("next_answers: no annotator has an account, so nobody can be asked. Pass annotators=CODES.")
    if not len(people) + len(table) or ((people < 0) | (people >= table.num_annotators)).any():
        raise DataError(f"next_answers: annotators are codes of some of the {table.num_annotators:,} annotators.")
    limits: dict[str, Any] = {"per_annotator": per_annotator, "costs": costs, "budget": budget}
    questions = kind.questions
    if questions is None:
        raise DataError(f"next_answers does not support {kind.title}.")
    if not len(table):
        each = per_task or PER_TASK
        limits["costs"] = prices = prices_of(costs, people)
        most = number if budget is None else min(number, budget / float(prices.mean()))
        first = questions.first(table.num_tasks, most / min(each, len(people)), seed)
        plan = first_annotations(len(first), len(people), number, per_task=each, seed=seed, **limits)
        return _about(replace(plan, annotators=people[plan.annotators]), first[plan.tasks])
    if result is None:
        aggregator: Any = kind.aggregation.create(seed=seed)
        result = aggregator.fit(annotations)
    skills = questions.skills(result, slice(None))
    if skills is None:
        raise DataError(f"next_answers: {result.method} does not model annotators. Use {questions.methods}.")
    skills, done = pooled(skills, questions.weights(result)), questions.find_sure(result, sure, annotations)
    opened = questions.opened(result, skills, annotations, done, number)
    found = next_questions(
        opened.gains, opened.table.num_tasks, number, annotators=people, annotations=opened.table,
        per_task=per_task or 1, sure=opened.sure, cells=skills[0].size, **limits,
    )  # fmt: skip
    return _about(found, questions.sides(opened.table, found.tasks, table.num_tasks))


def _about(plan: NextAnnotations, sides: NDArray[np.int64]) -> NextAnnotations:
    """The same questions about other tasks, [n, 1], or pairs of tasks, [n, 2]."""
    left, *right = sides.T
    return replace(plan, tasks=left, rights=right[0] if right else None)
