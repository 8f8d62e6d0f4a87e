"""AnnotationExampleGen: joins instances and annotations into tf.Examples, and writes the annotations as an artifact."""

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from absl import logging

from crowdzoo import datasets
from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.artifacts import AnnotationsArtifact
from crowdzoo.components.code_version import code_version
from crowdzoo.components.input_files import content_hashes, own_copies, rename_in_rejects
from crowdzoo.errors import DataError
from crowdzoo.kinds import kind_of
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.records.example_files import SPLITS, LabelledTasks, prepare_examples, write_dataset_info, write_examples

ANNOTATIONS_FILE = "annotations.parquet"
TASKS_FILE = "tasks.parquet"
REJECTS_FILE = "rejects.csv"
_INPUTS = ("annotations", "instances", "gold")  # a shipped data set is written as the first ones


# No `from __future__ import annotations` in files of components: TFX reads annotations at run time.
@tfx.component
def AnnotationExampleGen(  # noqa: N802, the function's name is the component's
    examples: tfx.OutputArtifact[tfx.standard_artifacts.Examples],
    annotations: tfx.OutputArtifact[AnnotationsArtifact],
    settings: tfx.Parameter[str],
    fingerprint: tfx.Parameter[str],
    code_version: tfx.Parameter[str],
) -> None:
    """Reads, checks and joins the input files, and writes the data for the rest of the pipeline.

    Each tf.Example has `task` (bytes), `instances` (float, [D]; for texts bytes, [1]), `annotator_ids` and
    `annotator_labels` (int64 codes, one per annotation of the task) and, if known, `gold` (int64 code). For kind
    "regression" labels and gold are float, ratings in their own unit; for others see `read_labelled` in `records.py` of
    the kind's folder in `crowdzoo/kinds/`. Tasks without labels are dropped from the train split, with their number in
    the log, and kept in eval.

    Args:
        examples: receives the splits train and eval, and `dataset.json` (see `write_dataset_info`).
        annotations: receives `annotations.parquet`, `tasks.parquet` (task, split, gold), and `rejects.csv` if rows were
            rejected.
        settings: JSON of `kind`, the paths or URIs of the files (`annotations`, and `instances` and `gold` if the kind
            has them), or the name of a shipped data set as `dataset`, `eval_fraction`, and options of the kind's
            reader: `instance_kind` (name of the kind of instances; by default that of the columns), `inputs` (types
            of columns of a table), `instance_columns` (names of columns of the instances), `classes` or `low` and
            `high`, `on_bad_rows`, `on_duplicate`, and of `FileOptions`; for sentences `scheme` and `on_bad_tags`; for
            an export `platform` and `field`.
        fingerprint: JSON of `content_hashes` of existing files, so that TFX's cache depends on their content. Copies
            with exactly this content are read. By default computed when the component is created; if it names no file,
            any content is read.
        code_version: hash of the component's code, for the same reason; computed by default.

    Raises:
        DataError: annotations or instances that cannot be used, including ratings outside `low` to `high`; or a file
            whose content no longer matches the fingerprint.
    """
    del code_version  # only part of TFX's cache key
    options, hashes = json.loads(settings), json.loads(fingerprint or "{}") or None
    rejects = os.path.join(annotations.uri, REJECTS_FILE)
    layout = Layout.of_second(options.get("instance_columns"), options)
    with (
        _input_files(options, hashes) as files,
        own_copies(files, hashes, annotations.uri, layout, options.get("inputs")) as copies,
        tempfile.TemporaryDirectory(prefix=".instances-", dir=annotations.uri) as folder,
    ):
        tasks = kind_of(options["kind"]).records.read({**options, **copies}, rejects, folder)
        counts = _count_splits(tasks, copies.get("instances", copies["annotations"]))
        if os.path.exists(rejects):
            rename_in_rejects(rejects, copies["annotations"], files["annotations"])
        _write_tasks(tasks, annotations.uri)
        sha256 = hashes or content_hashes(copies, layout, options.get("inputs"))
        info = {**tasks.info, "kind": options["kind"], "num_tasks": counts, "sha256": sha256, "reading": options}
        _write_examples(tasks, examples, info)


