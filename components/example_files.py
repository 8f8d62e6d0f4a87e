"""`crowdzoo.records.example_files` under its older name."""

from crowdzoo.records.example_files import (
    SPLITS,
    prepare_examples,
    read_dataset_info,
    rewrite_examples,
    split_by_hash,
    split_files,
    task_and_example,
    write_dataset_info,
    write_examples,
)

__all__ = [
    "SPLITS",
    "prepare_examples",
    "read_dataset_info",
    "rewrite_examples",
    "split_by_hash",
    "split_files",
    "task_and_example",
    "write_dataset_info",
    "write_examples",
]
