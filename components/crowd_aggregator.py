"""CrowdAggregator: adds to every Example what the annotators together say, and reports on the annotators."""

import io
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import tensorflow as tf
from tfx.v1.types import standard_artifacts

from crowdzoo.aggregation import Aggregation, create
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.beam import aggregate, runs_on_beam
from crowdzoo.components.annotation_example_gen import ANNOTATIONS_FILE, TASKS_FILE
from crowdzoo.components.artifacts import AnnotationsArtifact, AnnotatorReport
from crowdzoo.components.example_files import (
    SPLITS,
    WriteExamples,
    prepare_examples,
    read_dataset_info,
    split_files,
    write_dataset_info,
)
from crowdzoo.components.sequence_examples import with_answers
from crowdzoo.components.signature import BeamComponentParameter, InputArtifact, OutputArtifact, Parameter, component
from crowdzoo.errors import ConfigError
from crowdzoo.files.arrow import read_parquet
from crowdzoo.sequences import CrowdSequences
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.vocabulary import is_among, name_texts

__all__ = ["CrowdAggregator"]


# No `from __future__ import annotations` in files of components: TFX reads the annotations as they stand.
@component(use_beam=True)
def CrowdAggregator(  # noqa: N802, the function's name is the component's
    examples: InputArtifact[standard_artifacts.Examples],
    annotations: InputArtifact[AnnotationsArtifact],
    aggregated_examples: OutputArtifact[standard_artifacts.Examples],
    report: OutputArtifact[AnnotatorReport],
    settings: Parameter[str],
    code_version: Parameter[str],
    beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
) -> None:
    """Fits an aggregation method to the train split alone, and applies it to both splits.

    Methods that have a form on Beam (`crowdzoo.beam`) run there, the others in this process. Tasks of eval
    get the posteriors that follow from what train taught about the annotators. Where a method has no model of what
    annotators say (nothing was fitted, or no confusion matrices: majority vote, GLAD, BWA, ...), it is run on eval's
    own annotations instead; train never learns from them. A task without annotations has the class prior.

    Each Example gains `posterior` (float, [K]), `aggregated_label` (int64), `evaluation_label` (int64) and
    `evaluation_weight` (float). The evaluation label is gold where any task of eval has gold; tasks without gold
    then weigh 0. Where there is no gold at all it is the aggregated label, and tasks without annotations weigh 0.

    Ratings have no `posterior`, and labels in float: `aggregated_label` is the method's estimate, each split by its own
    ratings. A task without ratings has the mean of train's estimates.

    Args:
        examples: splits train and eval from AnnotationExampleGen.
        annotations: the annotations with their vocabularies.
        aggregated_examples: receives the same splits with more features, and `dataset.json` with the keys `truth`
            (what evaluation compares with, `gold` or `aggregated`) and `aggregation` added.
        report: receives `annotators.parquet`, `annotators.csv`, `tasks.parquet` (train tasks) and `summary.json`.
        settings: JSON of `method` (a name in `METHODS`, for sentences `SEQUENCE_METHODS`, for ratings
            `RATING_METHODS`), its `arguments`, and `seed`.
        code_version: hash of the code that runs here, for TFX's cache.
        beam_pipeline: runs the aggregation.
    """
    del code_version
    options = json.loads(settings)
    info = read_dataset_info(examples.uri)
    method = create(options["method"], kind=info["task"], **_arguments(options, info["task"]))
    truth = "gold" if info["num_gold"]["eval"] else "aggregated"
    prepare_examples(aggregated_examples)
    write_dataset_info(
        aggregated_examples.uri,
        {**info, "truth": truth, "aggregation": {"method": options["method"], **options["arguments"]}},
    )
    if info["task"] == "sequence":
        uris = (annotations.uri, examples.uri, aggregated_examples.uri, report.uri)
        _aggregate_sequences(method, *uris, truth, beam_pipeline)
        return
    if info["task"] == "regression":
        uris = (annotations.uri, examples.uri, aggregated_examples.uri, report.uri)
        _aggregate_ratings(method, *uris, truth, beam_pipeline)
        return
    work = os.path.join(report.uri, ".work")
    crowds = {split: _annotations(annotations.uri, split) for split in SPLITS}
    fitted = _fit(method, crowds["train"], os.path.join(work, "checkpoints"), beam_pipeline)
    rows = {
        "train": _write_rows(work, "train", fitted.tasks, fitted.posteriors, fitted.labels),
        "eval": _write_rows(work, "eval", *_apply(method, fitted, crowds["eval"])),
    }
    prior = fitted.class_prior
    unknown = np.full(len(fitted.classes), 1 / len(fitted.classes)) if prior is None else prior
    with beam_pipeline as pipeline:
        enriched = []
        for split in SPLITS:
            records = (
                pipeline
                | f"Read[{split}]" >> beam.io.ReadFromTFRecord(split_files(examples.uri, split))
                | f"Parse[{split}]" >> beam.Map(_parse)
            )
            answers = (
                pipeline
                | f"ReadAnswers[{split}]" >> beam.io.ReadFromParquetBatched(rows[split])
                | f"Answers[{split}]" >> beam.FlatMap(_answers)
            )
            enriched.append(
                {"example": records, "answer": answers}
                | f"Join[{split}]" >> beam.CoGroupByKey()
                | f"Enrich[{split}]" >> beam.Map(_enrich, split, truth, unknown.tolist())
            )
        _ = enriched | beam.Flatten() | "WriteExamples" >> WriteExamples(aggregated_examples.uri, info["num_tasks"])
    tf.io.gfile.rmtree(work)
    _write_report(fitted, report.uri)


