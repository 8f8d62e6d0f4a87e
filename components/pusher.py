"""Pusher: TFX's Pusher, made safe to interrupt."""

import json
import os
from pathlib import Path
from typing import Any

from absl import logging
from google.protobuf import json_format

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.remote_files import is_remote
from crowdzoo.components.remote_serving import push_remote_version
from crowdzoo.components.rollback import veto_of
from crowdzoo.components.serving_folder import copy_model, fingerprint, push_version
from crowdzoo.files.json import FORMAT_VERSION
from crowdzoo.files.served_model import BLESSING_FILE, DRIFT_FOLDER
from crowdzoo.files.writing import write_json

VETO = "veto"  # custom property of a PushedModel: why it was not pushed after `crowdzoo rollback` took it back


class PusherExecutor(tfx.pusher_executor.Executor):
    """Pushes a blessed model by one rename, so that a server never sees an incomplete version.

    TFX's executor copies file by file into the version's folder, where a server may find an incomplete version, in
    particular after an interruption. If crowdzoo's Evaluator blessed the model, the pushed version has the Evaluator's
    figures as `assets.extra/blessing.json`, and DriftValidator's data for the next run as `assets.extra/drift`. A model
    that `crowdzoo rollback` took back is not pushed (see `veto_of`). See `push_version`, and for a serving folder in an
    object store `push_remote_version`, which does not support vetoes.
    """

    def Do(  # noqa: N802, TFX's name
        self, input_dict: tfx.Artifacts, output_dict: tfx.Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Pushes the model if it is blessed; inputs and outputs are those of TFX's Pusher."""
        self._log_startup(input_dict, output_dict, exec_properties)
        (pushed,) = output_dict["pushed_model"]
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        destination = json_format.Parse(exec_properties["push_destination"], tfx.PushDestination())
        serving = destination.filesystem.base_directory
        model = Path(self.GetModelPath(input_dict))
        if not is_remote(serving) and (veto := veto_of(model, serving)):
            self._MarkNotPushed(pushed)
            pushed.set_string_custom_property(VETO, str(veto))
            return
        copy_model(model, pushed.uri)  # before the push: once a version is visible, nothing can fail any more
        (blessing,) = input_dict["model_blessing"]
        if figures := blessing.get_string_custom_property(tfx.EVALUATED):
            evaluation = {"model": fingerprint(model), **json.loads(figures), "format_version": FORMAT_VERSION}
            write_json(Path(pushed.uri, BLESSING_FILE), evaluation)
            if os.path.isdir(statistics := os.path.join(blessing.uri, tfx.DRIFT)):
                copy_model(statistics, os.path.join(pushed.uri, DRIFT_FOLDER))
            model = Path(pushed.uri)
        version = push_remote_version(model, serving) if is_remote(serving) else str(push_version(model, serving))
        logging.info("The served version is %s.", version)
        self._MarkPushed(pushed, pushed_destination=version, pushed_version=Path(version).name)


class Pusher(tfx.Pusher):
    """TFX's Pusher with `PusherExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = tfx.ExecutorClassSpec(PusherExecutor)
