"""Entry point of a component's container on Kubeflow: `python -m crowdzoo.pipelines.kubeflow_step`.

Kubeflow's launcher copies input artifacts from the object store to its disk, and outputs from its disk to the store.
TFX's entry point does not know about this: it passes URIs to components, which only some parts of TFX can read, and
rejects artifacts without a type, which open-source Kubeflow omits. This entry point passes paths to TFX's entry point
instead, fills in the types, and restores the URIs in TFX's description of the outputs.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from crowdzoo import __version__
from crowdzoo.components.code_version import code_version
from crowdzoo.components.tfx_internals import run_kubeflow_executor
from crowdzoo.errors import CrowdzooError, settings_as
from crowdzoo.pipelines.config.sections import as_key

# All modules that a container runs: their hash is compared between compilation and image
STEP_CODE = ("crowdzoo.pipelines.pipeline", "crowdzoo.pipelines.kubeflow_step")


def main(arguments: Sequence[str]) -> int:
    """Runs a component.

    Args:
        arguments: arguments of TFX's entry point; for each artifact `--local_path inputs.NAME=PATH` (or `outputs.`);
            for each parameter of the run `--setting NAME=PARAMETER.KEY`, the place of its value in the JSON of a
            parameter of the component; and `--compiled_from`, the hash of the code from which the pipeline was
            compiled.

    Returns:
        The process' exit code.
    """
    parser = argparse.ArgumentParser(prog="kubeflow_step", allow_abbrev=False)
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", required=True)
    parser.add_argument("--local_path", action="append", default=[])
    parser.add_argument("--setting", action="append", default=[])
    parser.add_argument("--compiled_from", required=True)
    known, beam_arguments = parser.parse_known_args(arguments)
    if known.compiled_from != code_version(*STEP_CODE):
        print(
            f"PipelineError: the image's crowdzoo {__version__} is not the code that the pipeline was compiled from, "
            "whose settings and components may differ. Build the image from the commit that you compile with, or "
            "compile the pipeline again in the image.",
            file=sys.stderr,
        )
        return 1
    call = json.loads(known.json_serialized_invocation_args)
    inputs = json.loads(known.json_serialized_inputs_spec_args)
    uris = _with_paths(call, inputs, dict(pair.split("=", 1) for pair in known.local_path))
    _with_settings(call, dict(pair.split("=", 1) for pair in known.setting))
    try:
        with settings_as(as_key):
            run_kubeflow_executor(known.executor_class_path, json.dumps(call), json.dumps(inputs), beam_arguments)
    except CrowdzooError as error:  # a message for users
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    _put_back(call["outputs"]["outputFile"], uris)
    return 0


def _artifacts(call: Mapping[str, Any], side: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, listed in call.get(side, {}).get("artifacts", {}).items():
        for artifact in listed.get("artifacts", []):
            yield name, artifact


def _with_paths(call: dict[str, Any], inputs: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, str]:
    """Replaces URIs by paths, and adds missing types; returns the URIs of outputs by their paths."""
    for name, artifact in _artifacts(call, "inputs"):
        artifact.setdefault("type", inputs["artifacts"][name]["artifactType"])
        artifact["uri"] = paths.get(f"inputs.{name}", artifact["uri"])
    uris = {}
    for name, artifact in _artifacts(call, "outputs"):
        path = paths.get(f"outputs.{name}", artifact["uri"])
        uris[path], artifact["uri"] = artifact["uri"], path
        os.makedirs(path, exist_ok=True)
    return uris


def _with_settings(call: dict[str, Any], settings: Mapping[str, str]) -> None:
    """Moves parameters of the run into the JSON of the component's own parameters."""
    values = call.get("inputs", {}).get("parameterValues", {})
    for name, place in settings.items():
        if name not in values:
            continue
        value = values.pop(name)
        parameter, *keys, last = place.split(".")
        content = json.loads(values[parameter])
        inside = content
        for key in keys:
            inside = inside[key]
        inside[last] = type(inside[last])(value)  # all JSON numbers are floats here
        values[parameter] = json.dumps(content, sort_keys=True)


def _put_back(file: str, uris: Mapping[str, str]) -> None:
    """Restores URIs in the output of TFX's entry point, on this machine or, on Vertex AI, in its store."""
    with tf.io.gfile.GFile(file) as written:
        output = json.loads(written.read())
    for listed in output.get("artifacts", {}).values():
        for artifact in listed.get("artifacts", []):
            artifact["uri"] = uris.get(artifact["uri"], artifact["uri"])
    with tf.io.gfile.GFile(file, "w") as written:
        written.write(json.dumps(output))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
