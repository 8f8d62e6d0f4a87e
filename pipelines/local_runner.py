"""TFX's local runner, with progress and additional cache rules."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2
from tensorflow_metadata.proto.v0 import anomalies_pb2

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.artifacts import CrowdPage
from crowdzoo.components.crowd_report import NUMBERS_FILE, PAGE_FILE
from crowdzoo.components.drift_validator import ANOMALIES_FILE, fetch_baseline, statistics_digest, statistics_source
from crowdzoo.components.pusher import VETO
from crowdzoo.components.rollback import veto_of
from crowdzoo.components.serving_folder import baseline_of, fingerprint
from crowdzoo.errors import CrowdzooError, PipelineError
from crowdzoo.files.json import read_json
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.pipelines.console import Console, error_message
from crowdzoo.pipelines.run_result import RunResult

mlmd: Any = metadata_store_pb2  # generated code, opaque to type checkers


class LocalRunner(tfx.LocalDagRunner):
    """Runs components by TFX's local runner one at a time, with a line of progress for each.

    TFX's cache key has a component's inputs and parameters, but the Evaluator's verdict and the Pusher's result also
    depend on the serving folder. So the Evaluator gets the current baseline, and the Pusher a veto on the model as
    parameter; without a veto, the Pusher does not use the cache if the model it once pushed is no longer served.
    CrowdReport gets the place of the baseline's page. All of this depends on the outputs of earlier components, and
    TFX's runner has no hook at the end of a component, so components run one at a time.

    Args:
        config: the configuration of the pipeline.
        console: console for progress.
    """

    def __init__(self, config: PipelineConfig, console: Console):
        super().__init__()
        self._config = config
        self._console = console
        self._store = metadata_store.MetadataStore(tfx.sqlite_metadata_connection_config(str(config.output.metadata)))
        self._outputs: dict[str, dict[str, Any]] = {}
        self._seconds: dict[str, float] = {}
        self._cached: list[str] = []
        self._undo = ""

    def run_with_ir(self, pipeline: Any, run_options: Any = None, **kwargs: Any) -> None:
        """Runs all components of a compiled pipeline in order, until the first error."""
        for number, (name, node, single) in enumerate(tfx.single_nodes(pipeline), start=1):
            with self._console.step(number, len(pipeline.nodes), name) as step, _named(name):
                self._mind_the_serving_folder(name, node)
                before = self._newest_execution()
                super().run_with_ir(single, run_options, **kwargs)
                execution = self._newest_execution()
                if execution == before:
                    raise RuntimeError(f"{name} was not run: its inputs are missing")
                step.cached = self._keep_outputs(name, execution)
                if name == "Trainer" and not step.cached:
                    self._record_parent(node, execution)
            self._seconds[name] = step.seconds
            if step.cached:
                self._cached.append(name)

    def _mind_the_serving_folder(self, name: str, node: Any) -> None:
        serving = self._config.output.serving
        if name == "Trainer" and self._config.training.warm_start:
            self._start_from_the_served_model(node)
        elif name == "DriftValidator":
            source = statistics_digest(str(self._folder("StatisticsGen", "statistics")))
            before = fetch_baseline(str(serving), source, "")
            tfx.set_parameter(node, "baseline", statistics_source(before) if before else "")
        elif name in ("Evaluator", "CrowdReport"):
            baseline = baseline_of(self._serving_model(), serving)
            model = fingerprint(baseline) if baseline else ""
            parameters = {"Evaluator": ("baseline", model), "CrowdReport": ("before", self._numbers_of(model))}
            tfx.set_parameter(node, *parameters[name])
        elif name == "Pusher" and self._blessed():
            model, served = self._serving_model(), complete_versions(serving)
            if veto := veto_of(model, serving):
                tfx.set_parameter(node, "custom_config", str(veto))
                self._undo = veto.undo(serving)
            elif not served or fingerprint(served[-1]) != fingerprint(model):
                tfx.forbid_cache(node)

    def _numbers_of(self, model: str) -> str:
        """Path of the numbers of the newest page about a model, by its fingerprint; "" if missing."""
        pages = self._store.get_artifacts_by_type(CrowdPage.TYPE_NAME) if model else []
        places = [
            Path(page.uri, NUMBERS_FILE)
            for page in sorted(pages, key=lambda page: page.id)
            if page.custom_properties["model"].string_value == model and page.state == mlmd.Artifact.LIVE
        ]
        return next((str(place) for place in reversed(places) if place.exists()), "")

    def _start_from_the_served_model(self, node: Any) -> None:
        """Sets the training of the served model as the Trainer's start.

        An existing training of the same data and settings keeps its start. Otherwise the model that it pushed, which is
        now served, would become the start of the next run, and no run would use the cache.
        """
        settings = json.loads(tfx.parameter(node, "custom_config"))
        examples = self._outputs["CrowdAggregator"]["aggregated_examples"].id
        start = self._start_of_the_same(settings, examples)
        if start is None:
            runs = self._config.output.root / "artifacts" / "Trainer"
            start = _training_of(complete_versions(self._config.output.serving)[-1:], runs)
        tfx.set_parameter(node, "custom_config", json.dumps({**settings, "warm_start": start}))

    def _record_parent(self, node: Any, execution: int) -> None:
        """Records the training from whose weights this one started as its input in ML Metadata."""
        start = json.loads(tfx.parameter(node, "custom_config")).get("warm_start")
        for artifact in self._store.get_artifacts_by_uri(start) if start else ():
            steps = [mlmd.Event.Path.Step(key="warm_start"), mlmd.Event.Path.Step(index=0)]
            event = mlmd.Event(artifact_id=artifact.id, execution_id=execution, type=mlmd.Event.INPUT)
            event.path.steps.extend(steps)
            self._store.put_events([event])

    def _start_of_the_same(self, settings: dict[str, Any], examples: int) -> str | None:
        """The start of a complete training of the same Examples and settings; None if missing."""
        for execution in reversed(self._store.get_executions()):
            properties = {**execution.properties, **execution.custom_properties}.get("custom_config")
            if properties is None or execution.last_known_state not in (mlmd.Execution.COMPLETE, mlmd.Execution.CACHED):
                continue
            config = json.loads(properties.string_value)
            inputs = {
                event.artifact_id
                for event in self._store.get_events_by_execution_ids([execution.id])
                if event.type == mlmd.Event.INPUT
            }
            if examples in inputs and "warm_start" in config and {**config, "warm_start": ""} == settings:
                start: str = config["warm_start"]
                return start
        return None

    def _newest_execution(self) -> int:
        """The highest number of an execution; 0 without any. No other run uses the folder."""
        options = metadata_store.ListOptions(limit=1, order_by=metadata_store.OrderByField.ID, is_asc=False)
        return max((execution.id for execution in self._store.get_executions(options)), default=0)

    def _keep_outputs(self, name: str, number: int) -> bool:
        """Stores the outputs of a component's execution; returns whether they came from the cache."""
        (execution,) = self._store.get_executions_by_id([number])
        if execution.last_known_state not in (mlmd.Execution.COMPLETE, mlmd.Execution.CACHED):
            raise RuntimeError(f"{name} ended as {mlmd.Execution.State.Name(execution.last_known_state)}")
        events = self._store.get_events_by_execution_ids([number])
        outputs = {event.artifact_id: event.path.steps[0].key for event in events if event.type == mlmd.Event.OUTPUT}
        self._outputs[name] = {outputs[artifact.id]: artifact for artifact in self._store.get_artifacts_by_id(outputs)}
        return execution.last_known_state == mlmd.Execution.CACHED

    def _folder(self, component: str, output: str) -> Path:
        return Path(self._outputs[component][output].uri)

    def _serving_model(self) -> Path:
        return self._folder("Trainer", "model") / tfx.SERVING_MODEL

    def _blessed(self) -> bool:
        return self._verdict["blessed"].int_value == 1

    @property
    def _verdict(self) -> Any:
        """Custom properties of the last blessing, which the Pusher gets."""
        last = "CrowdReport" if "CrowdReport" in self._outputs else "Evaluator"
        return self._outputs[last]["blessing"].custom_properties

    def result(self, total_seconds: float) -> RunResult:
        """Collects the result of the run, after its end."""
        evaluation = json.loads((self._folder("Evaluator", "evaluation") / "evaluation.json").read_text())
        properties = self._outputs["Pusher"]["pushed_model"].custom_properties
        pushed = Path(properties["pushed_destination"].string_value) if properties["pushed"].int_value else None
        reason = _reason(evaluation, self._verdict["reason"].string_value, properties[VETO].string_value, self._undo)
        of_data = _anomalies(self._folder("ExampleValidator", "anomalies"))
        drift = read_json(self._folder("DriftValidator", "drift") / ANOMALIES_FILE)["anomalies"]
        times: Any = {"seconds": dict(self._seconds), "cached": tuple(self._cached), "total_seconds": total_seconds}
        output = self._config.output
        return RunResult(
            pushed=pushed,
            reason=reason,
            blessed=self._blessed(),
            evaluation=evaluation,
            anomalies=(*of_data, *drift),
            model=self._folder("Trainer", "model"),
            model_run=self._folder("Trainer", "model_run"),
            report=self._folder("CrowdAggregator", "report"),
            page=self._folder("CrowdReport", "page") / PAGE_FILE if "CrowdReport" in self._outputs else None,
            annotations=self._folder("AnnotationExampleGen", "annotations"),
            serving=output.serving,
            metadata=output.metadata,
            log=self._console.log,
            **times,
        )


