"""How well exported classifiers do, by TensorFlow Model Analysis."""

from collections.abc import Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.public import tfxio

from crowdzoo.export.predict import load_predictor
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.example_dataset import files_of, held_examples, read_batches
from crowdzoo.records.instance_features import COLUMN, instance_features, parsed_instances

_TYPES = {tf.float32: "FLOAT", tf.string: "BYTES"}
_BATCH = 1000  # most Examples that TensorFlow Model Analysis reads at a time
_HELD = 256  # most instances that are held in memory at a time, where answers are compared
_LABEL = {"evaluation_label": tf.io.FixedLenFeature([1], tf.int64)}
METRICS = ("ExampleCount", "WeightedExampleCount", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy")


def model_scores(
    models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str, pipeline: beam.Pipeline
) -> dict[str, dict[str, Any]]:
    """Accuracy and cross-entropy of classifiers, by TensorFlow Model Analysis.

    Args: see `crowdzoo.kinds.parts`.

    Returns:
        For each model `tasks`, `accuracy` and `cross_entropy`; of several also `by_task`, whether it is right.
    """
    with pipeline:
        _analyse(pipeline, models, files, info, output)
    results = tfma.load_eval_results(output).get_results()
    scores = {}
    for name, path in models.items():
        (metrics,) = results if len(models) == 1 else [one for one in results if one.model_location == path]
        values = metrics.get_metrics_for_slice()
        scores[name] = {
            "tasks": int(values["weighted_example_count"]["doubleValue"]),
            "accuracy": values["sparse_categorical_accuracy"]["doubleValue"],
            "cross_entropy": values["sparse_categorical_crossentropy"]["doubleValue"],
        }
    if len(models) > 1:
        for name, hits in _hits(models, files, info).items():
            scores[name]["by_task"] = hits
    return scores


def _hits(models: Mapping[str, str], files: str, info: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Whether each model is right on each task whose class is known, which TensorFlow Model Analysis does not tell."""
    predictors = {name: load_predictor(folder) for name, folder in models.items()}
    hits: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for batch in read_batches([files], dict(info), "eval", _HELD, others=_LABEL, evaluation_weight=1):
        known = batch["evaluation_weight"][:, 0] > 0
        if known.any():
            instances, truth = take_rows(parsed_instances(batch), known), batch["evaluation_label"][known, 0]
            for name, predict in predictors.items():
                hits[name].append(predict(instances, _HELD)["probabilities"].argmax(axis=1) == truth)
    return {name: np.concatenate(parts) for name, parts in hits.items()}


def _analyse(
    pipeline: beam.Pipeline, models: Mapping[str, str], files: str, info: Mapping[str, Any], output: str
) -> None:
    config = tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                name=name,
                signature_name="serving_default",
                label_key="evaluation_label",
                prediction_key="probabilities",
                example_weight_key="evaluation_weight",
                is_baseline=name == "baseline",
            )
            for name in models
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[
            tfma.MetricsSpec(metrics=[tfma.MetricConfig(class_name=name) for name in METRICS], model_names=list(models))
        ],
    )
    shared = [
        tfma.default_eval_shared_model(eval_saved_model_path=path, model_name=name, eval_config=config)
        for name, path in models.items()
    ]
    source = tfxio.TFExampleRecord(
        file_pattern=files,
        schema=_schema(info),
        raw_record_column_name=tfma.ARROW_INPUT_COLUMN,
        telemetry_descriptors=["crowdzoo"],
    )
    # without a number the source itself finds the batch that is fastest, however many bytes it has
    held = held_examples(files_of([files]), info["num_tasks"]["eval"], _BATCH)
    tensors = {_served(name): tensor for name, tensor in source.TensorRepresentations().items()}
    for name, tensor in tensors.items():
        tensor.dense_tensor.column_name = name
    columns = pa.schema([field.with_name(_served(field.name)) for field in source.ArrowSchema()])
    _ = (
        pipeline
        | "ReadEval" >> source.BeamSource(None if held == _BATCH else held)
        | "NameAsServed" >> beam.Map(_named_as_served)
        | "Analyse"
        >> tfma.ExtractEvaluateAndWriteResults(
            eval_shared_model=shared if len(shared) > 1 else shared[0],
            eval_config=config,
            output_path=output,
            tensor_adapter_config=tfxio.TensorAdapterConfig(columns, tensors),
        )
    )


def _served(name: str) -> str:
    """The name that a feature has as an input of the model: TFMA feeds a signature by name."""
    return name.removeprefix(COLUMN)


def _named_as_served(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, [_served(name) for name in batch.schema.names])


def _schema(info: Mapping[str, Any]) -> schema_pb2.Schema:
    """Only what is read here."""
    kinds = {name: (_TYPES[read.dtype], list(read.shape)) for name, read in instance_features(info).items()}
    kinds |= {"evaluation_label": ("INT", [1]), "evaluation_weight": ("FLOAT", [1])}
    features = []
    for name, (kind, shape) in kinds.items():
        sizes = " ".join(f"dim {{ size: {size} }}" for size in shape)
        features.append(f'feature {{ name: "{name}" type: {kind} shape {{ {sizes} }} presence {{ min_fraction: 1 }} }}')
    return text_format.Parse("\n".join(features), schema_pb2.Schema())
