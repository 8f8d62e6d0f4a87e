"""What methods for classes, for ratings and for preferences refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crowdzoo.errors import DataError
from crowdzoo.label_kinds import CLASSIFICATION, PREFERENCE, REGRESSION, require_annotations, require_kind

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["check_classification", "check_preferences", "check_ratings"]

# methods that see of a task only how often each annotator gave each label (Dawid and Skene, 1979, count them so)
COUNTING = ("Majority vote", "Dawid-Skene", "posteriors_of")


def check_classification(annotations: Annotations, method: str) -> None:
    """Refuses annotations of another kind, without any class, or with several of one annotator for a task.

    Raises:
        DataError: another kind, no class; repeated annotations, unless the method only counts labels.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, CLASSIFICATION)
    if method not in COUNTING:
        annotations.check_no_repeats(method, unless="take method majority-vote or dawid-skene, which count them all")
    if annotations.num_classes == 0:
        raise DataError(f"{method} needs at least one class: there are no annotations and no `classes` were given.")


def check_ratings(annotations: Annotations, method: str, low: float | None, high: float | None) -> None:
    """Refuses annotations of another kind, without any rating, or with ratings outside of a scale.

    Args:
        annotations: to look at.
        method: the aggregator's title, for the message.
        low: lowest rating, or None.
        high: highest rating, or None.

    Raises:
        ConfigError: an impossible scale.
        DataError: another kind, no annotation, or a rating outside.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, REGRESSION)
    if len(annotations) == 0:
        raise DataError(f"{method} needs at least one rating: there are no annotations.")
    annotations.check_scale(low, high)


def check_preferences(annotations: Annotations, method: str) -> None:
    """Refuses annotations of another kind, or without any comparison.

    Raises:
        DataError: another kind, or no annotation.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, PREFERENCE)
    if len(annotations) == 0:
        raise DataError(f"{method} needs at least one comparison: there are no annotations.")
