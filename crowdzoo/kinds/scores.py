"""What measures the models of a kind of label."""

from collections.abc import Callable
from typing import Any

from crowdzoo.data.label_kinds import CLASSIFICATION, PREFERENCE, REGRESSION, SEQUENCE
from crowdzoo.kinds.classes.scores import class_scores
from crowdzoo.kinds.preferences.scores import pair_scores
from crowdzoo.kinds.ratings.scores import rating_scores
from crowdzoo.kinds.sentences.scores import sentence_scores

__all__ = ["SCORES"]

# Kind of label -> what measures models
SCORES: dict[str, Callable[..., dict[str, dict[str, Any]]]] = {
    CLASSIFICATION.name: class_scores,
    REGRESSION.name: rating_scores,
    SEQUENCE.name: sentence_scores,
    PREFERENCE.name: pair_scores,
}