def _training_of(versions: Sequence[Path], runs: Path) -> str:
    """The `model_run` of the training of a served version; "" if it is not among these runs."""
    for version in versions:
        wanted = fingerprint(version)
        for model in sorted((runs / "model").glob("*"), key=lambda path: path.name.zfill(20), reverse=True):
            if (model / tfx.SERVING_MODEL).is_dir() and fingerprint(model / tfx.SERVING_MODEL) == wanted:
                return str(runs / "model_run" / model.name)
    return ""


@contextlib.contextmanager
def _named(component: str) -> Iterator[None]:
    """Prefixes internal errors with a component's name."""
    try:
        yield
    except CrowdzooError:
        raise
    except Exception as error:
        raise PipelineError(f"{component} failed: {error_message(error)}") from error


def _reason(evaluation: Mapping[str, Any], condition: str, veto: str, undo: str) -> str:
    """Why the model was pushed or not: the Evaluator's reason, a condition of the page, or a veto."""
    if veto:
        return f"{veto}. To push it again, change data or settings, or use {undo}"
    reasons = [evaluation["reason"]] if not (condition and evaluation["blessed"]) else []
    return "; ".join([*reasons, *([condition.rstrip(".")] if condition else [])])


def _anomalies(folder: Path) -> tuple[str, ...]:
    lines = []
    for path in sorted(folder.glob("Split-*/SchemaDiff.pb")):
        anomalies = anomalies_pb2.Anomalies.FromString(path.read_bytes())
        for feature, info in sorted(anomalies.anomaly_info.items()):
            lines.append(f"{path.parent.name.removeprefix('Split-')}, {feature}: {info.description}")
    return tuple(lines)
