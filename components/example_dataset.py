"""`crowdzoo.records.example_dataset` under its older name."""

from crowdzoo.records.example_dataset import *  # noqa: F403