def _arguments(options: dict[str, Any], task: str) -> dict[str, Any]:
    """The method's arguments, with the run's seed where the method draws."""
    arguments = {"seed": options["seed"], **options["arguments"]}
    if task == "classification" or "seed" in options["arguments"]:
        return arguments
    try:
        create(options["method"], kind=task, **arguments)
    except ConfigError:
        return options["arguments"]
    return arguments


def _aggregate_sequences(
    method: Any, annotations: str, examples: str, aggregated: str, report: str, truth: str, beam_pipeline: beam.Pipeline
) -> None:
    """The same for sentences with their words, in this process: each split by its own annotations alone.

    What train taught about the annotators is not carried over to eval; sentences without annotations have "O".
    """
    answers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    info = read_dataset_info(examples)
    for split in SPLITS:
        sentences = _crowd_sequences(annotations, examples, split, info["scheme"])
        crowd = sentences.annotations
        if len(crowd) == 0:
            continue
        fitted = method.fit(sentences)
        codes = np.split(fitted.labels, fitted.starts[1:-1])
        posteriors = np.split(fitted.posteriors, fitted.starts[1:-1])
        for task in np.flatnonzero(crowd.redundancy > 0):
            answers[str(crowd.tasks[task])] = (posteriors[task].astype(np.float32), codes[task])
        if split == "train":
            fitted.to_parquet(report)
            _write_flat(report)
    outside = info["classes"].index("O")
    with beam_pipeline as pipeline:
        enriched = [
            pipeline
            | f"Read[{split}]" >> beam.io.ReadFromTFRecord(split_files(examples, split))
            | f"Parse[{split}]" >> beam.Map(_parse)
            | f"Enrich[{split}]" >> beam.Map(_enrich_sentence, split, answers, truth, outside)
            for split in SPLITS
        ]
        _ = enriched | beam.Flatten() | "WriteExamples" >> WriteExamples(aggregated, info["num_tasks"])


def _enrich_sentence(
    element: tuple[str, tf.train.Example], split: str, answers: dict[str, Any], truth: str, outside: int
) -> tuple[str, str, tf.train.Example]:
    task, example = element
    return split, task, with_answers(example, *answers.get(task, (None, None)), truth, outside)


