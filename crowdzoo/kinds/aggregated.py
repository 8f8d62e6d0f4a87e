"""What fits a method to the annotations of a kind of label."""

from collections.abc import Callable

from crowdzoo.data.label_kinds import CLASSIFICATION, PREFERENCE, REGRESSION, SEQUENCE
from crowdzoo.kinds.classes.aggregated import class_answers
from crowdzoo.kinds.preferences.aggregated import pair_answers
from crowdzoo.kinds.ratings.aggregated import rating_answers
from crowdzoo.kinds.sentences.aggregated import sentence_answers
from crowdzoo.records.crowd_answers import CrowdAnswers

__all__ = ["ANSWERS"]

# Kind of label -> what fits a method and asks it about the tasks of both splits
ANSWERS: dict[str, Callable[..., CrowdAnswers]] = {
    CLASSIFICATION.name: class_answers,
    REGRESSION.name: rating_answers,
    SEQUENCE.name: sentence_answers,
    PREFERENCE.name: pair_answers,
}
