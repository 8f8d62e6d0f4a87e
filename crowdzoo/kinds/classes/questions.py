"""Questions of `crowdzoo next` about classes."""

from __future__ import annotations

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.scoring import Flags, Floats
from crowdzoo.quality.next_annotation import Gains, class_gains, sure_tasks


class ClassQuestions(Questions[Aggregation]):
    """Choose questions by confusion matrices."""

    gain_meaning = "how much the answer tells: 0 is nothing, 0.69 decides between two equally probable classes"
    names = "classes"
    methods = "hierarchical-dawid-skene, dawid-skene, one-coin or ibcc"

    def skills(self, result: Aggregation, places: list[int] | slice) -> Floats | None:
        """Confusion matrices with the classes in this order, [R, K, K]; None if the method has none."""
        return None if result.confusions is None else result.confusions[:, places][:, :, places]

    def gains(self, result: Aggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected information of an answer about the class, nats."""
        return class_gains(result.posteriors, skills)

    def find_sure(self, result: Aggregation, least: float, crowd: Annotations) -> Flags:
        """Tasks with at least two answers whose class has at least this probability."""
        return sure_tasks(result, least)
