"""The definition of the pipeline, which every runner runs or compiles."""

import json
from pathlib import Path
from typing import Any

from crowdzoo import datasets
from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.annotation_example_gen import AnnotationExampleGen
from crowdzoo.components.code_version import code_version
from crowdzoo.components.crowd_aggregator import CrowdAggregator
from crowdzoo.components.crowd_report import CrowdReport
from crowdzoo.components.drift_validator import DriftValidator
from crowdzoo.components.evaluator import Evaluator
from crowdzoo.components.input_files import content_hashes
from crowdzoo.components.pusher import Pusher
from crowdzoo.pipelines.config.pipeline_config import PipelineConfig
from crowdzoo.plugins import Table
from crowdzoo.reading.platforms.export import PLATFORMS
from crowdzoo.training.bases import is_own, source_hash

# Settings of AnnotationExampleGen in addition to options of the kind's reader
_READING = ("instance_columns", "outside_images", "eval_fraction")
# Settings of Evaluator in addition to the minimum, which depends on the kind
_EVALUATION = {"tolerance", "undecided", "compare", "annotation_tolerance", "new_signatures"}


def create_pipeline(config: PipelineConfig, *, kubeflow: bool = False) -> tfx.Pipeline:
    """Creates the pipeline from a configuration.

    The parameters of each component decide whether it runs again: the content of the input files (not their dates), the
    settings that the component uses, and a hash of its code. So a run with other epochs starts at the Trainer, and an
    unchanged rerun does nothing. On Kubeflow every component runs each time: the contents of files and of the serving
    folder are unknown when the pipeline is compiled, and Kubeflow's cache ignores them.

    Args:
        config: result of `load_config`.
        kubeflow: whether to compile for Kubeflow, from a configuration loaded for it.

    Returns:
        The pipeline, with SQLite metadata below `config.output.root`; for Kubeflow without metadata and local paths.
    """
    files = _places(config) if kubeflow else _input_files(config)
    hashes = "" if kubeflow else _json(**content_hashes(files, config.data.instance_layout, config.model.inputs))
    serving = str(config.kubeflow.serving if kubeflow else config.output.serving)
    root = str(config.kubeflow.pipeline_root if kubeflow else config.output.root / "artifacts")
    checkpoint = f"{root}/checkpoint/{config.name}" if kubeflow else str(config.output.root / "checkpoint")
    metadata = None if kubeflow else tfx.sqlite_metadata_connection_config(str(config.output.metadata))
    data = config.data.model_dump(mode="json", include={*config.label_kind.options.reading, *_READING})
    example_gen = AnnotationExampleGen(
        settings=_json(
            kind=config.kind,
            instance_kind=config.instances.name,
            inputs=config.model.inputs or {},
            **{**data, **{key: None if path is None else str(path) for key, path in files.items()}},
            **({"dataset": config.data.dataset} if kubeflow else {}),
            **_versions(PLATFORMS, config.data.platform),
        ),
        fingerprint=hashes,
    )
    statistics_gen = tfx.StatisticsGen(examples=example_gen.outputs["examples"])
    annotations, statistics = example_gen.outputs["annotations"], statistics_gen.outputs["statistics"]
    schema_gen = tfx.SchemaGen(statistics=statistics, infer_feature_shape=True)
    schema = schema_gen.outputs["schema"]
    example_validator = tfx.ExampleValidator(statistics=statistics, schema=schema)
    drift_settings = _json(serving=serving, **config.drift.model_dump())
    drift_validator = DriftValidator(
        statistics=statistics, schema=schema, annotations=annotations, settings=drift_settings
    )
    drift_validator.add_upstream_node(example_validator)
    aggregation = {"method": config.aggregation.method, "arguments": config.aggregation.arguments, "seed": config.seed}
    aggregation |= _versions(config.label_kind.aggregation.methods(), config.aggregation.method)
    aggregator = CrowdAggregator(
        examples=example_gen.outputs["examples"], annotations=annotations, settings=_json(**aggregation)
    )
    aggregator.add_upstream_node(drift_validator)
    examples = aggregator.outputs["aggregated_examples"]
    trainer = tfx.Trainer(
        run_fn="crowdzoo.components.trainer.run_fn",
        examples=examples,
        schema=schema,
        train_args=tfx.TrainArgs(splits=["train"]),
        eval_args=tfx.EvalArgs(splits=["eval"]),
        custom_config={
            "name": config.name,
            "seed": config.seed,
            "model": config.base_arguments,
            "method": config.method.model_dump(mode="json"),
            "training": config.training_arguments,
            "files": content_hashes(config.model_files),
            **({"source": source_hash(config.base)} if is_own(config.base) else {}),
            **_versions(config.label_kind.training.methods(), config.method.name),
            "code_version": code_version("crowdzoo.components.trainer"),
            **({"checkpoint": checkpoint} if config.training.checkpoint else {}),
            **({"warm_start": ""} if config.training.warm_start else {}),  # set by the runner
        },
    )
    model = trainer.outputs["model"]
    evaluator = Evaluator(
        examples=examples,
        model=model,
        settings=_json(**config.evaluation.model_dump(include=_EVALUATION), minimum=config.minimum, serving=serving),
        drift=drift_validator.outputs["drift"],
        **({"baseline": ""} if kubeflow else {}),
    )
    components = [example_gen, statistics_gen, schema_gen, example_validator, drift_validator, aggregator, trainer]
    components.append(evaluator)
    if config.has_page:
        report = CrowdReport(
            examples=examples,
            annotations=annotations,
            model=model,
            model_run=trainer.outputs["model_run"],
            evaluated=evaluator.outputs["blessing"],
            settings=_json(title=config.name, fail_if=config.report.fail_if, **aggregation),
        )
        components.append(report)
    destination = tfx.PushDestination(filesystem=tfx.PushDestination.Filesystem(base_directory=serving))
    blessing = components[-1].outputs["blessing"]
    components.append(Pusher(model=model, model_blessing=blessing, push_destination=destination))
    for component in (statistics_gen, aggregator):
        component.executor_spec.add_beam_pipeline_args(config.beam.arguments(component.id))
    return tfx.Pipeline(
        pipeline_name=config.name,
        pipeline_root=root,
        metadata_connection_config=metadata,
        components=components,
        enable_cache=not kubeflow,
        # with any Beam argument, TFX builds a source distribution of itself for each component, unless an image is
        # named
        beam_pipeline_args=["--sdk_container_image=local"],
    )


def _input_files(config: PipelineConfig) -> dict[str, Path | str | None]:
    """Files by their keys in the section data; a shipped data set is first written below the root."""
    keys = config.label_kind.options.inputs
    if config.data.dataset is not None:
        folder = config.output.root / "data" / config.data.dataset
        written = datasets.write_files(datasets.load(config.data.dataset), folder)
        return dict.fromkeys(keys) | dict(zip(keys, written, strict=False))
    return _places(config)


def _places(config: PipelineConfig) -> dict[str, Path | str | None]:
    """Paths and URIs of the files by their keys in the section data."""
    return {key: getattr(config.data, key) for key in config.label_kind.options.inputs}


def _versions(table: Table, *names: str | None) -> dict[str, Any]:
    """Versions of methods that packages add, for TFX's cache; empty for crowdzoo's own."""
    versions = [version for name in names if name and (version := table.version(name))]
    return {"packages": versions} if versions else {}


def _json(**values: Any) -> str:
    return json.dumps(values, sort_keys=True)
