"""All names of TFX that crowdzoo uses; other files import them only from here.

Names without a comment above them are also in the public `tfx.v1`. They are imported from their original modules,
because importing `tfx.v1` also loads the client of Vertex AI, which is not needed and takes two fifths of the start-up
time. The others are not public; the comment says why they are needed. A new version of TFX may move both.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tfx.components.example_validator.component import ExampleValidator

# for the Pusher's executor: the model to push, its blessing, and properties of the result
from tfx.components.pusher import executor as pusher_executor
from tfx.components.pusher.component import Pusher
from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen

# for the Trainer's executor: arguments of `run_fn` from inputs and parameters
from tfx.components.trainer import executor as trainer_executor
from tfx.components.trainer.component import Trainer as TfxTrainer
from tfx.components.trainer.fn_args_utils import FnArgs

# for the Transform's executor: imports the user's file
from tfx.components.transform import executor as transform_executor
from tfx.components.transform.component import Transform as TfxTransform

# name of the run's number in a compiled pipeline, which all components share
from tfx.dsl.compiler.constants import PIPELINE_RUN_ID_PARAMETER_NAME
from tfx.dsl.component.experimental import annotations as markers
from tfx.dsl.component.experimental.decorators import component

# the only way to replace a component's executor
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec, ExecutorClassSpec
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline

# sets the run's number before the pipeline is cut into components, see `single_nodes`
from tfx.orchestration.portable.runtime_parameter_utils import substitute_runtime_parameter
from tfx.proto import pusher_pb2, trainer_pb2
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

# TFX has no types: for type checkers, the markers of a component's arguments are their contents
if TYPE_CHECKING:
    from typing import Annotated, TypeVar

    T = TypeVar("T")
    InputArtifact = Annotated[T, "input"]
    OutputArtifact = Annotated[T, "output"]
    Parameter = Annotated[T, "parameter"]
    BeamComponentParameter = Annotated[T | Any, "pipeline"]
else:
    BeamComponentParameter = markers.BeamComponentParameter
    InputArtifact = markers.InputArtifact
    OutputArtifact = markers.OutputArtifact
    Parameter = markers.Parameter

# A pipeline that TFX has compiled, and one component of it: messages of `tfx.proto.orchestration.pipeline_pb2`
CompiledPipeline: TypeAlias = Any
CompiledNode: TypeAlias = Any
Artifacts: TypeAlias = dict[str, list[Artifact]]  # inputs or outputs of a component, by name
_pushing: Any = pusher_pb2  # generated code, opaque to type checkers
_training: Any = trainer_pb2
PushDestination = _pushing.PushDestination
EvalArgs, TrainArgs = _training.EvalArgs, _training.TrainArgs

SERVING_MODEL = "Format-Serving"  # subfolder of a Model artifact with the SavedModel
DRIFT = "drift"  # subfolder of a ModelBlessing with DriftValidator's data for the next run
EVALUATED = "evaluated"  # custom property of a ModelBlessing with the Evaluator's figures, JSON


class _WithModulesBeside(BaseExecutor):
    """An executor of a user's file that may import modules from its folder."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """See the method of TFX's executor."""
        file = exec_properties.get("module_file")
        folders = [str(Path(file).parent)] if file else []
        sys.path[:0] = folders
        try:
            super().Do(input_dict, output_dict, exec_properties)  # type: ignore[safe-super]  # TFX's executor's own
        finally:
            for folder in folders:
                sys.path.remove(folder)


class TrainingExecutor(_WithModulesBeside, trainer_executor.GenericExecutor):
    """TFX's executor of the Trainer; `custom_config` gets the folder of the Examples artifact as `examples`."""

    def _GetFnArgs(  # noqa: N802, TFX's name
        self, input_dict: dict[str, Any], output_dict: dict[str, Any], exec_properties: dict[str, Any]
    ) -> Any:
        fn_args = super()._GetFnArgs(input_dict, output_dict, exec_properties)
        (examples,) = input_dict["examples"]
        fn_args.custom_config["examples"] = examples.uri
        return fn_args


class Trainer(TfxTrainer):
    """TFX's Trainer with `TrainingExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = ExecutorClassSpec(TrainingExecutor)


class TransformingExecutor(_WithModulesBeside, transform_executor.Executor):
    """TFX's executor of the Transform; a user's file may import modules from its folder."""


class Transform(TfxTransform):
    """TFX's Transform with `TransformingExecutor`; the same inputs, outputs and arguments."""

    EXECUTOR_SPEC = BeamExecutorSpec(TransformingExecutor)


def import_in_place(component: TfxTrainer | TfxTransform) -> None:
    """Makes a component import its `module_file` in place.

    Otherwise TFX builds a wheel and installs it with pip, which environments made by uv do not have.
    """
    component._pip_dependencies.clear()


