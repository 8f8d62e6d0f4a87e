"""StoredBlocks: a folder of annotations as blocks, each mapped into memory when it is looked at."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.coding import decode_in_place
from crowdzoo.errors import DataError

FORMAT = 1
SUMMARY = "blocks.json"
TASKS = "tasks.parquet"  # with a row group for each block
_SIZES = ("num_tasks", "num_annotations", "num_rejected")


def block_name(number: int) -> str:
    """Name of a block's file."""
    return f"block-{number:06d}.bin"


@dataclass(frozen=True, eq=False, repr=False)
class StoredBlocks(Sequence[Block]):
    """Annotations of classes as blocks in a folder; `write_blocks` makes it.

    A sequence of `Block`: each is mapped from its file when it is asked for, so its pages are the system's to drop. The
    files are those that `crowdzoo.large.beam` reads, too (`crowdzoo.large.beam.stored_blocks`).

    Attributes:
        folder: path of the folder.
        annotators: names, [R].
        classes: names, [K].
        annotations_per_annotator: int64 [R].
        num_tasks: N, tasks without annotations included.
        num_annotations: A.
        num_rejected: number of rows that were left out when the annotations were read.
        repeats: whether an annotator may have labelled a task more than once.
        first_tasks: code of the first task of each block, ascending from 0.
    """

    folder: Path
    annotators: NDArray[Any]
    classes: NDArray[Any]
    annotations_per_annotator: NDArray[np.int64]
    num_tasks: int
    num_annotations: int
    num_rejected: int
    repeats: bool
    first_tasks: tuple[int, ...]

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> StoredBlocks:
        """Opens a folder that `write_blocks` made.

        Raises:
            DataError: it is not such a folder, or one of a later release.
        """
        from crowdzoo.files.json import check_format, read_json

        folder = Path(folder)
        if not (folder / SUMMARY).is_file():
            raise DataError(f"{folder} is not a folder of blocks: it has no {SUMMARY}. Make it with write_blocks.")
        found = read_json(folder / SUMMARY)
        if not isinstance(found, dict):
            raise DataError(f"{folder / SUMMARY} is damaged (it holds no object). Make the blocks again.")
        check_format(found.get("format_version", 0), folder / SUMMARY, FORMAT)
        try:
            counts = np.asarray(found["annotations_per_annotator"], np.int64)
            annotators, classes = (_names(found[name]) for name in ("annotators", "classes"))
            sizes = {name: int(found[name]) for name in _SIZES}
            first, repeats = tuple(map(int, found["first_tasks"])), bool(found["repeats"])
            edges = [*first, sizes["num_tasks"]]
            if edges[0] != 0 or any(begin >= end for begin, end in pairwise(edges)):
                raise ValueError("first_tasks do not ascend from 0 to num_tasks")
            if min([0, *counts.tolist(), *sizes.values()]) < 0 or not len(classes):
                raise ValueError("a number is negative, or there are no classes")
            if counts.shape != annotators.shape or int(counts.sum()) != sizes["num_annotations"]:
                raise ValueError("numbers of annotations do not fit the annotators")
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{folder / SUMMARY} is damaged ({error}). Make the blocks again.") from None
        files = (TASKS, *map(block_name, range(len(first))))
        missing = next((name for name in files if not (folder / name).is_file()), None)
        if missing is not None:
            raise DataError(f"{folder}: {missing} is missing. Make the blocks again, or copy the whole folder.")
        return cls(folder, annotators, classes, counts, **sizes, repeats=repeats, first_tasks=first)

    def summary(self) -> dict[str, Any]:
        """What `open` reads."""
        return {
            "format_version": FORMAT,
            **{name: getattr(self, name) for name in _SIZES},
            "first_tasks": list(self.first_tasks),
            "repeats": self.repeats,
            "classes": self.classes.tolist(),
            "annotators": self.annotators.tolist(),
            "annotations_per_annotator": self.annotations_per_annotator.tolist(),
        }

    def __repr__(self) -> str:
        return (
            f"<StoredBlocks: {self.num_annotations:,} annotations, {self.num_tasks:,} tasks, "
            f"{self.num_annotators:,} annotators, {self.num_classes:,} classes, {len(self):,} blocks>"
        )

    @property
    def num_annotators(self) -> int:
        """R."""
        return len(self.annotators)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    def path(self, place: int) -> Path:
        """The file of a block."""
        return self.folder / block_name(place)

    def __len__(self) -> int:
        return len(self.first_tasks)

    @overload
    def __getitem__(self, place: int) -> Block: ...

    @overload
    def __getitem__(self, place: slice) -> list[Block]: ...

    def __getitem__(self, place: int | slice) -> Block | list[Block]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        path = self.path(place)
        try:
            block = decode_in_place(mapped(path))
        except DataError as error:
            raise DataError(f"{path}: {error} Make the blocks again.") from None
        begin, end = (*self.first_tasks, self.num_tasks)[place : place + 2]
        if not (isinstance(block, Block) and _is_sound(block, begin, end)):
            raise DataError(f"{path} does not hold the block that belongs there. Make the blocks again.")
        block.check_codes(self.num_annotators, self.num_classes)
        return block

    def ahead(self, places: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Walks through some blocks; the system is asked to read each while the one before it is worked on.

        Yields:
            Place and block.
        """
        for number, place in enumerate(places):
            if number + 1 < len(places):
                _read_ahead(self.path(places[number + 1]))
            yield place, self[place]

    def task_names(self) -> Iterator[NDArray[Any]]:
        """Names of the tasks, those of a block at a time."""
        from crowdzoo.files.arrow import one_array, open_parquet, parquet_errors

        path = self.folder / TASKS
        with open_parquet(path) as file, parquet_errors(path):
            edges = [*self.first_tasks, self.num_tasks]
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            if sizes != [end - begin for begin, end in pairwise(edges)] or file.schema_arrow.names != ["task"]:
                raise DataError(f"{path} does not belong to these blocks. Make the blocks again.")
            for number in range(len(self)):
                yield one_array(file.read_row_group(number).column("task")).to_numpy(zero_copy_only=False)


def _names(values: list[Any]) -> NDArray[Any]:
    return np.asarray(values, np.int64 if values and all(type(value) is int for value in values) else object)


def _is_sound(block: Block, begin: int, end: int) -> bool:
    """Whether kernels may trust a block, which has the tasks from `begin` to `end`."""
    starts, annotators, labels = block.starts, block.annotator_ids, block.labels
    types = (starts, np.int64), (annotators, np.int32), (block.tasks, np.int64)
    if not all(isinstance(each, np.ndarray) and each.ndim == 1 and each.dtype == kind for each, kind in types):
        return False
    if not (isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype in (np.uint8, np.int32)):
        return False
    return (
        block.gold is None
        and np.array_equal(block.tasks, np.arange(begin, end))
        and len(starts) == end - begin + 1
        and len(annotators) == len(labels) == starts[-1]
        and starts[0] == 0
        and bool((starts[1:] >= starts[:-1]).all())
        and int(annotators.min(initial=0)) >= 0
        and int(labels.min(initial=0)) >= 0
    )


def mapped(path: Path) -> NDArray[np.uint8]:
    """A file's bytes, mapped; what is written to them would stay in this process (kernels are compiled for that)."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise DataError(f"{path} is empty. Make the blocks again.")
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), np.uint8)


def _read_ahead(path: Path) -> None:
    if hasattr(os, "posix_fadvise"):  # not on macOS
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
