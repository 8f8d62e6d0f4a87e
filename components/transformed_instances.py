"""`crowdzoo.records.transformed_instances` under its older name."""

from crowdzoo.records.transformed_instances import TransformedInstances

__all__ = ["TransformedInstances"]