def with_computed_defaults(component: Any, **parameters: Callable[[Mapping[str, Any]], str]) -> Any:
    """Makes a component with defaults that are computed when it is created, so that TFX's cache includes them.

    Args:
        component: component made by the decorator `component`.
        **parameters: name -> function of the other arguments that computes the default.
    """

    def initialise(self: Any, *args: Any, **values: Any) -> None:
        for name, compute in parameters.items():
            if values.get(name) is None:
                values[name] = compute(values)
        component.__init__(self, *args, **values)

    return type(
        component.__name__,
        (component,),
        {"__init__": initialise, "__module__": component.__module__, "__doc__": component.__doc__},
    )


def mark_blessing(blessing: Artifact, model: Artifact | None, blessed: bool, baseline: str | None) -> None:
    """Writes a verdict for TFX's Pusher as TFX's Evaluator does: an empty file and custom properties.

    Args:
        blessing: the artifact that receives it.
        model: the Model artifact; None if the verdict is not about a model.
        blessed: the verdict.
        baseline: the model that it was compared with, or None.
    """
    Path(blessing.uri).mkdir(parents=True, exist_ok=True)
    Path(blessing.uri, "BLESSED" if blessed else "NOT_BLESSED").touch()
    blessing.set_int_custom_property("blessed", int(blessed))
    if model is not None:
        blessing.set_string_custom_property("current_model", model.uri)
        blessing.set_int_custom_property("current_model_id", model.id)
    if baseline:
        blessing.set_string_custom_property("baseline_model", baseline)


def single_nodes(pipeline: CompiledPipeline) -> Iterator[tuple[str, CompiledNode, CompiledPipeline]]:
    """Splits a compiled pipeline into pipelines of one component each, which are parts of one run.

    Args:
        pipeline: argument of `run_with_ir` of TFX's runners; the run's number is set in it.

    Yields:
        The component's name, its node (which may be changed before the pipeline runs), and the pipeline.
    """
    substitute_runtime_parameter(pipeline, {PIPELINE_RUN_ID_PARAMETER_NAME: datetime.datetime.now().isoformat()})
    single = type(pipeline)()
    single.CopyFrom(pipeline)
    for node in pipeline.nodes:
        del single.nodes[:]
        single.nodes.add().CopyFrom(node)
        pipeline_node = single.nodes[0].pipeline_node
        yield pipeline_node.node_info.id, pipeline_node, single


def parameter(node: CompiledNode, name: str) -> str:
    """A parameter of a component that is about to run."""
    value: str = node.parameters.parameters[name].field_value.string_value
    return value


def set_parameter(node: CompiledNode, name: str, value: str) -> None:
    """Sets a parameter of a component that is about to run; it is part of the cache key."""
    node.parameters.parameters[name].field_value.string_value = value


def forbid_cache(node: CompiledNode) -> None:
    """Makes a component run without the cache."""
    node.execution_options.caching_options.enable_cache = False


def kubeflow_job(pipeline: Pipeline, image: str, command: list[str]) -> dict[str, Any]:
    """Compiles a pipeline by TFX's runner for Kubeflow.

    Args:
        pipeline: pipeline of components with executor classes.
        image: image of all containers.
        command: command of the containers; TFX's arguments are appended.

    Returns:
        The PipelineJob as protobuf JSON; its `pipelineSpec` has version 2.1.
    """
    # imported here, because it takes seconds that a local run does not need
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image=image, default_commands=command, use_pipeline_spec_2_1=True
    )
    return kubeflow_v2_dag_runner.KubeflowV2DagRunner(config).run(pipeline, write_out=False)


def kubeflow_resources(
    cpu: tuple[float | None, float | None], memory_gb: tuple[float | None, float | None], gpus: int, gpu_type: str
) -> Any:
    """Resource requests and limits of a component's container, in the form of TFX's runner for Kubeflow.

    Args:
        cpu: requested number of cores, and the limit; if one is None, the other is used for both.
        memory_gb: the same for memory, in GB.
        gpus: number of GPUs.
        gpu_type: the cluster's name of the GPU type.
    """
    from kfp.pipeline_spec import pipeline_spec_pb2

    container: Any = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec
    resources = container.ResourceSpec()
    for name, (request, limit) in {"cpu": cpu, "memory": memory_gb}.items():
        if request or limit:
            setattr(resources, f"{name}_request", request or limit)
            setattr(resources, f"{name}_limit", limit or request)
    if gpus:
        resources.accelerator.type, resources.accelerator.count = gpu_type, gpus
    return resources


def run_kubeflow_executor(executor: str, call: str, inputs: str, beam_arguments: list[str]) -> None:
    """Runs a component as TFX's entry point on Kubeflow does.

    Args:
        executor: dotted name of the executor's class.
        call: JSON of the ExecutorInput.
        inputs: JSON of the component's input definitions.
        beam_arguments: options for Beam.
    """
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    arguments = argparse.Namespace(
        executor_class_path=executor, json_serialized_invocation_args=call, json_serialized_inputs_spec_args=inputs
    )
    kubeflow_v2_run_executor.main((arguments, beam_arguments))
