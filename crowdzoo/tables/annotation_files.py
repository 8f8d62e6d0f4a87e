"""`crowdzoo.reading.tables.annotation_files` under its older name."""

from crowdzoo.reading.tables.annotation_files import write_annotations

__all__ = ["write_annotations"]
