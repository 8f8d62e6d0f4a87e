"""Kinds of labels: one object for each, with everything that belongs to it (see `crowdzoo.kinds.base`)."""

from crowdzoo.kinds.base import Kind
from crowdzoo.kinds.kind import KINDS, kind_of
from crowdzoo.kinds.training_set import TrainingSet

__all__ = ["KINDS", "Kind", "TrainingSet", "kind_of"]
