"""Questions of `crowdzoo next` about several labels per task."""

from __future__ import annotations

import numpy as np

from crowdzoo.aggregation.multi_label_aggregation import MultiLabelAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.kinds.several_labels.answers import LabelAnswers
from crowdzoo.quality.next_annotation import FEWEST, Gains, information_gain


class LabelQuestions(Questions[MultiLabelAggregation]):
    """Choose questions by sensitivities and specificities."""

    gain_meaning = "how much the answer tells, label by label: 0.69 decides whether an even one holds"
    names = "label_names"

    def skills(self, result: MultiLabelAggregation, places: list[int] | slice) -> Floats:
        """Specificity and sensitivity for the labels in this order, [R, J, 2]."""
        return np.stack([result.specificity[:, places], result.sensitivity[:, places]], axis=2)

    def gains(self, result: MultiLabelAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected information of an answer, summed over labels, nats."""
        rates = np.stack([skills, 1 - skills], axis=3)  # [R, J, true, said]: rows of no and yes
        rates[:, :, 1] = rates[:, :, 1, ::-1]
        beliefs = np.stack([1 - result.probabilities, result.probabilities], axis=2)

        def gain(tasks: Codes, annotators: Codes) -> Floats:
            total = np.zeros(annotators.shape)
            for label in range(beliefs.shape[1]):
                total += information_gain(beliefs[tasks, None, label], rates[annotators, label])
            return total

        return gain

    def find_sure(self, result: MultiLabelAggregation, least: float, crowd: Annotations) -> Flags:
        """Tasks with at least two answers where each label applies, or does not, with at least this probability."""
        certain = np.maximum(result.probabilities, 1 - result.probabilities).min(axis=1) >= least
        return np.asarray(certain & (result.annotations_per_task >= FEWEST))

    def answers(self, crowd: Annotations) -> tuple[Codes, Codes, Codes]:
        """See `Questions.answers`; an answer is a set of labels."""
        answers = LabelAnswers.of(crowd, np.arange(crowd.num_classes))
        return answers.tasks, answers.annotators, np.unique(answers.labels, axis=0, return_inverse=True)[1].ravel()