def _write_examples(tasks: LabelledTasks, examples: Any, info: dict[str, Any]) -> None:
    prepare_examples(examples)
    annotators = [str(name) for name in tasks.annotations.annotators]
    num_gold = {name: int(np.sum(tasks.known & (tasks.split == name))) for name in SPLITS}
    write_dataset_info(examples.uri, {"num_gold": num_gold, **info, "annotators": annotators})
    for name in SPLITS:
        rows = np.flatnonzero(tasks.used & (tasks.split == name)).tolist()
        names = [tasks.names[row] for row in rows]
        write_examples(examples.uri, name, names, functools.partial(_example, tasks, rows))


def _example(tasks: LabelledTasks, rows: list[int], at: int) -> Any:
    return tasks.example(rows[at])


def _fingerprint(parameters: Mapping[str, Any]) -> str:
    """Hashes of the files that the settings name."""
    options = json.loads(parameters.get("settings", "{}"))
    files = {key: options.get(key) for key in _INPUTS}
    layout = Layout.of_second(options.get("instance_columns"), options)
    return json.dumps(content_hashes(files, layout, options.get("inputs")), sort_keys=True)


AnnotationExampleGen = tfx.with_computed_defaults(
    AnnotationExampleGen, fingerprint=_fingerprint, code_version=lambda _: code_version(__name__)
)


@contextlib.contextmanager
def _input_files(options: Mapping[str, Any], hashes: Mapping[str, str] | None) -> Iterator[dict[str, str]]:
    """Yields paths and URIs of the files by key; files of a shipped data set exist only inside the context.

    Args:
        options: settings of the component.
        hashes: hashes of the files to read, by key; None reads all that the settings name.
    """
    name = options.get("dataset")
    if name is None:
        yield {key: options[key] for key in hashes or _INPUTS if options.get(key)}
        return
    with tempfile.TemporaryDirectory() as folder:
        written = datasets.write_files(datasets.load(name), folder)
        yield dict(zip(_INPUTS, map(str, written), strict=False))


def _count_splits(tasks: LabelledTasks, path: str) -> dict[str, int]:
    """Number of tasks in each split.

    Raises:
        DataError: no tasks at all, or none in the split eval.
    """
    in_eval = tasks.split == "eval"
    if dropped := int(np.sum(~tasks.used)):
        logging.warning("%d %ss of the train split have no annotations and are left out.", dropped, tasks.unit)
    counts = {"train": int(np.sum(tasks.used & ~in_eval)), "eval": int(np.sum(in_eval))}
    for name, tasks_needed in {"train": f"annotated {tasks.unit}", "eval": tasks.unit}.items():
        if counts[name] == 0:
            raise DataError(f"{path}: no {tasks_needed} falls into the {name} split. {tasks.change_split}")
    if not np.any(in_eval & (tasks.labelled | tasks.known)):
        raise DataError(f"{path}: no {tasks.unit} of the eval split has gold or annotations: nothing to evaluate.")
    logging.info("Tasks in each split: %s", counts)
    return counts


def _write_tasks(tasks: LabelledTasks, folder: str) -> None:
    """Writes the annotations, and a table of the tasks: `task`, `split` and `gold` (null is unknown)."""
    tasks.annotations.to_parquet(os.path.join(folder, ANNOTATIONS_FILE))
    columns: dict[str, Any] = {"task": tasks.names, "split": tasks.split.tolist(), "gold": tasks.gold}
    gold = pa.float64() if tasks.annotations.label_kind.has_numbers else pa.string()
    schema = pa.schema({"task": pa.string(), "split": pa.string(), "gold": gold})
    pyarrow.parquet.write_table(pa.table(columns, schema), os.path.join(folder, TASKS_FILE))
