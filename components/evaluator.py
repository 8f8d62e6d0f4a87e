"""Evaluator: measures the new model and the last pushed one on the eval split, and says which is to be served."""

import json
import os
from pathlib import Path
from typing import Any

import apache_beam as beam
import tensorflow_model_analysis as tfma
from absl import logging
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.proto import config_pb2
from tfx.v1.types import standard_artifacts
from tfx_bsl.public import tfxio

from crowdzoo.components.example_files import read_dataset_info, split_files
from crowdzoo.components.rating_evaluation import regressor_summary
from crowdzoo.components.sequence_evaluation import tagger_summary
from crowdzoo.components.serving_folder import baseline_of
from crowdzoo.components.signature import BeamComponentParameter, InputArtifact, OutputArtifact, Parameter, component
from crowdzoo.components.tfx_internals import SERVING_MODEL, mark_blessing
from crowdzoo.files.served_model import MODEL_CARD_FILE

__all__ = ["Evaluator"]

CANDIDATE, BASELINE = "candidate", "baseline"
# What a model is blessed by, for each kind of labels, and how it is written
METRICS = {"classification": "accuracy", "sequence": "f1", "regression": "r2"}
METRIC_NAMES = {"accuracy": "accuracy", "f1": "F1", "r2": "R²"}


# No `from __future__ import annotations` in files of components: TFX reads the annotations as they stand.
@component(use_beam=True)
def Evaluator(  # noqa: N802, the function's name is the component's
    examples: InputArtifact[standard_artifacts.Examples],
    model: InputArtifact[standard_artifacts.Model],
    evaluation: OutputArtifact[standard_artifacts.ModelEvaluation],
    blessing: OutputArtifact[standard_artifacts.ModelBlessing],
    settings: Parameter[str],
    code_version: Parameter[str],
    baseline: Parameter[str] = "",
    beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
) -> None:
    """Runs TensorFlow Model Analysis on both models, and blesses the new one or not.

    It is blessed if its metric (accuracy; of a tagger the spans' F1 and of a regressor R², which TensorFlow Model
    Analysis does not know, so that this component asks the exported models itself) reaches `minimum`, and falls below
    that of the last pushed model by no more than `tolerance`. The last pushed model is found in the serving folder.
    (TFX would take a Resolver node for that; open-source Kubeflow cannot run one, and with it a plain rerun would never
    come from the cache.)

    Args:
        examples: the Examples from CrowdAggregator; the split eval is used.
        model: the new model.
        evaluation: receives TFMA's result, and `evaluation.json`: `truth` (`gold` or `aggregated`), `candidate` and
            `baseline` (each with `model`, `tasks`, `accuracy`, `cross_entropy`, of a tagger `f1`, `precision`,
            `recall`, `token_accuracy` and `types`, of a regressor `r2`, `mae` and `rmse`; baseline null where nothing
            was pushed before), `metric`, `blessed` and `reason`.
        blessing: receives the verdict in TFX's form, as TFX's Pusher reads it.
        settings: JSON of `tolerance`, `minimum` and `serving`, the folder of pushed models.
        code_version: hash of the code that runs here, for TFX's cache.
        baseline: fingerprint of the last pushed model, for TFX's cache; the runner fills it in.
        beam_pipeline: runs the analysis.
    """
    del code_version, baseline
    options = json.loads(settings)
    candidate = os.path.join(model.uri, SERVING_MODEL)
    last_pushed = baseline_of(candidate, options["serving"])
    if last_pushed and not _same_task(candidate, str(last_pushed)):
        logging.warning("%s has other classes or instances than the new model and is no baseline for it.", last_pushed)
        last_pushed = None
    models = {CANDIDATE: candidate} | ({BASELINE: str(last_pushed)} if last_pushed else {})
    info = read_dataset_info(examples.uri)
    if info["task"] == "sequence":
        summary = tagger_summary(models, [split_files(examples.uri, "eval")], info)
    elif info["task"] == "regression":
        summary = regressor_summary(models, [split_files(examples.uri, "eval")], info)
    else:
        with beam_pipeline as pipeline:
            _analyse(pipeline, models, split_files(examples.uri, "eval"), info, evaluation.uri)
        summary = _summary(evaluation.uri, models, info["truth"])
    metric = METRICS[info["task"]]
    summary["metric"] = metric
    summary["blessed"], summary["reason"] = _verdict(summary, metric, options["tolerance"], options["minimum"])
    Path(evaluation.uri, "evaluation.json").write_text(json.dumps(summary, indent=2) + "\n")
    mark_blessing(blessing, model, summary["blessed"], last_pushed)


