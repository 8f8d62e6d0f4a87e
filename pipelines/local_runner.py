"""The loop over components, with progress and with the cache rules that TFX does not have."""

import contextlib
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.compiler import constants
from tfx.orchestration import metadata
from tfx.orchestration.local import local_dag_runner, runner_utils
from tfx.orchestration.portable import launcher, runtime_parameter_utils

from crowdzoo.components.serving_folder import baseline_of, fingerprint
from crowdzoo.errors import CrowdzooError, PipelineError
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.pipelines.config import PipelineConfig
from crowdzoo.pipelines.console import Console
from crowdzoo.pipelines.error_message import error_message
from crowdzoo.pipelines.run_result import RunResult

__all__ = ["LocalRunner"]

mlmd: Any = metadata_store_pb2  # generated code, which type checkers cannot see into


class LocalRunner(local_dag_runner.LocalDagRunner):
    """TFX's local runner with a line per component, and with an eye on the serving folder.

    TFX's cache knows a component's inputs and parameters, but the Evaluator's verdict and the Pusher's result also
    depend on what is in the serving folder. So the Evaluator is told which model is the baseline now, and the Pusher
    is not taken from the cache when the model it once pushed is no longer the one served.

    Args:
        config: the configuration that the pipeline was made from.
        console: where progress goes.
    """

    def __init__(self, config: PipelineConfig, console: Console):
        super().__init__()
        self._config = config
        self._console = console
        self._connection: Any = None
        self._outputs: dict[str, dict[str, Any]] = {}
        self._seconds: dict[str, float] = {}
        self._cached: list[str] = []

    def run_with_ir(
        self,
        pipeline: Any,
        run_options: Any = None,
        **kwargs: Any,
    ) -> None:
        """Runs every component of a compiled pipeline in order; the first error ends it."""
        runtime_parameter_utils.substitute_runtime_parameter(
            pipeline, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: datetime.datetime.now().isoformat()}
        )
        deployment = runner_utils.extract_local_deployment_config(pipeline)
        which = deployment.metadata_connection_config.WhichOneof("connection_config")
        self._connection = getattr(deployment.metadata_connection_config, which)
        for number, wrapped in enumerate(pipeline.nodes, start=1):
            node = wrapped.pipeline_node
            name = node.node_info.id
            with self._console.step(number, len(pipeline.nodes), name) as step, _named(name):
                self._mind_the_serving_folder(node)
                info = launcher.Launcher(
                    pipeline_node=node,
                    mlmd_connection=metadata.Metadata(self._connection),
                    pipeline_info=pipeline.pipeline_info,
                    pipeline_runtime_spec=pipeline.runtime_spec,
                    executor_spec=runner_utils.extract_executor_spec(deployment, name),
                    custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, name),
                ).launch()
                if info is None or info.execution_id is None:
                    raise RuntimeError(f"{name} was not run: what it reads is missing")
                step.cached = self._look_up(name, info.execution_id)
            self._seconds[name] = step.seconds
            if step.cached:
                self._cached.append(name)

    def _mind_the_serving_folder(self, node: Any) -> None:
        serving = self._config.output.serving
        if node.node_info.id == "Evaluator":
            baseline = baseline_of(self._serving_model(), serving)
            parameter = node.parameters.parameters["baseline"].field_value
            parameter.string_value = fingerprint(baseline) if baseline else ""
        elif node.node_info.id == "Pusher" and self._blessed():
            served = complete_versions(serving)
            if not served or fingerprint(served[-1]) != fingerprint(self._serving_model()):
                node.execution_options.caching_options.enable_cache = False

    def _look_up(self, name: str, execution_id: int) -> bool:
        """Keeps a component's outputs; returns whether they came from the cache."""
        with metadata.Metadata(self._connection) as handle:
            (execution,) = handle.store.get_executions_by_id([execution_id])
            events = [
                event
                for event in handle.store.get_events_by_execution_ids([execution_id])
                if event.type == mlmd.Event.OUTPUT
            ]
            artifacts = {a.id: a for a in handle.store.get_artifacts_by_id([event.artifact_id for event in events])}
        if execution.last_known_state not in (mlmd.Execution.COMPLETE, mlmd.Execution.CACHED):
            raise RuntimeError(f"{name} ended as {mlmd.Execution.State.Name(execution.last_known_state)}")
        self._outputs[name] = {event.path.steps[0].key: artifacts[event.artifact_id] for event in events}
        return execution.last_known_state == mlmd.Execution.CACHED

    def _folder(self, component: str, output: str) -> Path:
        return Path(self._outputs[component][output].uri)

    def _serving_model(self) -> Path:
        return self._folder("Trainer", "model") / "Format-Serving"

    def _blessed(self) -> bool:
        return self._outputs["Evaluator"]["blessing"].custom_properties["blessed"].int_value == 1

    def result(self, total_seconds: float) -> RunResult:
        """Gathers what the run came to; to be called after it."""
        evaluation = json.loads((self._folder("Evaluator", "evaluation") / "evaluation.json").read_text())
        properties = self._outputs["Pusher"]["pushed_model"].custom_properties
        pushed = Path(properties["pushed_destination"].string_value) if properties["pushed"].int_value else None
        return RunResult(
            pushed=pushed,
            reason=evaluation["reason"],
            blessed=self._blessed(),
            evaluation=evaluation,
            seconds=dict(self._seconds),
            cached=tuple(self._cached),
            total_seconds=total_seconds,
            anomalies=_anomalies(self._folder("ExampleValidator", "anomalies")),
            model=self._folder("Trainer", "model"),
            model_run=self._folder("Trainer", "model_run"),
            report=self._folder("CrowdAggregator", "report"),
            annotations=self._folder("AnnotationExampleGen", "annotations"),
            serving=self._config.output.serving,
            metadata=self._config.output.root / "metadata.sqlite",
            log=self._console.log,
        )


@contextlib.contextmanager
def _named(component: str) -> Iterator[None]:
    """Puts a component's name before an error that is not the user's to mend."""
    try:
        yield
    except CrowdzooError:
        raise
    except Exception as error:
        raise PipelineError(f"{component} failed: {error_message(error)}") from error


def _anomalies(folder: Path) -> tuple[str, ...]:
    found = []
    for path in sorted(folder.glob("Split-*/SchemaDiff.pb")):
        anomalies = anomalies_pb2.Anomalies.FromString(path.read_bytes())
        for feature, info in sorted(anomalies.anomaly_info.items()):
            found.append(f"{path.parent.name.removeprefix('Split-')}, {feature}: {info.description}")
    return tuple(found)
