"""`crowdzoo.records.example_files` under its older name."""

from crowdzoo.records.example_files import *  # noqa: F403
