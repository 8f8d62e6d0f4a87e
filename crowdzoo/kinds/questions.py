"""Questions: choice of the questions of `crowdzoo next` for one kind of label."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.data.vocabulary import NOT_LOGGED_IN
from crowdzoo.kinds.aggregating import Result
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.next_annotation import FEWEST, Gains

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
    from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation

AnswerResult = TypeVar("AnswerResult", bound="TextAggregation | RegionAggregation")


def askable(crowd: Annotations) -> Codes:
    """Codes of the annotators who can be asked: all except Zooniverse volunteers without an account."""
    without = re.compile(rf"{NOT_LOGGED_IN}(-|$)")
    return np.array([code for code, name in enumerate(crowd.annotators) if not without.match(str(name))], np.int64)


class Opened(NamedTuple):
    """Possible questions.

    Attributes:
        table: questions as tasks, [N], with the annotators who answered them.
        gains: expected gain of an answer.
        sure: questions that need no further answer, bool [N].
    """

    table: Annotations
    gains: Gains
    sure: Flags


class Questions(ABC, Generic[Result]):
    """Expected gain of further answers, and tasks that need none.

    Attributes:
        gain_meaning: description of the expected gain of an answer, for users.
        names: attribute of a result with the names that index skills; empty: skills are not by name.
        methods: methods whose results have skills, for messages; empty: all of the kind.
        subject: name of what is asked about, in messages.
        about_tasks: whether questions are about single tasks; if not, a pair of tasks may be new.
    """

    gain_meaning: ClassVar[str]
    names: ClassVar[str] = ""
    methods: ClassVar[str] = ""
    subject: ClassVar[str] = "tasks"
    about_tasks: ClassVar[bool] = True

    def first(self, num_tasks: int, most: float, seed: int) -> Codes:
        """Questions before any answer: codes of tasks, [n, 1], or of left and right, [n, 2].

        Args:
            num_tasks: number of tasks.
            most: number of pairs that can be answered.
            seed: seed of the pairs.
        """
        return np.arange(num_tasks)[:, None]

    def sides(self, table: Annotations, rows: Codes, num_tasks: int) -> Codes:
        """Codes of the crowd's tasks for rows of `Opened.table`; form as in `first`."""
        return rows[:, None]

    def opened(self, result: Result, skills: Floats, crowd: Any, sure: Flags, number: int) -> Opened:
        """Possible questions.

        Args:
            result: result of an aggregation.
            skills: skills of the annotators.
            crowd: the annotations.
            sure: tasks that need no further answer, bool [N].
            number: number of questions to choose.
        """
        return Opened(annotations_of(crowd), self.gains(result, skills, crowd), sure)

    def weights(self, result: Any) -> Floats:
        """Number of answers behind each annotator's skills, including those of a prior, [R]."""
        counts = getattr(result, "counts", None)
        return np.asarray(result.annotations_per_annotator if counts is None else counts.sum(axis=(1, 2)), np.float64)

    @abstractmethod
    def skills(self, result: Result, places: list[int] | slice) -> Floats | None:
        """Skills of the annotators from a result, [R, …]; None if the method has none.

        Args:
            result: result of an aggregation.
            places: places of the names, in the desired order.
        """

    @abstractmethod
    def gains(self, result: Result, skills: Floats, crowd: Any) -> Gains:
        """Return a function from tasks and annotators to the expected gain of an answer.

        Args:
            result: result of an aggregation.
            skills: skills of the annotators.
            crowd: the annotations.
        """

    @abstractmethod
    def find_sure(self, result: Result, least: float, crowd: Any) -> Flags:
        """Tasks with at least two answers that are certain enough, bool [N].

        Args:
            result: result of an aggregation.
            least: minimum probability, or the kind's equivalent.
            crowd: the annotations.
        """

    def answers(self, crowd: Any) -> tuple[Codes, Codes, Codes]:
        """Task, annotator and code of the label of each answer, [A] each."""
        return crowd.task_ids, crowd.annotator_ids, crowd.labels


class AnswerQuestions(Questions[AnswerResult]):
    """Questions about answers with degrees of similarity, such as texts and regions."""

    def skills(self, result: AnswerResult, places: list[int] | slice) -> Floats:
        """Agreement of annotators, smoothed by one typical answer, [R]."""
        counts = result.annotations_per_annotator
        usual = float(counts @ result.agreement) / max(counts.sum(), 1)
        return np.asarray((counts * result.agreement + usual) / (counts + 1))

    def find_sure(self, result: AnswerResult, least: float, crowd: Annotations) -> Flags:
        """Tasks with at least two answers and this confidence."""
        return np.asarray((result.confidence >= least) & (result.annotations_per_task >= FEWEST))


def pooled(skills: Any, known: Floats, earlier: tuple[Any, Floats] | None = None) -> Floats:
    """Means of the skills from both results, weighted by annotations; annotators without any get the overall mean."""
    sums, weights = np.zeros_like(skills), np.zeros_like(skills)
    for values, counts in ((skills, known), *([] if earlier is None else [earlier])):
        own = np.where(np.isnan(values), 0.0, counts.reshape(-1, *[1] * (values.ndim - 1)))
        sums, weights = sums + np.nan_to_num(values) * own, weights + own
    total = weights.sum(axis=0)
    usual = np.where(total > 0, sums.sum(axis=0) / np.maximum(total, 1), 0.5)
    return np.where(weights > 0, skills if earlier is None else sums / np.maximum(weights, 1), usual)
