"""CrowdAggregator: adds to every Example what the annotators together say, and reports on the annotators."""

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import tensorflow as tf
from tfx.types import standard_artifacts

from crowdzoo.aggregation import create, dawid_skene, majority_vote
from crowdzoo.aggregation.base import Aggregation
from crowdzoo.aggregation.beam import aggregate
from crowdzoo.aggregation.block import Block
from crowdzoo.aggregation.labels import choose_labels
from crowdzoo.aggregation.params import Params
from crowdzoo.annotations import Annotations
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
from crowdzoo.components.signature import BeamComponentParameter, InputArtifact, OutputArtifact, Parameter, component

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

    Each Example gains `posterior` (float, [K]), `aggregated_label` (int64), `evaluation_label` (int64) and
    `evaluation_weight` (float). The evaluation label is gold where any task of eval has gold; tasks without gold
    then weigh 0. Where there is no gold at all it is the aggregated label, and tasks without annotations weigh 0.

    Args:
        examples: splits train and eval from AnnotationExampleGen.
        annotations: the annotations with their vocabularies.
        aggregated_examples: receives the same splits with more features, and `dataset.json` with the keys `truth`
            (what evaluation compares with, `gold` or `aggregated`) and `aggregation` added.
        report: receives `annotators.parquet`, `annotators.csv`, `tasks.parquet` (train tasks) and `summary.json`.
        settings: JSON of `method` (a name in `METHODS`), its `arguments`, and `seed`.
        code_version: hash of the code that runs here, for TFX's cache.
        beam_pipeline: runs the aggregation.
    """
    del code_version
    options = json.loads(settings)
    method = create(options["method"], **{"seed": options["seed"], **options["arguments"]})
    info = read_dataset_info(examples.uri)
    truth = "gold" if info["num_gold"]["eval"] else "aggregated"
    prepare_examples(aggregated_examples)
    write_dataset_info(
        aggregated_examples.uri,
        {**info, "truth": truth, "aggregation": {"method": options["method"], **options["arguments"]}},
    )
    fitted = _fit(method, annotations.uri, os.path.join(report.uri, ".checkpoints"), beam_pipeline)
    _write_report(fitted, report.uri)
    with beam_pipeline as pipeline:
        params = pipeline | "Params" >> beam.Create([_params(fitted)])
        parsed = {
            split: (
                pipeline
                | f"Read[{split}]" >> beam.io.ReadFromTFRecord(split_files(examples.uri, split))
                | f"Parse[{split}]" >> beam.Map(tf.train.Example.FromString)
            )
            for split in SPLITS
        }
        enriched = [
            parsed[split]
            | f"Batch[{split}]" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
            | f"Enrich[{split}]" >> beam.FlatMap(_enrich, split, method, truth, beam.pvalue.AsSingleton(params))
            for split in SPLITS
        ]
        _ = enriched | beam.Flatten() | "WriteExamples" >> WriteExamples(aggregated_examples.uri, info["num_tasks"])


def _task(example: tf.train.Example) -> str:
    return example.features.feature["task"].bytes_list.value[0].decode()


def _fit(method: Any, annotations: str, folder: str, pipeline: beam.Pipeline) -> Aggregation:
    """Aggregates the annotations of the train split."""
    crowd = Annotations.from_parquet(os.path.join(annotations, ANNOTATIONS_FILE))
    tasks = pyarrow.parquet.read_table(os.path.join(annotations, TASKS_FILE))
    train = tasks.filter(pc.equal(tasks["split"], "train"))["task"].to_pylist()
    train_crowd = crowd.select_tasks(np.isin(crowd.tasks.astype(str), train))
    # EM is a pipeline every few iterations: all with the options of the one that TFX gave
    fitted = aggregate(
        train_crowd, method, make_pipeline=lambda: beam.Pipeline(options=pipeline.options), folder=folder
    )
    tf.io.gfile.rmtree(folder)
    return fitted


def _params(fitted: Aggregation) -> Params:
    assert fitted.confusions is not None
    assert fitted.class_prior is not None
    return Params.from_probabilities(fitted.confusions, fitted.class_prior)


def _write_report(fitted: Aggregation, folder: str) -> None:
    fitted.to_parquet(folder)
    table = pyarrow.parquet.read_table(os.path.join(folder, "annotators.parquet"))
    flat = table.select([name for name in table.column_names if name != "confusion"])
    pyarrow.csv.write_csv(flat, os.path.join(folder, "annotators.csv"))


def _enrich(
    batch: list[tf.train.Example], split: str, method: Any, truth: str, params: Params
) -> Iterator[tuple[str, str, tf.train.Example]]:
    # a code that hangs on the task's name alone, because ties are drawn by it and batches vary from run to run
    coded = sorted((_code(_task(example)), i) for i, example in enumerate(batch))
    codes = np.array([code for code, _ in coded])
    batch = [batch[i] for _, i in coded]
    ids, labels = (
        [np.asarray(example.features.feature[name].int64_list.value, np.int64) for example in batch]
        for name in ("annotator_ids", "annotator_labels")
    )
    sizes = [len(row) for row in ids]
    block = Block(np.repeat(codes, sizes), np.concatenate(ids), np.concatenate(labels), codes)
    posteriors = _posteriors(block, method, params)
    chosen = choose_labels(posteriors, codes, getattr(method, "ties", "random"), method.seed)
    for example, size, posterior, aggregated in zip(batch, sizes, posteriors, chosen.tolist(), strict=True):
        feature = example.features.feature
        gold = feature["gold"].int64_list.value[0] if "gold" in feature else None
        known = gold is not None if truth == "gold" else size > 0
        feature["posterior"].float_list.value.extend(posterior)
        feature["aggregated_label"].int64_list.value.append(aggregated)
        feature["evaluation_label"].int64_list.value.append(gold if truth == "gold" and known else aggregated)
        feature["evaluation_weight"].float_list.value.append(float(known))
        yield split, _task(example), example


def _code(task: str) -> int:
    return int.from_bytes(hashlib.sha256(task.encode()).digest()[:8], "big") >> 1


def _posteriors(block: Block, method: Any, params: Params) -> np.ndarray:
    if isinstance(method, majority_vote.MajorityVote):
        return majority_vote.posteriors(block, params, method.voting, method.ties, method.seed)
    return dawid_skene.posteriors(block, params)
