"""Runs a compiled pipeline as Kubeflow does, with processes of this environment in place of containers.

What Kubeflow Pipelines' driver and launcher do for a task (backend/src/v2 of its repository: `provisionOutputs` and
`resolveInputs` of the driver, `executeV2`, `getPlaceholders`, `downloadArtifacts` and `uploadOutputArtifacts` of the
launcher), as far as pipelines without conditions, loops and caches need it: the call of the task as an ExecutorInput,
whose artifacts have no type; the artifacts that are read copied from the store to a folder; placeholders replaced in
the arguments; what was written copied to the store; metadata of artifacts through ML Metadata's values.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2


@dataclass
class Launcher:
    """Runs a pipeline once.

    Attributes:
        file: what `crowdzoo run --on kubeflow` wrote.
        folder: for the disks of the containers, one for each task.
        client: of boto3, for the store.
        arguments: parameters of the run.
        environment: variables that the cluster gives containers besides those of the spec, such as its secrets.
        artifacts: of each task that has run, by output.
        commands: of each task, in the order in which they ran.
    """

    file: Path
    folder: Path
    client: object
    arguments: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    artifacts: dict = field(default_factory=dict)
    commands: dict = field(default_factory=dict)

    def __post_init__(self):
        documents = list(yaml.safe_load_all(self.file.read_text()))
        self.spec = json_format.ParseDict(documents[0], pipeline_spec_pb2.PipelineSpec())
        self.deployment = json_format.ParseDict(
            documents[0]["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig()
        )

    def run(self):
        """Runs every task after those that it depends on."""
        waiting = dict(self.spec.root.dag.tasks)
        while waiting:
            ready = [name for name in sorted(waiting) if not {*waiting} & _needed(waiting[name])]
            assert ready, f"no task can run: {sorted(waiting)}"
            self.run_task(ready[0], waiting.pop(ready[0]))

    def run_task(self, name, task):
        """Runs one task."""
        disk = self.folder / name
        component = self.spec.components[task.component_ref.name]
        container = self.deployment.executors[component.executor_label].container
        call = pipeline_spec_pb2.ExecutorInput()
        for key, given in task.inputs.parameters.items():
            call.inputs.parameter_values[key].CopyFrom(self.parameter(given))
        for key, given in task.inputs.artifacts.items():
            source = given.task_output_artifact
            found = self.artifacts[source.producer_task][source.output_artifact_key]
            call.inputs.artifacts[key].artifacts.add().CopyFrom(found)
            self.download(found.uri, disk)
        for key, definition in component.output_definitions.artifacts.items():
            made = call.outputs.artifacts[key].artifacts.add()
            made.uri = f"{self.spec.default_pipeline_root}/{self.spec.pipeline_info.name}/run/{name}/{key}"
            made.type.CopyFrom(definition.artifact_type)
            made.metadata.CopyFrom(definition.metadata)
            _path(made.uri, disk).parent.mkdir(parents=True, exist_ok=True)
        call.outputs.output_file = str(disk / "kfp_outputs" / "output_metadata.json")
        command = [*container.command, *container.args]
        for placeholder, value in self.placeholders(call, disk).items():
            command = [part.replace(placeholder, value) for part in command]
        self.commands[name] = command
        self.execute(name, command, {each.name: each.value for each in container.env}, disk)
        output = pipeline_spec_pb2.ExecutorOutput()
        json_format.Parse(Path(call.outputs.output_file).read_text(), output)
        self.artifacts[name] = {
            key: self.publish(len(self.artifacts), key, listed.artifacts[0], output.artifacts, disk)
            for key, listed in call.outputs.artifacts.items()
        }
        shutil.rmtree(disk)  # as a container's disk: nothing but the store is left for the next task

    def parameter(self, given):
        """The value of a task's parameter."""
        if given.WhichOneof("kind") == "component_input_parameter":
            name = given.component_input_parameter
            value = self.spec.root.input_definitions.parameters[name].default_value
            return json_format.ParseDict(self.arguments[name], type(value)()) if name in self.arguments else value
        assert given.runtime_value.WhichOneof("value") == "constant", given  # the only one that Kubeflow knows
        return given.runtime_value.constant

    def placeholders(self, call, disk):
        """What the launcher replaces in command and arguments."""
        found = {"{{$}}": json_format.MessageToJson(call)}
        for side, named in (("inputs", call.inputs.artifacts), ("outputs", call.outputs.artifacts)):
            for key, listed in named.items():
                uri = listed.artifacts[0].uri
                found[f"{{{{$.{side}.artifacts['{key}'].uri}}}}"] = uri
                found[f"{{{{$.{side}.artifacts['{key}'].path}}}}"] = str(_path(uri, disk))
        return found

    def execute(self, name, command, own, disk):
        """Runs a command as in a container: an empty folder, and no variables but those of image and spec."""
        work = disk / "work"
        work.mkdir(parents=True)
        kept = ("HOME", "LANG", "TF_CPP_MIN_LOG_LEVEL", "TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS", "NUMBA_CACHE_DIR")
        environment = {key: os.environ[key] for key in kept if key in os.environ}
        environment["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"  # the image's python is this one
        environment |= self.environment | own
        done = subprocess.run(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout[-6000:]}"

    def publish(self, number, key, made, output, disk):
        """Copies an output to the store; gives what the next task is told of it."""
        if key in output and output[key].artifacts:
            said = output[key].artifacts[0]
            assert said.uri == made.uri, f"{key} was said to be at {said.uri}, not at {made.uri}"
            made.metadata.MergeFrom(said.metadata)
        folder = _path(made.uri, disk)
        bucket, prefix = _place(made.uri)
        for file in folder.rglob("*"):
            if file.is_file():
                self.client.upload_file(str(file), bucket, f"{prefix}/{file.relative_to(folder).as_posix()}")
        told = pipeline_spec_pb2.RuntimeArtifact(name=f"{number}{len(key)}", uri=made.uri)
        told.metadata.update({**json.loads(json_format.MessageToJson(made.metadata)), "display_name": key})
        return told

    def download(self, uri, disk):
        """Copies an artifact to a task's disk."""
        bucket, prefix = _place(uri)
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
        for page in pages:
            for each in page.get("Contents", []):
                path = _path(uri, disk) / each["Key"].removeprefix(f"{prefix}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                self.client.download_file(bucket, each["Key"], str(path))


def _needed(task):
    return {*task.dependent_tasks} | {
        given.task_output_artifact.producer_task for given in task.inputs.artifacts.values()
    }


def _path(uri, disk):
    """Where the launcher keeps an artifact: `/s3/bucket/...`, here below the task's own folder."""
    return disk / "s3" / uri.removeprefix("s3://")


def _place(uri):
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix
