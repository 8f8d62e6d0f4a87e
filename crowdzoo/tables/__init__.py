"""The one table of annotations: read from files and arrays, checked, written."""

from crowdzoo.tables.annotations import KINDS, Annotations

__all__ = ["KINDS", "Annotations"]
