"""Outcome: the result of a round for one question, and the next questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.kinds import Kind, kind_of
from crowdzoo.kinds.questions import Questions
from crowdzoo.label_studio.result_form import consensus_results
from crowdzoo.quality.copies import copy_families, counted_once
from crowdzoo.quality.next_annotation import ALTERNATIVES, FEWEST, SURE, NextAnnotations, class_gains, next_questions
from crowdzoo.quality.settled import TARGET, WORTH, Settlement, can_be_settled, settlement, worth_asking

if TYPE_CHECKING:
    from crowdzoo.label_studio.result_form import Item
    from crowdzoo.reading.platforms.label_config import Control

# A task is disputed up to this share of answers that agree with the consensus; for other kinds, up to this score
DISPUTED = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """The result of a round for one question with N tasks.

    Attributes:
        control: the question.
        crowd: its answers for all tasks of the project: `Annotations`, or the type for the kind of question.
        aggregation: a result for them.
        flagged: name of each annotator with a serious note -> text of the note.
        gold: class codes, int [N], -1 where unknown; None without gold.
        number: largest number of questions.
        worth: largest number of answers to spend per corrected label.
    """

    control: Control
    crowd: Any
    aggregation: Any
    flagged: Mapping[str, str] = field(default_factory=dict)
    gold: NDArray[np.int64] | None = None
    number: int = 100
    worth: float = WORTH

    @cached_property
    def answers(self) -> list[tuple[int, list[Item], float]]:
        """For each answered task its number, the consensus in Label Studio's format, and its score."""
        results = consensus_results(self.control, self.aggregation, self.crowd)
        return [(int(str(task)), items, score) for task, items, score in results]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of answers of each task, [N]."""
        return self._kind.aggregation.answer_counts(self.aggregation)

    @cached_property
    def _settlement(self) -> Settlement | None:
        """Settlement of classes; None for other kinds."""
        if not self._kind.labels.one_class or not can_be_settled(self.crowd):
            return None
        return settlement(self.crowd, self.aggregation, self.gold)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the answers, [N]; 0 without an answer."""
        names = {str(name): place for place, name in enumerate(self.aggregation.tasks.tolist())}
        scores = np.zeros(len(names))
        for task, _, score in self.answers:
            scores[names[str(task)]] = score
        return scores

    @cached_property
    def sure(self) -> NDArray[np.bool_]:
        """Mask of tasks whose label is settled, or for other kinds certain, bool [N]."""
        if self._settlement is not None:
            return np.asarray(self._settlement.settled >= TARGET)
        if self._kind.questions is not None:
            return np.asarray(self._kind.questions.find_sure(self.aggregation, SURE, self.crowd))
        return np.asarray((self.scores >= SURE) & (self.counts >= FEWEST))

    @cached_property
    def ask_again(self) -> NDArray[np.bool_]:
        """Mask of answered tasks that are worth further answers, bool [N]."""
        if self._settlement is not None:
            open_tasks = worth_asking(self._settlement.settled, self._settlement.further, worth=self.worth)
        else:
            open_tasks = ~self.sure
        return np.asarray(open_tasks & (self.counts > 0))

    @cached_property
    def disputed(self) -> NDArray[np.bool_]:
        """Mask of tasks with at least two answers of which at most half agree with the consensus, bool [N]."""
        shares = self.scores
        if self._kind.labels.one_class:
            agree = self.crowd.labels == self.aggregation.labels[self.crowd.task_ids]
            shares = np.bincount(self.crowd.task_ids, agree, len(self.counts)) / np.maximum(self.counts, 1)
        return np.asarray((self.counts >= FEWEST) & (shares <= DISPUTED) & ~self.sure)

    @cached_property
    def questions(self) -> NextAnnotations:
        """Next questions about tasks that are worth further answers, with one annotator per task."""
        crowd, who = self.crowd, np.arange(len(self.aggregation.annotators))
        if self._settlement is not None:  # annotators who copy each other count as one
            families = copy_families(crowd.num_annotators, crowd.task_ids, crowd.annotator_ids, crowd.labels)
            crowd, who, consensus = counted_once(crowd, families), np.unique(families), self._settlement.consensus
            gains = class_gains(consensus.posteriors, consensus.answers)
        else:
            assert self._questions is not None, "see has_questions"
            gains = self._questions.gains(self.aggregation, cast(NDArray[np.float64], self._skills), crowd)
            crowd = annotations_of(crowd)
        most = max(1, min(self.number, int(self.ask_again.sum())))
        share = 2 * math.ceil(most / min(max(len(who), 1), ALTERNATIVES))
        limits = {"per_task": 1, "per_annotator": share}
        sure = ~self.ask_again
        return next_questions(gains, crowd.num_tasks, most, annotators=who, annotations=crowd, sure=sure, **limits)

    @property
    def is_done(self) -> bool:
        """Whether every task has an answer, and no further answer by the available annotators is worth its cost."""
        is_asked = self.ask_again.any() and (not self.has_questions or len(self.questions.tasks) > 0)
        return bool((self.counts > 0).all() and not is_asked)

    @property
    def has_questions(self) -> bool:
        """Whether crowdzoo chooses questions for this kind of labels, and the method models annotators."""
        return self._questions is not None and (self._settlement is not None or self._skills is not None)

    @property
    def _kind(self) -> Kind:
        return kind_of(self.aggregation.kind)

    @cached_property
    def _skills(self) -> NDArray[np.float64] | None:
        """The annotators' skills according to the method."""
        return None if self._questions is None else self._questions.skills(self.aggregation, slice(None))

    @property
    def _questions(self) -> Questions[Any] | None:
        questions = self._kind.questions  # of a project, a task of which is a pair, others need new ones
        return questions if questions is not None and questions.about_tasks else None

    def numbers(self, tasks: NDArray[np.bool_]) -> list[int]:
        """Numbers of some tasks in the project."""
        return [int(str(name)) for name in self.aggregation.tasks[tasks].tolist()]
