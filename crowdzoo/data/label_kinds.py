"""The kinds of labels: what arrays of each kind look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, DataError, unknown


@dataclass(frozen=True)
class LabelKind:
    """Properties of one kind of labels. Ask for a property instead of comparing names.

    Labels are classes, numbers on a scale, or other values: texts and marked images.

    Attributes:
        name: name in files and configurations.
        title: what is labelled, in messages.
        result: name of the class of an aggregation's result.
        has_numbers: labels are numbers on a scale.
        values: name of the values in messages if labels are other values: "texts", "marked images".
        has_regions: these values are `MarkedImage`.
        has_positions: a task has one label per token or pixel; otherwise it has one.
        has_pixels: positions are the rows and columns of an image.
        has_several: several classes may apply to a task; an annotator's answer is a set of them.
        answers: names of the classes if the kind fixes them, in the order of their codes; an annotation then compares
            two tasks, left and right.
        label_names: usual names of the label column, in addition to those of every kind.
        sorts: sorts of questions on a labelling platform (see `Platform.questions`) that such labels answer, the
            preferred one first.
        trained: deep methods learn from such labels.
        learned_as: kind of the layers that learn from such labels, one of `LAYER_KINDS`; empty: the kind itself.
    """

    name: str
    title: str
    result: str
    has_numbers: bool = False
    values: str = ""
    has_regions: bool = False
    has_positions: bool = False
    has_pixels: bool = False
    has_several: bool = False
    answers: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ("class", "pair", "number")
    trained: bool = True
    learned_as: str = ""

    @property
    def has_classes(self) -> bool:
        """Whether labels are codes of classes."""
        return not self.has_numbers and not self.values

    @property
    def has_pairs(self) -> bool:
        """Whether an annotation compares two tasks."""
        return bool(self.answers)

    @property
    def sides(self) -> tuple[str, ...]:
        """Columns of tasks in a table: one, or left and right."""
        return ("left", "right") if self.has_pairs else ("task",)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table whose rows are annotations."""
        return (*self.sides, "annotator", "label", *("position",) * self.has_positions)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Those of these columns that hold numbers where other kinds have names."""
        return ("label",) * self.has_numbers

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Attributes of `Annotations` that this kind has and some other kinds do not."""
        there = {"classes": self.has_classes, "positions": self.has_positions, "right_ids": self.has_pairs}
        return tuple(name for name, is_there in {**there, "values": bool(self.values)}.items() if is_there)

    @property
    def has_tokens(self) -> bool:
        """Whether positions are the tokens of a sentence."""
        return self.has_positions and not self.has_pixels

    @property
    def one_class(self) -> bool:
        """Whether a task has a single class: not one per token, not several, and not a comparison of two tasks."""
        return self.has_classes and self.one_label and not self.has_several

    @property
    def one_label(self) -> bool:
        """Whether an annotation is one answer to one task: not one per token, and not a comparison of two tasks."""
        return not (self.has_positions or self.has_pairs)

    @property
    def argument(self) -> str:
        """The kind as a further argument of a call, such as ", kind='region'"; empty for the default."""
        return "" if self.one_class else f", kind={self.name!r}"

    @property
    def learned(self) -> LabelKind:
        """The kind of the labels in memory, for the layers that learn from them."""
        return LAYER_KINDS[self.learned_as or self.name]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of labels in a table: int64, or float64 for numbers."""
        return np.dtype(np.float64 if self.has_numbers else np.int64)

    @property
    def tensor_dtype(self) -> str:
        """Type of labels in a batch for Keras: "int32", or "float32" for numbers."""
        return "float32" if self.has_numbers else "int32"

    @property
    def missing(self) -> float:
        """Value of a missing label: -1, or NaN for numbers."""
        return np.nan if self.has_numbers else -1

    @property
    def axes(self) -> int:
        """Number of axes of an array with one answer per task: 1, 2 with tokens, or 3 with pixels."""
        return 1 + self.has_positions + self.has_pixels

    @property
    def shape(self) -> str:
        """The shape of such an array, for messages: "[tasks]", "[tasks, tokens]" or "[tasks, rows, columns]"."""
        return f"[{', '.join(('tasks', *self.places))}]"

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the axes of a task's labels: none, tokens, or rows and columns."""
        return ("rows", "columns") if self.has_pixels else ("tokens",) * self.has_positions

    def observed(self, labels: np.ndarray) -> np.ndarray:
        """Marks the labels that are not missing: bool, of the labels' shape."""
        return ~np.isnan(labels) if self.has_numbers else labels >= 0


