"""Instances: what was labelled, as feature vectors or texts."""

from crowdzoo.instances.instances import (
    Instances,
    holds_texts,
    read_gold,
    read_gold_ratings,
    read_instances,
    read_text_columns,
)

__all__ = ["Instances", "holds_texts", "read_gold", "read_gold_ratings", "read_instances", "read_text_columns"]
