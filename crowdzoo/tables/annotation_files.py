"""`crowdzoo.reading.tables.annotation_files` under its older name."""

from crowdzoo.reading.tables.annotation_files import *  # noqa: F403
