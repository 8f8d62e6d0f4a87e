"""Files between pipelines on Beam, on any file system that Beam supports."""

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
    """Writes to a temporary name and renames, so that dying workers leave no partial files, and retries work."""
    draft = f"{path}.{uuid4().hex}"
    with FileSystems.create(draft, mime_type=MIME) as file:
        file.write(value if isinstance(value, bytes) else encode(value))
    try:
        FileSystems.rename([draft], [path])
    except BeamIOError:  # HDFS does not rename to an existing name
        FileSystems.delete([path])
        FileSystems.rename([draft], [path])
    return path


def read_value(path: str) -> Any:
    """Reads what `write_value` wrote."""
    with FileSystems.open(path, mime_type=MIME) as file:
        return decode(file.read())


def read_block(path: str) -> Any:
    """Reads a block; maps it if the file is local, as allocating memory would cost more than processing it."""
    return decode_in_place(_mapped(Path(path))) if os.path.isfile(path) else read_value(path)


def _mapped(path: Path) -> NDArray[np.uint8]:
    """Maps the bytes of a file; changes to them are not written to the file (kernels need writeable memory)."""
    with open(path, "rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)


class Folder:
    """File names of a fit. It is sent to the workers, so it contains only its path.

    A checkpoint is a manifest. Number 0 is the starting point of a fit, with one file per block if there are first
    posteriors; the manifest is written last, and the files are ignored without it.

    Args:
        path: path of the folder.
    """

    def __init__(self, path: str):
        self.path = path.rstrip("/") or "/"  # Beam finds nothing after two in a row

    def make(self) -> None:
        """Creates the folder if it does not exist.

        Raises:
            ConfigError: Beam would interpret its name as a pattern, and not find its files.
        """
        if set("*?[") & set(self.path):
            raise ConfigError(f"folder must not have *, ? or [ in its name, got {self.path!r}.")
        if not FileSystems.exists(self.path):
            FileSystems.mkdirs(self.path)

    def block(self, number: int) -> str:
        """Path of a block, by its number or its first task."""
        return FileSystems.join(self.path, f"block-{number:012d}.bin")

    def manifest(self, number: int) -> str:
        """Path of the manifest of a checkpoint."""
        return FileSystems.join(self.path, f"checkpoint-{number:06d}.manifest")

    def given(self, block: str) -> str:
        """Path of the first posteriors of a block's tasks, by the path of the block."""
        return FileSystems.join(self.path, f"checkpoint-{0:06d}-given-{FileSystems.split(block)[1]}")

    def posteriors(self, block: str) -> str:
        """Path of the results for a block."""
        return FileSystems.join(self.path, f"posteriors-{FileSystems.split(block)[1]}")

    def found(self, start: str, end: str = ".bin") -> list[str]:
        """Paths of the files with this prefix and suffix, in order."""
        matched = FileSystems.match([FileSystems.join(self.path, start + "*")])[0].metadata_list
        return sorted(item.path for item in matched if item.path.endswith(end))

    def last(self) -> int:
        """Number of the last complete checkpoint; -1 without one."""
        return max((int(path[-15:-9]) for path in self.found("checkpoint-", ".manifest")), default=-1)

    def clean(self, *starts: str, but: int | None = None) -> None:
        """Removes files with these prefixes (default: all), also partial ones, except for the checkpoint `but`."""
        kept = None if but is None else self.manifest(but).removesuffix(".manifest")
        paths = [path for start in starts or STARTS for path in self.found(start, "")]
        for manifests in (True, False):  # manifests first: if interrupted, no checkpoint remains
            some = [path for path in paths if path.endswith(".manifest") == manifests]
            if some := [path for path in some if kept is None or not path.startswith(kept)]:
                FileSystems.delete(some)

    # === What workers read and write ===

    def write_block(self, block: Any) -> str:
        """Writes a block under its first task, which is unique."""
        return write_value(self.block(int(block.tasks[0]) if len(block.tasks) else -1), block)

    def write_manifest(self, state: Starts, number: int, identity: str) -> str:
        """Writes a checkpoint."""
        return write_value(self.manifest(number), (identity, state))

    def write_posteriors(self, keyed: tuple[str, BlockPosteriors]) -> str:
        """Writes the results for a block."""
        return write_value(self.posteriors(keyed[0]), keyed[1])

    def read_posteriors(self, num_tasks: int, num_columns: int) -> BlockPosteriors:
        """Reads the results for all tasks from all files."""
        posteriors = np.empty((num_tasks, num_columns))
        labels = np.full(num_tasks, -1, np.int64)
        for path in self.found("posteriors-"):
            found = read_value(path)
            posteriors[found.tasks], labels[found.tasks] = found.posteriors, found.labels
        if (labels < 0).any():
            raise DataError(f"{(labels < 0).sum():,} of {num_tasks:,} tasks have no posteriors.")
        return BlockPosteriors(np.arange(num_tasks), posteriors, labels)
