"""`crowdzoo.records.example_dataset` under its older name."""

from crowdzoo.records.example_dataset import SAID, ExampleDataset, files_of, held_examples, read_batches, said_of

__all__ = ["SAID", "ExampleDataset", "files_of", "held_examples", "read_batches", "said_of"]
