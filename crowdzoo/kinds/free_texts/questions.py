"""Questions of `crowdzoo next` about free texts."""

from __future__ import annotations

from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import AnswerQuestions
from crowdzoo.kinds.scoring import Floats
from crowdzoo.quality.next_annotation import Gains, agreement_gains


class TextQuestions(AnswerQuestions[TextAggregation]):
    """Choose questions by the agreement of texts."""

    gain_meaning = "how much nearer the answer brings the text to the true one, in errors per word or character of it"

    def gains(self, result: TextAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected decrease in the error rate of the task's text from a further text.

        The spread is one minus confidence.
        """
        return agreement_gains(1 - result.confidence, result, skills, crowd)