def _aggregate_ratings(
    method: Any, annotations: str, examples: str, aggregated: str, report: str, truth: str, beam_pipeline: beam.Pipeline
) -> None:
    """The same for ratings, in this process: each split by its own ratings alone."""
    fitted = method.fit(_annotations(annotations, "train"))
    crowd = _annotations(annotations, "eval")
    work = os.path.join(report, ".work")
    none = (crowd.tasks[:0], np.zeros(0))
    found = method.fit(crowd) if len(crowd) else None
    rows = {
        "train": _write_estimates(work, "train", fitted.tasks, fitted.estimates),
        "eval": _write_estimates(work, "eval", *(none if found is None else (found.tasks, found.estimates))),
    }
    unknown = float(fitted.estimates.mean())
    with beam_pipeline as pipeline:
        enriched = []
        for split in SPLITS:
            records = (
                pipeline
                | f"Read[{split}]" >> beam.io.ReadFromTFRecord(split_files(examples, split))
                | f"Parse[{split}]" >> beam.Map(_parse)
            )
            answers = (
                pipeline
                | f"ReadEstimates[{split}]" >> beam.io.ReadFromParquet(rows[split])
                | f"Estimates[{split}]" >> beam.Map(lambda row: (row["task"], row["estimate"]))
            )
            enriched.append(
                {"example": records, "answer": answers}
                | f"Join[{split}]" >> beam.CoGroupByKey()
                | f"Enrich[{split}]" >> beam.Map(_enrich_rating, split, truth, unknown)
            )
        num_tasks = read_dataset_info(examples)["num_tasks"]
        _ = enriched | beam.Flatten() | "WriteExamples" >> WriteExamples(aggregated, num_tasks)
    tf.io.gfile.rmtree(work)
    fitted.to_parquet(report)
    _write_flat(report)


def _enrich_rating(
    joined: tuple[str, dict[str, Iterable[Any]]], split: str, truth: str, unknown: float
) -> tuple[str, str, tf.train.Example]:
    task, found = joined
    (example,) = found["example"]
    estimate = next(iter(found["answer"]), unknown)
    feature = example.features.feature
    gold = feature["gold"].float_list.value[0] if "gold" in feature else None
    known = gold is not None if truth == "gold" else len(feature["annotator_ids"].int64_list.value) > 0
    feature["aggregated_label"].float_list.value.append(estimate)
    feature["evaluation_label"].float_list.value.append(gold if truth == "gold" and known else estimate)
    feature["evaluation_weight"].float_list.value.append(float(known))
    return split, task, example


def _annotations(folder: str, split: str) -> Annotations:
    crowd = Annotations.from_parquet(os.path.join(folder, ANNOTATIONS_FILE))
    tasks = read_parquet(os.path.join(folder, TASKS_FILE))
    names = tasks.filter(pc.equal(tasks["split"], split))["task"].to_pylist()
    return crowd.select_tasks(is_among(crowd.tasks, names))


def _crowd_sequences(annotations: str, examples: str, split: str, scheme: str) -> CrowdSequences:
    """The sentences of a split, those that are among its Examples."""
    files = sorted(tf.io.gfile.glob(split_files(examples, split)))
    tokens = {}
    for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
        task, example = _parse(record)
        tokens[task] = [token.decode() for token in example.features.feature["tokens"].bytes_list.value]
    crowd = _annotations(annotations, split)
    crowd = crowd.select_tasks(np.array([str(name) in tokens for name in crowd.tasks], bool))
    return CrowdSequences([tokens[str(name)] for name in crowd.tasks], crowd, scheme=scheme)


def _fit(method: Any, crowd: Annotations, folder: str, pipeline: beam.Pipeline) -> Aggregation:
    """Aggregates on Beam where the method has that form, else here."""
    if not runs_on_beam(method):
        return method.fit(crowd)
    # EM is a pipeline every few iterations: all with the options of the one that TFX gave
    return aggregate(crowd, method, make_pipeline=lambda: beam.Pipeline(options=pipeline.options), folder=folder)


