"""Files between pipelines on Beam, on any file system that Beam knows."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.coding import decode_in_place
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.large.beam.coding import Starts, decode, encode
from crowdzoo.large.forms import BlockPosteriors

MIME = "application/octet-stream"
STARTS = "checkpoint-", "block-", "posteriors-"


def write_value(path: str, value: Any) -> str:
    """Writes under a name of its own and renames: a worker that dies leaves no half file, and one may do it again."""
    draft = f"{path}.{uuid4().hex}"
    with FileSystems.create(draft, mime_type=MIME) as file:
        file.write(value if isinstance(value, bytes) else encode(value))
    try:
        FileSystems.rename([draft], [path])
    except BeamIOError:  # HDFS renames to no name that is taken
        FileSystems.delete([path])
        FileSystems.rename([draft], [path])
    return path


def read_value(path: str) -> Any:
    """Reads what `write_value` wrote."""
    with FileSystems.open(path, mime_type=MIME) as file:
        return decode(file.read())


def read_block(path: str) -> Any:
    """Reads a block; where its file is at hand, maps it: new memory would cost more than what is done with it."""
    return decode_in_place(_mapped(Path(path))) if os.path.isfile(path) else read_value(path)


def _mapped(path: Path) -> NDArray[np.uint8]:
    """A file's bytes, mapped; what is written to them would stay in this process (kernels are compiled for that)."""
    with open(path, "rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)


class Folder:
    """The names of a fit's files. It goes to the workers, so it holds nothing but its path.

    A checkpoint is a manifest. Number 0 is what a fit begins from, with one file per block where there are posteriors
    to begin from; the manifest is written last, and without it they count for nothing.

    Args:
        path: path of the folder.
    """

    def __init__(self, path: str):
        self.path = path.rstrip("/") or "/"  # Beam finds nothing behind two in a row

    def make(self) -> None:
        """Makes the folder if it is not there.

        Raises:
            ConfigError: Beam would take its name for a pattern, and so not find what is in it.
        """
        if set("*?[") & set(self.path):
            raise ConfigError(f"folder must have none of *, ? and [ in its name, got {self.path!r}.")
        if not FileSystems.exists(self.path):
            FileSystems.mkdirs(self.path)

    def block(self, number: int) -> str:
        """A block; its number, or its first task."""
        return FileSystems.join(self.path, f"block-{number:012d}.bin")

    def manifest(self, number: int) -> str:
        """Of a checkpoint."""
        return FileSystems.join(self.path, f"checkpoint-{number:06d}.manifest")

    def given(self, block: str) -> str:
        """Posteriors that the tasks of the block of that path begin from."""
        return FileSystems.join(self.path, f"checkpoint-{0:06d}-given-{FileSystems.split(block)[1]}")

    def posteriors(self, block: str) -> str:
        """What was found for a block."""
        return FileSystems.join(self.path, f"posteriors-{FileSystems.split(block)[1]}")

    def found(self, start: str, end: str = ".bin") -> list[str]:
        """Paths of the files whose names start and end so, in order."""
        matched = FileSystems.match([FileSystems.join(self.path, start + "*")])[0].metadata_list
        return sorted(item.path for item in matched if item.path.endswith(end))

    def last(self) -> int:
        """Number of the last whole checkpoint; -1 without any."""
        return max((int(path[-15:-9]) for path in self.found("checkpoint-", ".manifest")), default=-1)

    def clean(self, *starts: str, but: int | None = None) -> None:
        """Removes files whose names start so (default: all), half ones too, but for a checkpoint of that number."""
        kept = None if but is None else self.manifest(but).removesuffix(".manifest")
        paths = [path for start in starts or STARTS for path in self.found(start, "")]
        for manifests in (True, False):  # first: what is left when this is cut short is then no checkpoint
            some = [path for path in paths if path.endswith(".manifest") == manifests]
            if some := [path for path in some if kept is None or not path.startswith(kept)]:
                FileSystems.delete(some)

    # === What workers read and write ===

    def write_block(self, block: Any) -> str:
        """Writes a block under its first task, which no other block has."""
        return write_value(self.block(int(block.tasks[0]) if len(block.tasks) else -1), block)

    def write_manifest(self, state: Starts, number: int, identity: str) -> str:
        """Writes a checkpoint."""
        return write_value(self.manifest(number), (identity, state))

    def write_posteriors(self, keyed: tuple[str, BlockPosteriors]) -> str:
        """Writes what was found for a block."""
        return write_value(self.posteriors(keyed[0]), keyed[1])

    def read_posteriors(self, num_tasks: int, num_columns: int) -> BlockPosteriors:
        """Of all tasks, from all files."""
        posteriors = np.empty((num_tasks, num_columns))
        labels = np.full(num_tasks, -1, np.int64)
        for path in self.found("posteriors-"):
            found = read_value(path)
            posteriors[found.tasks], labels[found.tasks] = found.posteriors, found.labels
        if (labels < 0).any():
            raise DataError(f"{(labels < 0).sum():,} of {num_tasks:,} tasks came back without posteriors.")
        return BlockPosteriors(np.arange(num_tasks), posteriors, labels)