def _same_task(candidate: str, last_pushed: str) -> bool:
    """Whether two models name the same classes and take the same instances, as far as their cards say."""
    cards = []
    for folder in (candidate, last_pushed):
        path = Path(folder, MODEL_CARD_FILE)
        if not path.exists():
            return True
        cards.append(json.loads(path.read_text(encoding="utf-8")))
    return all(
        left == right
        for left, right in (
            [card["classes"] for card in cards],
            [card["signatures"]["serving_default"]["inputs"] for card in cards],
        )
    )


def _analyse(pipeline: beam.Pipeline, models: dict[str, str], files: str, info: dict[str, Any], output: str) -> None:
    config = config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                name=name,
                signature_name="serving_default",
                label_key="evaluation_label",
                prediction_key="probabilities",
                example_weight_key="evaluation_weight",
                is_baseline=name == BASELINE,
            )
            for name in models
        ],
        slicing_specs=[config_pb2.SlicingSpec()],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[
                    config_pb2.MetricConfig(class_name="ExampleCount"),
                    config_pb2.MetricConfig(class_name="WeightedExampleCount"),
                    config_pb2.MetricConfig(class_name="SparseCategoricalAccuracy"),
                    config_pb2.MetricConfig(class_name="SparseCategoricalCrossentropy"),
                ],
                model_names=list(models),
            )
        ],
    )
    shared = [
        tfma.default_eval_shared_model(eval_saved_model_path=path, model_name=name, eval_config=config)
        for name, path in models.items()
    ]
    source = tfxio.TFExampleRecord(
        file_pattern=files,
        schema=_schema(info["num_features"]),
        raw_record_column_name=tfma.ARROW_INPUT_COLUMN,
        telemetry_descriptors=["crowdzoo"],
    )
    _ = (
        pipeline
        | "ReadEval" >> source.BeamSource()
        | "Analyse"
        >> tfma.ExtractEvaluateAndWriteResults(
            eval_shared_model=shared if len(shared) > 1 else shared[0],
            eval_config=config,
            output_path=output,
            tensor_adapter_config=tfxio.TensorAdapterConfig(source.ArrowSchema(), source.TensorRepresentations()),
        )
    )


def _schema(num_features: int) -> schema_pb2.Schema:
    """Only what is read here: TFMA feeds a signature by name, so the feature is called what the model's input is."""
    kinds = {"instances": ("FLOAT", num_features), "evaluation_label": ("INT", 1), "evaluation_weight": ("FLOAT", 1)}
    features = [
        f'feature {{ name: "{name}" type: {kind} shape {{ dim {{ size: {size} }} }} presence {{ min_fraction: 1 }} }}'
        for name, (kind, size) in kinds.items()
    ]
    return text_format.Parse("\n".join(features), schema_pb2.Schema())


def _summary(output: str, models: dict[str, str], truth: str) -> dict[str, Any]:
    results = tfma.load_eval_results(output)
    summary: dict[str, Any] = {"truth": truth, CANDIDATE: None, BASELINE: None}
    for name, path in models.items():
        (metrics,) = (
            results.get_results()
            if len(models) == 1
            else [result for result in results.get_results() if result.model_location == path]
        )
        values = metrics.get_metrics_for_slice()
        summary[name] = {
            "model": path,
            "tasks": int(values["weighted_example_count"]["doubleValue"]),
            "accuracy": values["sparse_categorical_accuracy"]["doubleValue"],
            "cross_entropy": values["sparse_categorical_crossentropy"]["doubleValue"],
        }
    return summary


def _verdict(summary: dict[str, Any], metric: str, tolerance: float, minimum: float) -> tuple[bool, str]:
    value, name = summary[CANDIDATE][metric], METRIC_NAMES[metric]
    if value < minimum:
        return False, f"its {name} {value:.4f} is below the minimum {minimum:g}"
    if summary[BASELINE] is None:
        return True, "no model of the same classes and instances was pushed before it"
    last = summary[BASELINE][metric]
    version = Path(summary[BASELINE]["model"]).name
    if value < last - tolerance:
        allowed = f" by more than the tolerance {tolerance:g}" if tolerance else ""
        return False, f"its {name} {value:.4f} is below the {last:.4f} of version {version}{allowed}"
    return True, f"its {name} {value:.4f} stands up to the {last:.4f} of version {version}"
