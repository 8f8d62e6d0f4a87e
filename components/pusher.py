"""Pusher: TFX's own, made safe to interrupt."""

from pathlib import Path
from typing import Any

from absl import logging
from google.protobuf import json_format
from tfx import v1 as tfx
from tfx.components.pusher import executor
from tfx.dsl.components.base import executor_spec
from tfx.types import artifact_utils

from crowdzoo.components.push_version import copy_model, push_version

__all__ = ["Pusher", "PusherExecutor"]


class PusherExecutor(executor.Executor):
    """Pushes a blessed model by one rename, so that a server never sees half a version.

    TFX's executor copies file by file into the version's folder; whoever follows that folder, and whoever finds it
    after a kill, has an incomplete version. See `push_version`.
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
        copy_model(model, pushed.uri)  # before the push: once a version is visible nothing is left that can fail
        version = push_version(model, destination.filesystem.base_directory)
        self._MarkPushed(pushed, pushed_destination=str(version), pushed_version=version.name)
        logging.info("The served version is %s.", version)


class Pusher(tfx.components.Pusher):
    """TFX's Pusher with `PusherExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(PusherExecutor)
