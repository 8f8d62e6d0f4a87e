"""The checkpoint of the Trainer: below the pipeline's root, on this machine or in an object store."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from crowdzoo.components.remote_files import fetch, is_remote, last_part, remote_files, remove, upload_file
from crowdzoo.training.checkpoint import Checkpoint

_BYTES = 1 << 20  # read at a time


class PipelineCheckpoint(Checkpoint):
    """A `Checkpoint` in a subfolder that is named by the training: one of other data or settings has another.

    A run with other settings thus starts from the beginning, and one that returns to the settings before goes on. In a
    store the files are copies of those in a folder of this machine; each appears complete or not at all.

    Args:
        root: folder of all checkpoints of the pipeline, a path or a URI.
        data: what is trained on; see `Checkpoint`.
        settings: see `Checkpoint`.
    """

    def __init__(self, root: str, data: Any, settings: Mapping[str, Any]):
        self._root = root.rstrip("/")
        self._uri: str | None = None
        self._copies = tempfile.TemporaryDirectory() if is_remote(root) else None
        super().__init__(root if self._copies is None else self._copies.name, data, settings)
        self._base = self.folder

    def found(self, identity: Mapping[str, Any]) -> None:
        """Goes to the training's own folder, and brings what a store has of it."""
        name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = self._base / name
        if self._copies is not None:
            self._uri = f"{self._root}/{name}"
            for file in remote_files(f"{self._uri}/*"):
                fetch(file, self.folder / last_part(file))

    def written(self, path: Path) -> None:
        """Copies a file to the store."""
        if self._uri is not None:
            upload_file(path, f"{self._uri}/{path.name}")

    def remove(self) -> None:
        """Removes the state, which nobody needs once the model has been written.

        In a store it is that of this training, on this machine that of every training of the pipeline, as one run at a
        time is at work there.
        """
        if self._copies is None:
            shutil.rmtree(self._base, ignore_errors=True)
            return
        if self._uri is not None:
            remove(sorted(remote_files(f"{self._uri}/*"), reverse=True))  # what names the training comes last
        self._copies.cleanup()

    def say(self) -> None:
        """Prints, beside Keras' epochs, where the training went on."""
        if self.resumed:
            print(f"training went on after epoch {self.resumed} of the checkpoint {self._uri or self.folder}")


def content_of(files: Sequence[str]) -> list[str]:
    """SHA-256 of the content of each file, on any file system that TensorFlow knows."""
    found = []
    for name in files:
        digest = hashlib.sha256()
        with tf.io.gfile.GFile(name, "rb") as file:
            while part := file.read(_BYTES):
                digest.update(part)
        found.append(digest.hexdigest())
    return found
