"""Pusher: TFX's own, made safe to interrupt."""

import shutil
import time
from pathlib import Path
from typing import Any

from absl import logging
from google.protobuf import json_format
from tfx import v1 as tfx
from tfx.components.pusher import executor
from tfx.dsl.components.base import executor_spec
from tfx.types import artifact_utils

from crowdzoo.components.serving_folder import fingerprint, versions

__all__ = ["Pusher", "PusherExecutor"]

_HIDDEN = ".pushing"


class PusherExecutor(executor.Executor):
    """Pushes a blessed model by one rename, so that a server never sees half a version.

    TFX's executor copies file by file into the version's folder; whoever follows that folder, and whoever finds it
    after a kill, has an incomplete version. Here the copy is made in a hidden folder beside it. A model that is the
    newest version already is not copied again: that happens after a kill between the push and its book-keeping.
    """

    def Do(  # noqa: N802, TFX's name
        self, input_dict: dict[str, Any], output_dict: dict[str, Any], exec_properties: dict[str, Any]
    ) -> None:
        """Pushes the model where it is blessed; inputs and outputs are those of TFX's Pusher."""
        self._log_startup(input_dict, output_dict, exec_properties)
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        destination = json_format.Parse(exec_properties["push_destination"], tfx.proto.PushDestination())
        model = Path(self.GetModelPath(input_dict))
        version = _push(model, Path(destination.filesystem.base_directory))
        shutil.copytree(model, pushed.uri, dirs_exist_ok=True)
        self._MarkPushed(pushed, pushed_destination=str(version), pushed_version=version.name)
        logging.info("The served version is %s.", version)


def _push(model: Path, folder: Path) -> Path:
    there = versions(folder)
    if there and fingerprint(there[-1]) == fingerprint(model):
        return there[-1]
    taken = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
    # a clock that went back must not make the new model an old version
    version = folder / str(max([int(time.time()), *(number + 1 for number in taken)]))
    hidden = folder / _HIDDEN
    shutil.rmtree(hidden, ignore_errors=True)
    shutil.copytree(model, hidden)
    hidden.rename(version)
    return version


class Pusher(tfx.components.Pusher):
    """TFX's Pusher with `PusherExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(PusherExecutor)