CLASSIFICATION = LabelKind("classification", "classes", "Aggregation")
REGRESSION = LabelKind("regression", "ratings", "RatingAggregation", has_numbers=True, sorts=("number", "class"))
SEQUENCE = LabelKind("sequence", "sentences", "SequenceAggregation", has_positions=True, sorts=("spans",))
_WINNERS = ("winner", "preferred", "preference")
PREFERENCE = LabelKind(
    "preference",
    "preferences",
    "PreferenceAggregation",
    answers=("left", "right", "equal"),
    label_names=_WINNERS,
    sorts=("pair", "ranking", "class"),
)
_TEXTS = ("text", "output", "transcription", "transcript", "translation")
FREE_TEXT = LabelKind(
    "free-text",
    "free texts",
    "TextAggregation",
    values="texts",
    label_names=_TEXTS,
    sorts=("text", "class", "number"),
    trained=False,
)
REGION = LabelKind(
    "region",
    "regions",
    "RegionAggregation",
    values="marked images",
    has_regions=True,
    sorts=("regions",),
    learned_as="segmentation",
)
LABEL_KINDS = {kind.name: kind for kind in (CLASSIFICATION, SEQUENCE, REGRESSION, PREFERENCE, FREE_TEXT, REGION)}
# other names of a kind -> its name
_WORDS = {
    "classification": "labels ordinal",
    "regression": "scores numbers",
    "sequence": "spans tags ner",
    "preference": "pairs rankings",
    "free-text": "texts transcriptions",
    "region": "boxes masks points images",
}
OTHER_NAMES = {kind.title: kind.name for kind in LABEL_KINDS.values()} | {
    word: name for name, words in _WORDS.items() for word in words.split()
}
# How annotations of classes are understood if several may apply to a task
MULTI_LABEL = LabelKind("multi-label", "several labels", "MultiLabelAggregation", has_several=True, trained=False)
# Labels that are arrays in memory, for layers and models; no table holds them
SEGMENTATION = LabelKind("segmentation", "masks", "", has_positions=True, has_pixels=True)
LAYER_KINDS = {**LABEL_KINDS, SEGMENTATION.name: SEGMENTATION}


def label_kind(name: object, kinds: Mapping[str, LabelKind] = LABEL_KINDS) -> LabelKind:
    """Returns the kind with this name.

    Args:
        name: name of a kind.
        kinds: the known kinds; `LAYER_KINDS` for layers.

    Raises:
        ConfigError: unknown name.
    """
    if isinstance(name, str) and name in kinds:
        return kinds[name]
    raise ConfigError(unknown("kind", name, kinds, OTHER_NAMES))


def require_annotations(annotations: Any, who: str, instead: str = "") -> None:
    """Raises an error if a frame or an array is passed where `Annotations` are needed.

    Args:
        annotations: the argument to check.
        who: name of what needs annotations, for the message.
        instead: what to write for a frame before `Annotations.from_frame`, for the message.

    Raises:
        DataError: not `Annotations`.
    """
    if not isinstance(getattr(annotations, "label_kind", None), LabelKind):
        raise DataError(
            f"{who} needs Annotations, got {type(annotations).__name__}. For a frame use {instead}"
            "Annotations.from_frame(frame); for a matrix with tasks in rows, Annotations.from_dense(matrix)."
        )


def require_kind(actual: LabelKind, who: str, *kinds: LabelKind) -> None:
    """Raises an error for annotations of the wrong kind.

    Args:
        actual: kind of the annotations.
        who: name of what needs them, for the message.
        *kinds: accepted kinds.

    Raises:
        DataError: the kind is not one of `kinds`.
    """
    if actual not in kinds:
        wanted = " or ".join(repr(kind.name) for kind in kinds)
        raise DataError(f"{who} needs annotations of kind {wanted}, got kind {actual.name!r}.")
