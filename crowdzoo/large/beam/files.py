"""Files between pipelines on Beam, on any file system that Beam knows."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import numpy as np
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.large.beam.coding import decode, decode_in_place, encode

__all__ = ["Folder", "Reader", "read_value", "write_bytes", "write_value"]

MIME = "application/octet-stream"


def write_bytes(path: str, data: bytes) -> str:
    """Writes under a name of its own and renames: a worker that dies leaves no half file, and one may do it again."""
    draft = f"{path}.{uuid4().hex}"
    with FileSystems.create(draft, mime_type=MIME) as file:
        file.write(data)
    try:
        FileSystems.rename([draft], [path])
    except BeamIOError:  # HDFS renames to no name that is taken
        FileSystems.delete([path])
        FileSystems.rename([draft], [path])
    return path


def write_value(path: str, value: Any) -> str:
    """Writes what `read_value` reads; see `write_bytes`."""
    return write_bytes(path, encode(value))


def read_value(path: str) -> Any:
    """Reads what `write_value` wrote."""
    with FileSystems.open(path, mime_type=MIME) as file:
        return decode(file.read())


class Reader:
    """Reads values one after the other into the same memory: each is gone when the next is read.

    Memory that is new costs more than what is done with it.
    """

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)

    def read(self, path: str, size: int) -> Any:
        """Reads what `write_value` wrote in so many bytes."""
        if len(self.memory) < size:
            self.memory = np.empty(size, np.uint8)
        memory, done = self.memory[:size], 0
        file: Any = FileSystems.open(path, mime_type=MIME)
        with file:
            while done < size:
                count = file.readinto(memory[done:].data)
                if not count:
                    raise DataError(f"{path} ends after {done:,} bytes of {size:,}.")
                done += count
        return decode_in_place(memory)


class Folder:
    """The names of a fit's files. It goes to the workers, so it holds nothing but its path.

    A checkpoint is one file a shard of annotators, one a block if tasks have states, and a manifest, which is written
    last: without it the others count for nothing.

    Args:
        path: path of the folder.
        prefix: what the names begin with, so that several fits may share a folder; without a hyphen.
    """

    def __init__(self, path: str, prefix: str = ""):
        self.prefix = prefix
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
        """A block as `aggregate` gave it to the workers."""
        return self._name(f"block-{number:06d}.bin")

    def begin(self, key: int) -> str:
        """What the block of that key begins from."""
        return self._name(f"begin-{key:012d}.bin")

    def manifest(self, number: int) -> str:
        """Of a checkpoint."""
        return self._name(f"checkpoint-{number:06d}.manifest")

    def shard(self, number: int, shard: int) -> str:
        """A shard's parameters in a checkpoint."""
        return self._name(f"checkpoint-{number:06d}-annotators-{shard:06d}.bin")

    def tasks(self, number: int, key: int) -> str:
        """The states of a block's tasks in a checkpoint."""
        return self._name(f"checkpoint-{number:06d}-tasks-{key:012d}.bin")

    def posteriors(self, key: int) -> str:
        """What was found for a block."""
        return self._name(f"posteriors-{key:012d}.bin")

    def found(self, start: str, end: str = "") -> list[str]:
        """Paths of the files whose names start and end so, in order."""
        matched = FileSystems.match([self._name(start + "*")])[0].metadata_list
        return sorted(item.path for item in matched if item.path.endswith(end))

    def last_manifest(self) -> int:
        """Number of the last whole checkpoint; 0: there is none."""
        names = [FileSystems.split(path)[1] for path in self.found("checkpoint-", ".manifest")]
        return max((int(name.split("-")[1].split(".")[0]) for name in names), default=0)

    def clean(self, but: int | None = None) -> None:
        """Removes what a fit wrote here, half files included.

        Args:
            but: number of the checkpoint to keep; then the blocks stay too.
        """
        paths = self.found("checkpoint-")
        if but is None:
            paths += self.found("block-") + self.found("begin-") + self.found("posteriors-")
        else:
            paths = [path for path in paths if not path.startswith(self._name(f"checkpoint-{but:06d}"))]
        # the manifests first: what is left when this is cut short is then no checkpoint
        _delete([path for path in paths if path.endswith(".manifest")])
        _delete([path for path in paths if not path.endswith(".manifest")])

    def clean_posteriors(self) -> None:
        """Removes posteriors that another call may have left: all that are here will be read."""
        _delete(self.found("posteriors-"))

    def _name(self, name: str) -> str:
        return FileSystems.join(self.path, self.prefix + name)


def _delete(paths: list[str]) -> None:
    if paths:
        FileSystems.delete(paths)
