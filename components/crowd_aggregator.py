"""CrowdAggregator: adds to every Example what the annotators together say, and reports on the annotators."""

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


# No `from __future__ import annotations` in files of components: TFX reads them at run time.
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
    """Fits an aggregation method to the train split alone, and applies it to both splits.

    Methods that have a form on Beam (`crowdzoo.beam`) run there, the others (GLAD, iBCC, ...) in this process; so do
    small tables, if Beam's only worker is this process (`fits_one_block`: it has nothing to share out). Tasks of eval
    get the posteriors that follow from what train taught about the annotators. Where these are not Bayes' rule with
    confusion matrices (robust, majority vote, GLAD, ...), the method is fitted to the annotations of both
    splits for eval; train never learns from eval's. A task without annotations has the class prior.

    Each Example gains `posterior` (float, [K]), `aggregated_label` (int64), `evaluation_label` (int64) and
    `evaluation_weight` (float). The evaluation label is gold where any task of eval has gold; tasks without gold
    then weigh 0. Where there is no gold at all it is the aggregated label, and tasks without annotations weigh 0.

    Ratings have no `posterior`, and labels in float: `aggregated_label` is the method's estimate, each split by its own
    ratings. A task without ratings has the mean of train's estimates. Where two are compared, an Example is a pair,
    whose posterior is of left, right and equal, each split by its own comparisons.

    Args:
        examples: splits train and eval from AnnotationExampleGen.
        annotations: the annotations with their vocabularies.
        aggregated_examples: receives the same splits with more features, and `dataset.json` with the keys `truth`
            (what evaluation compares with, `gold` or `aggregated`) and `aggregation` added.
        report: receives `annotators.parquet`, `annotators.csv`, `tasks.parquet` (train tasks) and `summary.json`.
        settings: JSON of `method` (a name in `METHODS_OF` of the kind), its `arguments`, and `seed`.
        code_version: hash of the code that runs here, for TFX's cache; computed where it is not given.
        beam_pipeline: its options are those of the pipelines of EM.
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
        # EM is a pipeline every few iterations: all with the options of the one that TFX gave
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
    """An Example with its task's answer: its row of the table, or what `answers` has for a task without annotations."""
    if task in rows:
        posterior, labels = (table[name][rows[task]].as_py() for name in ("posterior", "labels"))
    else:
        feature = example.features.feature
        size = len(feature["tokens"].bytes_list.value) if "tokens" in feature else 1
        posterior, labels = answers.posterior, [answers.label] * size
    add_answer(example, posterior, labels, truth, kind)
    return example


def _write_report(fitted: Any, folder: str) -> None:
    """Writes the annotators, and their table without matrices as CSV."""
    fitted.to_parquet(folder)
    with atomic_file(os.path.join(folder, "annotators.csv")) as file:
        write_table(read_parquet(os.path.join(folder, "annotators.parquet")), file, "csv")
