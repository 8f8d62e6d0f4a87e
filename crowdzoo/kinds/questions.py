"""Questions: what `crowdzoo next` asks the annotators of one kind of label."""

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
    """Codes of the annotators who can be asked: all but volunteers of Zooniverse without an account."""
    without = re.compile(rf"{NOT_LOGGED_IN}(-|$)")
    return np.array([code for code, name in enumerate(crowd.annotators) if not without.match(str(name))], np.int64)


class Opened(NamedTuple):
    """What can be asked about.

    Attributes:
        table: as tasks, [N], and who answered it.
        gains: what an answer to them is expected to tell.
        sure: those that need no further answer, bool [N].
    """

    table: Annotations
    gains: Gains
    sure: Flags


class Questions(ABC, Generic[Result]):
    """What a further answer is expected to tell, and which tasks need none.

    Attributes:
        gain_meaning: what the expected gain of an answer is, for users.
        names: attribute of a result with the names that skills are about; empty: they are about none.
        methods: those whose results know skills, for messages; empty: all of the kind.
        subject: what is asked about, in messages.
        about_tasks: whether that is one of the tasks; a pair of tasks may be a new one.
    """

    gain_meaning: ClassVar[str]
    names: ClassVar[str] = ""
    methods: ClassVar[str] = ""
    subject: ClassVar[str] = "tasks"
    about_tasks: ClassVar[bool] = True

    def first(self, num_tasks: int, most: float, seed: int) -> Codes:
        """What is asked about before any answer: codes of its tasks, [n, 1], or of left and right, [n, 2].

        Args:
            num_tasks: N.
            most: pairs that can be answered.
            seed: of the pairs.
        """
        return np.arange(num_tasks)[:, None]

    def sides(self, table: Annotations, rows: Codes, num_tasks: int) -> Codes:
        """The tasks, by their codes, that some tasks of `Opened.table` represent, as for `first`."""
        return rows[:, None]

    def opened(self, result: Result, skills: Floats, crowd: Any, sure: Flags, number: int) -> Opened:
        """What can be asked about.

        Args:
            result: of an aggregation.
            skills: of the annotators.
            crowd: what annotators said.
            sure: tasks that need no further answer, bool [N].
            number: of questions that are wanted.
        """
        return Opened(annotations_of(crowd), self.gains(result, skills, crowd), sure)

    def weights(self, result: Any) -> Floats:
        """From how many answers each annotator is known, those of a prior included, [R]."""
        counts = getattr(result, "counts", None)
        return np.asarray(result.annotations_per_annotator if counts is None else counts.sum(axis=(1, 2)), np.float64)

    @abstractmethod
    def skills(self, result: Result, places: list[int] | slice) -> Floats | None:
        """What a result knows of the annotators, [R, …]; None where the method knows nothing.

        Args:
            result: of an aggregation.
            places: of the names, in the order in which they are wanted.
        """

    @abstractmethod
    def gains(self, result: Result, skills: Floats, crowd: Any) -> Gains:
        """A function from tasks and annotators to what an answer is expected to tell.

        Args:
            result: of an aggregation.
            skills: of the annotators.
            crowd: what annotators said.
        """

    @abstractmethod
    def find_sure(self, result: Result, least: float, crowd: Any) -> Flags:
        """Tasks with two answers or more that are this sure, bool [N].

        Args:
            result: of an aggregation.
            least: probability, or what the kind has in its place.
            crowd: what annotators said.
        """

    def answers(self, crowd: Any) -> tuple[Codes, Codes, Codes]:
        """Task, annotator and a code of what was said, of each answer, [A] each."""
        return crowd.task_ids, crowd.annotator_ids, crowd.labels


class AnswerQuestions(Questions[AnswerResult]):
    """For answers that are more or less near each other, such as texts and regions."""

    def skills(self, result: AnswerResult, places: list[int] | slice) -> Floats:
        """Agreement of annotators, with one usual answer more, [R]."""
        counts = result.annotations_per_annotator
        usual = float(counts @ result.agreement) / max(counts.sum(), 1)
        return np.asarray((counts * result.agreement + usual) / (counts + 1))

    def find_sure(self, result: AnswerResult, least: float, crowd: Annotations) -> Flags:
        """Tasks with two answers or more and this confidence."""
        return np.asarray((result.confidence >= least) & (result.annotations_per_task >= FEWEST))


def pooled(skills: Any, known: Floats, earlier: tuple[Any, Floats] | None = None) -> Floats:
    """Means of what both results know, by their annotations; who has none is taken for a mean of all others."""
    sums, weights = np.zeros_like(skills), np.zeros_like(skills)
    for values, counts in ((skills, known), *([] if earlier is None else [earlier])):
        own = np.where(np.isnan(values), 0.0, counts.reshape(-1, *[1] * (values.ndim - 1)))
        sums, weights = sums + np.nan_to_num(values) * own, weights + own
    total = weights.sum(axis=0)
    usual = np.where(total > 0, sums.sum(axis=0) / np.maximum(total, 1), 0.5)
    return np.where(weights > 0, skills if earlier is None else sums / np.maximum(weights, 1), usual)
