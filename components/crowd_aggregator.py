"""CrowdAggregator: adds aggregated labels to every Example, and reports on the annotators."""

import json
import os
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from absl import logging

from crowdzoo.aggregation.base import Result
from crowdzoo.aggregation.named import result_of
from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.annotation_example_gen import ANNOTATIONS_FILE, TASKS_FILE
from crowdzoo.components.artifacts import AnnotationsArtifact, AnnotatorReport
from crowdzoo.components.code_version import code_version
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.files.arrow import read_parquet
from crowdzoo.files.writing import atomic_file, write_table
from crowdzoo.kinds import kind_of
from crowdzoo.large.beam import aggregate, fits_one_block, runs_on_beam
from crowdzoo.large.beam.driver import RetryOptions
from crowdzoo.records import example_files
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, add_answer


# No `from __future__ import annotations` in files of components: TFX reads annotations at run time.
@tfx.component(use_beam=True)
def CrowdAggregator(  # noqa: N802, the function's name is the component's
    examples: tfx.InputArtifact[tfx.standard_artifacts.Examples],
    annotations: tfx.InputArtifact[AnnotationsArtifact],
    aggregated_examples: tfx.OutputArtifact[tfx.standard_artifacts.Examples],
    report: tfx.OutputArtifact[AnnotatorReport],
    settings: tfx.Parameter[str],
    code_version: tfx.Parameter[str],
    beam_pipeline: tfx.BeamComponentParameter[beam.Pipeline] = None,
) -> None:
    """Fits an aggregation method to the train split only, and applies it to both splits.

    Methods with a Beam form (`crowdzoo.beam`) run on Beam; the others (GLAD, iBCC, ...) run in this process, and so do
    small tables if Beam's only worker is this process (`fits_one_block`). Posteriors of tasks of eval use the
    annotators' parameters estimated on train. If they do not follow from Bayes' rule with confusion matrices (robust,
    majority vote, GLAD, ...), the method is fitted to the annotations of both splits for eval; results of train never
    depend on eval. A task without annotations has the class prior.

    Each Example gains `posterior` (float, [K]), `aggregated_label` (int64), `evaluation_label` (int64) and
    `evaluation_weight` (float). If any task of eval has gold, the evaluation label is gold, and tasks without gold have
    weight 0. Without any gold it is the aggregated label, and tasks without annotations have weight 0.

    Ratings have no `posterior`, and float labels: `aggregated_label` is the method's estimate, fitted to each split
    separately. A task without ratings has the mean of train's estimates. For preferences an Example is a pair, with the
    posterior of left, right and equal, fitted to each split separately.

    Args:
        examples: output of AnnotationExampleGen, with splits train and eval.
        annotations: the annotations with their vocabularies.
        aggregated_examples: receives the same splits with more features, and `dataset.json` with the additional keys
            `truth` (reference of the evaluation, `gold` or `aggregated`) and `aggregation`.
        report: receives `annotators.parquet`, `annotators.csv`, `tasks.parquet` (train tasks) and `summary.json`.
        settings: JSON of `method` (a name in `METHODS_OF` of the kind), its `arguments`, and `seed`.
        code_version: hash of the component's code, for TFX's cache; computed by default.
        beam_pipeline: pipeline whose options are used for the pipelines of EM.
    """
    del code_version
    options, info = json.loads(settings), example_files.read_dataset_info(examples.uri)
    kind = kind_of(info["kind"])
    method: Any = kind.aggregation.create(options["method"], seed=options["seed"], **options["arguments"])
    truth = "gold" if info["num_gold"]["eval"] else "aggregated"
    example_files.prepare_examples(aggregated_examples)
    aggregation = {"method": options["method"], **options["arguments"]}
    example_files.write_dataset_info(aggregated_examples.uri, {**info, "truth": truth, "aggregation": aggregation})

    on_beam = runs_on_beam(method)
    if not on_beam:
        logging.info("%s does not run on Beam; it is fitted in this process.", options["method"])

    def fit(crowd: Annotations | CrowdSequences) -> Result:
        if not on_beam or not isinstance(crowd, Annotations) or fits_one_block(crowd, beam_pipeline):
            return result_of(method, crowd)
        # EM runs a pipeline every few iterations, all with the options of the one from TFX
        folder, flags = os.path.join(report.uri, ".work"), beam_pipeline.options
        again = flags.view_as(RetryOptions)
        how: Any = {"retries": again.crowdzoo_retries, "timeout": again.crowdzoo_timeout}
        fitted = aggregate(crowd, method, make_pipeline=lambda: beam.Pipeline(options=flags), folder=folder, **how)
        tf.io.gfile.rmtree(folder)
        return fitted

    crowds = _annotations(annotations.uri)
    aggregated = kind.records.aggregate(method, crowds, fit, examples.uri)
    of_codes = "float_list" if kind.labels.dtype.kind == "f" else "int64_list"
    labels = "bytes_list" if kind.labels.values else of_codes
    for split, table in aggregated.tables.items():
        rows = {task: row for row, task in enumerate(table["task"].to_pylist())}
        enriched = partial(_enrich, answers=aggregated, table=table, rows=rows, truth=truth, kind=labels)
        example_files.rewrite_examples(examples.uri, aggregated_examples.uri, split, enriched)
    _write_report(aggregated.fitted, report.uri)


CrowdAggregator = tfx.with_computed_defaults(CrowdAggregator, code_version=lambda _: code_version(__name__))


def _annotations(folder: str) -> dict[str, Annotations]:
    """The annotations of each split, and of both."""
    crowd = Annotations.from_parquet(os.path.join(folder, ANNOTATIONS_FILE))
    tasks = read_parquet(os.path.join(folder, TASKS_FILE))
    names = {split: tasks.filter(pc.equal(tasks["split"], split))["task"].to_pylist() for split in example_files.SPLITS}
    records = kind_of(crowd.kind).records
    return {BOTH: crowd, **{split: records.select(crowd, names[split]) for split in example_files.SPLITS}}


def _enrich(
    task: str, example: Any, answers: CrowdAnswers, table: pa.Table, rows: dict[str, int], truth: str, kind: str
) -> Any:
    """Adds its task's answer to an Example: the row of the table, or the answer for tasks without annotations."""
    if task in rows:
        posterior, labels = (table[name][rows[task]].as_py() for name in ("posterior", "labels"))
    else:
        feature = example.features.feature
        size = len(feature["tokens"].bytes_list.value) if "tokens" in feature else 1
        posterior, labels = answers.posterior, [answers.label] * size
    add_answer(example, posterior, labels, truth, kind)
    return example


def _write_report(fitted: Any, folder: str) -> None:
    """Writes the annotators as Parquet, and without matrices as CSV."""
    fitted.to_parquet(folder)
    with atomic_file(os.path.join(folder, "annotators.csv")) as file:
        write_table(read_parquet(os.path.join(folder, "annotators.parquet")), file, "csv")
