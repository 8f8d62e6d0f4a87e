"""Questions: what `crowdzoo next` asks the annotators of one kind of label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.aggregating import Result
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.next_annotation import FEWEST, Gains

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
    from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation

AnswerResult = TypeVar("AnswerResult", bound="TextAggregation | RegionAggregation")


class Questions(ABC, Generic[Result]):
    """What a further answer is expected to tell, and which tasks need none.

    Attributes:
        unit: of the gains.
        names: attribute of a result with the names that skills are about; empty: they are about none.
    """

    unit: ClassVar[str]
    names: ClassVar[str] = ""

    @abstractmethod
    def skills(self, result: Result, places: list[int] | slice) -> Floats | None:
        """What a result knows of the annotators, [R, …]; None where the method knows nothing.

        Args:
            result: of an aggregation.
            places: of the names, in the order in which they are wanted.
        """

    @abstractmethod
    def gains(self, result: Result, skills: Floats, crowd: Annotations) -> Gains:
        """A function from tasks and annotators to what an answer is expected to tell.

        Args:
            result: of an aggregation.
            skills: of the annotators.
            crowd: what annotators said.
        """

    @abstractmethod
    def find_sure(self, result: Result, least: float, crowd: Annotations) -> Flags:
        """Tasks with two answers or more that are this sure, bool [N].

        Args:
            result: of an aggregation.
            least: probability, or what the kind has in its place.
            crowd: what annotators said.
        """

    def answers(self, crowd: Annotations) -> tuple[Codes, Codes, Codes]:
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
