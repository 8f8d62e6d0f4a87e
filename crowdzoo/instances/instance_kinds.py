"""Kinds of instances: what was labelled, and which base model takes it for which kind of label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["INSTANCE_KINDS", "SENTENCES", "TEXTS", "VECTORS", "InstanceKind"]


@dataclass(frozen=True)
class InstanceKind:
    """One kind of instance.

    Attributes:
        name: in messages.
        column: of the table of instances that holds it; None where it is all that are not named otherwise, or where
            instances are in the file of annotations.
        bases: kind of label -> name of the base model, as configurations write it.
    """

    name: str
    column: str | None
    bases: Mapping[str, str]


VECTORS = InstanceKind(
    "feature vectors", None, {"classification": "feature-classifier", "regression": "feature-regressor"}
)
TEXTS = InstanceKind("texts", "text", {"regression": "text-regressor"})
SENTENCES = InstanceKind("sentences", None, {"sequence": "sequence-tagger"})
INSTANCE_KINDS = (VECTORS, TEXTS, SENTENCES)
