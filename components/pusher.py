"""Pusher: TFX's own, made safe to interrupt."""

from pathlib import Path

from absl import logging

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.push_version import copy_model, push_version
from crowdzoo.components.remote_files import is_remote
from crowdzoo.components.remote_serving import push_remote_version


class PusherExecutor(tfx.PushingExecutor):
    """Pushes a blessed model by one rename, so that a server never sees half a version.

    TFX's executor copies file by file into the version's folder, where a server may find an incomplete version, also
    after a kill. See `push_version`, and of a serving folder in an object store `push_remote_version`.
    """

    def push(self, model: Path, copy: Path, serving: str) -> str:
        """See `PushingExecutor.push`."""
        copy_model(model, copy)  # before the push: once a version is visible nothing is left that can fail
        version = push_remote_version(model, serving) if is_remote(serving) else str(push_version(model, serving))
        logging.info("The served version is %s.", version)
        return version


class Pusher(tfx.Pusher):
    """TFX's Pusher with `PusherExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = tfx.ExecutorClassSpec(PusherExecutor)