def _apply(method: Any, fitted: Aggregation, crowd: Annotations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Names, posteriors [N, K] and labels [N] of other tasks.

    What was learnt about the annotators counts, if it is a model of what they say; else these tasks' annotations alone.
    """
    if fitted.confusions is None or not fitted.history:  # without a history there was nothing to fit
        alone = method.fit(crowd)
        return alone.tasks, alone.posteriors, alone.labels
    posteriors = fitted.posteriors_of(crowd)
    return crowd.tasks, posteriors, choose_labels(posteriors, np.arange(crowd.num_tasks), seed=method.seed)


def _write_rows(folder: str, split: str, tasks: np.ndarray, posteriors: np.ndarray, labels: np.ndarray) -> str:
    """Writes what `_answers` reads; gives the path."""
    size = np.arange(len(tasks) + 1) * posteriors.shape[1]
    columns = {
        "task": pa.array(name_texts(tasks), pa.string()),
        "posterior": pa.LargeListArray.from_arrays(size, pa.array(posteriors.ravel(), pa.float64())),
        "label": pa.array(labels, pa.int64()),
    }
    return _write_table(folder, split, columns)


def _write_estimates(folder: str, split: str, tasks: np.ndarray, estimates: np.ndarray) -> str:
    """Writes names of tasks and their estimates; gives the path."""
    columns = {"task": pa.array(name_texts(tasks), pa.string()), "estimate": pa.array(estimates, pa.float64())}
    return _write_table(folder, split, columns)


def _write_table(folder: str, split: str, columns: dict[str, pa.Array]) -> str:
    tf.io.gfile.makedirs(folder)
    path = os.path.join(folder, f"{split}.parquet")
    buffer = io.BytesIO()  # GFile is no file to pyarrow
    pyarrow.parquet.write_table(pa.table(columns), buffer)
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(buffer.getvalue())
    return path


def _write_report(fitted: Aggregation, folder: str) -> None:
    fitted.to_parquet(folder)
    _write_flat(folder)


def _write_flat(folder: str) -> None:
    """The annotators' table without its matrices as CSV."""
    table = read_parquet(os.path.join(folder, "annotators.parquet"))
    flat = table.select([name for name in table.column_names if not pa.types.is_nested(table.schema.field(name).type)])
    pyarrow.csv.write_csv(flat, os.path.join(folder, "annotators.csv"))


def _parse(record: bytes) -> tuple[str, tf.train.Example]:
    example = tf.train.Example.FromString(record)
    return example.features.feature["task"].bytes_list.value[0].decode(), example


def _answers(rows: pa.Table) -> Iterator[tuple[str, tuple[list[float], int]]]:
    columns = (rows[name].to_pylist() for name in ("task", "posterior", "label"))
    for task, posterior, label in zip(*columns, strict=True):
        yield task, (posterior, label)


def _enrich(
    joined: tuple[str, dict[str, Iterable[Any]]], split: str, truth: str, unknown: list[float]
) -> tuple[str, str, tf.train.Example]:
    task, found = joined
    (example,) = found["example"]
    # nobody annotated a task that has no answer
    posterior, aggregated = next(iter(found["answer"]), (unknown, int(np.argmax(unknown))))
    feature = example.features.feature
    gold = feature["gold"].int64_list.value[0] if "gold" in feature else None
    known = gold is not None if truth == "gold" else len(feature["annotator_ids"].int64_list.value) > 0
    feature["posterior"].float_list.value.extend(posterior)
    feature["aggregated_label"].int64_list.value.append(aggregated)
    feature["evaluation_label"].int64_list.value.append(gold if truth == "gold" and known else aggregated)
    feature["evaluation_weight"].float_list.value.append(float(known))
    return split, task, example
