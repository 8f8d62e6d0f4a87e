"""Checkpoints: what workers read and write between two pipelines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from crowdzoo.errors import DataError
from crowdzoo.large.beam.files import Folder, read_value, write_value
from crowdzoo.large.beam.items import key_of
from crowdzoo.large.beam.runs import without_rows
from crowdzoo.large.beam.values import BlockPosteriors, Item, ShardRows, State, StoredBlock
from crowdzoo.large.forms.base import Found

__all__ = [
    "read_posteriors",
    "read_shard",
    "stored_item",
    "with_state",
    "write_manifest",
    "write_posteriors",
    "write_shard",
    "write_state",
]


def stored_item(place: tuple[str, int, int], folder: Folder, first: bool) -> Item:
    """A block that `aggregate` wrote, by path, size and key; with what it begins from, or without."""
    stored = StoredBlock(*place)
    if not first:
        return Item(stored)
    state, given = read_value(folder.begin(stored.key))
    return Item(stored, None, state, given)


def with_state(item: Item, folder: Folder, number: int) -> Item:
    """An item with its tasks' states as of a checkpoint."""
    return replace(item, state=read_value(folder.tasks(number, key_of(item.block))))


def read_shard(shard: int, folder: Folder, number: int) -> tuple[int, ShardRows]:
    """A shard's parameters as of a checkpoint."""
    return shard, read_value(folder.shard(number, shard))


def write_shard(keyed: tuple[int, ShardRows], folder: Folder, number: int) -> str:
    """Writes a shard's part of a checkpoint."""
    return write_value(folder.shard(number, keyed[0]), keyed[1])


def write_state(item: Item, folder: Folder, number: int) -> str:
    """Writes the states of a block's tasks."""
    return write_value(folder.tasks(number, key_of(item.block)), item.state)


def write_manifest(state: State, path: str, identity: str, *written: Iterable[str]) -> str:
    """Writes what makes a checkpoint whole, once all that was `written` is there."""
    for paths in written:
        for _ in paths:  # they are there once they can be listed
            pass
    return write_value(path, (identity, without_rows(state)))


def write_posteriors(found: BlockPosteriors, folder: Folder) -> str:
    """Writes what was found for a block."""
    if not len(found.tasks):
        return ""
    return write_value(folder.posteriors(int(found.tasks[0])), found)


def read_posteriors(folder: Folder, num_tasks: int, num_columns: int) -> Found:
    """Of all tasks, from all files; of sentences a token is a task."""
    posteriors, states = np.empty((num_tasks, num_columns)), np.empty(num_tasks)
    labels = np.full(num_tasks, -1, np.int64)
    log_likelihood = 0.0
    for path in folder.found("posteriors-", ".bin"):
        found = read_value(path)
        posteriors[found.tasks] = found.posteriors
        labels[found.tasks] = found.labels
        log_likelihood += found.log_likelihood
        if found.state is not None:
            states[found.tasks] = found.state
    if (labels < 0).any():
        raise DataError(f"{(labels < 0).sum():,} of {num_tasks:,} tasks came back without posteriors.")
    return Found(posteriors, labels, states, log_likelihood)
