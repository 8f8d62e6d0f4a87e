"""AnnotationExampleGen: joins instances and annotations into tf.Examples, and writes the annotations as an artifact."""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import tensorflow as tf
from absl import logging
from tfx.v1.types import standard_artifacts

from crowdzoo.components.artifacts import AnnotationsArtifact
from crowdzoo.components.example_files import SPLITS, WriteExamples, prepare_examples, write_dataset_info
from crowdzoo.components.input_files import INPUT_FILES, own_copies, rename_in_rejects
from crowdzoo.components.sequence_examples import read_crowd_sequences, sentence_examples, splits_of
from crowdzoo.components.signature import BeamComponentParameter, OutputArtifact, Parameter, component
from crowdzoo.errors import SHOWN, DataError
from crowdzoo.instances import TEXTS, VECTORS, Instances, read_instances
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.vocabulary import is_among, name_texts

__all__ = ["AnnotationExampleGen"]

ANNOTATIONS_FILE = "annotations.parquet"
TASKS_FILE = "tasks.parquet"
REJECTS_FILE = "rejects.csv"


# No `from __future__ import annotations` in files of components: TFX reads the annotations as they stand.
@component(use_beam=True)
def AnnotationExampleGen(  # noqa: N802, the function's name is the component's
    examples: OutputArtifact[standard_artifacts.Examples],
    annotations: OutputArtifact[AnnotationsArtifact],
    settings: Parameter[str],
    fingerprint: Parameter[str],
    code_version: Parameter[str],
    beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
) -> None:
    """Joins by task, checks everything, and writes what the rest of the pipeline reads.

    For task "sequence" see `crowdzoo.components.sequence_examples`. Else each tf.Example has `task` (bytes),
    `instances` (float, [D]; of texts bytes, [1]), `annotator_ids` and `annotator_labels` (int64 codes, as many as the
    task has annotations) and, where known, `gold` (int64 code). For task "regression" labels and gold are float,
    ratings in their own unit.
    Tasks of the train split that nobody labelled are dropped with a count in the log; in eval they stay.

    Args:
        examples: receives the splits train and eval, and `dataset.json` (see `write_dataset_info`).
        annotations: receives `annotations.parquet`, `tasks.parquet` (task, split, gold), and `rejects.csv` where rows
            were rejected.
        settings: JSON of `task`, `annotations`, `instances` (paths), `texts` (whether instances are; absent is no),
            `classes`, `on_bad_rows`, `on_duplicate`, `eval_fraction` and `seed`; for sequences `gold` (path), `scheme`
            and `on_bad_tags`; for ratings, instead of classes, `low` and `high`.
        fingerprint: JSON of `content_hashes` of the files, so that TFX's cache follows their content. Copies are read
            that have exactly this content.
        code_version: hash of the code that runs here, for the same reason.
        beam_pipeline: runs the join.

    Raises:
        DataError: annotations or instances that cannot be used, ratings outside of `low` to `high` among them; a file
            whose content is not that of the fingerprint any more.
    """
    del code_version  # part of TFX's cache key, and of nothing else
    options = json.loads(settings)
    files = {key: options[key] for key in INPUT_FILES[options["task"]] if options.get(key) is not None}
    write = _write_sequences if options["task"] == "sequence" else _write_tasks_and_examples
    with own_copies(files, json.loads(fingerprint), annotations.uri) as copies:
        write({**options, **copies}, examples, annotations, beam_pipeline)
        rejects = os.path.join(annotations.uri, REJECTS_FILE)
        if os.path.exists(rejects):
            rename_in_rejects(rejects, copies["annotations"], files["annotations"])


def _write_tasks_and_examples(
    options: dict[str, Any], examples: Any, annotations: Any, beam_pipeline: beam.Pipeline
) -> None:
    """Everything, of labels and ratings."""
    parquet = os.path.join(annotations.uri, ANNOTATIONS_FILE)
    crowd = _read_annotations(options, os.path.join(annotations.uri, REJECTS_FILE))
    instances = read_instances(options["instances"], TEXTS if options.get("texts") else VECTORS)
    sides = _Sides(
        gold=_gold(instances, crowd, options["instances"]),
        split=_splits(instances, options["eval_fraction"], options["seed"]),
    )
    _check_tasks(crowd, instances, options)
    counts = _count_splits(crowd, instances, sides, options["instances"])
    crowd.to_parquet(parquet)
    _write_tasks(instances, sides, crowd, os.path.join(annotations.uri, TASKS_FILE))
    prepare_examples(examples)
    write_dataset_info(
        examples.uri,
        {
            "classes": None if crowd.classes is None else _class_names(crowd),
            "annotators": [str(name) for name in crowd.annotators],
            "task": options["task"],
            "num_features": None if options.get("texts", False) else instances.features.shape[1],
            "num_tasks": counts,
            "num_gold": {name: int(np.sum(sides.known & (sides.split == name))) for name in SPLITS},
        },
    )
    with beam_pipeline as pipeline:
        files = pipeline | "Instances" >> beam.Create([options["instances"]])
        rows = files | "Rows" >> beam.FlatMap(_rows, sides, options.get("texts", False))
        labels = pipeline | "Annotations" >> beam.Create([parquet]) | "Labels" >> beam.FlatMap(_labels)
        (
            {"rows": rows, "labels": labels}
            | "JoinByTask" >> beam.CoGroupByKey()
            | "ToExamples" >> beam.FlatMapTuple(_to_examples, ratings=crowd.kind == "regression")
            | "WriteExamples" >> WriteExamples(examples.uri, counts)
        )


def _write_sequences(options: dict[str, Any], examples: Any, annotations: Any, beam_pipeline: beam.Pipeline) -> None:
    """The same for sentences: the annotations' artifact holds gold's tags as JSON, in the order of the tokens."""
    sequences = read_crowd_sequences(options)
    crowd = sequences.annotations
    split = splits_of(sequences, options["eval_fraction"], options["seed"])
    labelled = crowd.redundancy > 0
    counts = {"train": int(np.sum((split == "train") & labelled)), "eval": int(np.sum(split == "eval"))}
    for name, count in counts.items():
        if count == 0:
            raise DataError(f"{options['annotations']}: no sentence falls into {name}. Change data.eval_fraction.")
    if sequences.gold is None and not np.any((split == "eval") & labelled):
        raise DataError(f"{options['annotations']}: no sentence of eval has gold or annotations to evaluate with.")
    logging.info("Sentences in each split: %s", counts)
    crowd.to_parquet(os.path.join(annotations.uri, ANNOTATIONS_FILE))
    tags = [None] * len(sequences) if sequences.gold is None else [json.dumps(row) for row in sequences.gold_tags()]
    columns = {"task": [str(name) for name in crowd.tasks], "split": split.tolist(), "gold": tags}
    pyarrow.parquet.write_table(
        pa.table(columns, pa.schema([(name, pa.string()) for name in columns])),
        os.path.join(annotations.uri, TASKS_FILE),
    )
    prepare_examples(examples)
    write_dataset_info(
        examples.uri,
        {
            "task": "sequence",
            "classes": sequences.classes,
            "scheme": sequences.scheme,
            "annotators": [str(name) for name in crowd.annotators],
            "num_tasks": counts,
            "num_gold": {name: int(np.sum(split == name)) * (sequences.gold is not None) for name in SPLITS},
        },
    )
    with beam_pipeline as pipeline:
        rows = pipeline | "Sentences" >> beam.Create([options]) | "Rows" >> beam.FlatMap(_sentences)
        _ = rows | "WriteExamples" >> WriteExamples(examples.uri, counts)


def _sentences(options: dict[str, Any]) -> Iterator[tuple[str, str, tf.train.Example]]:
    sequences = read_crowd_sequences(options)
    return sentence_examples(sequences, splits_of(sequences, options["eval_fraction"], options["seed"]))


@dataclasses.dataclass(frozen=True)
class _Sides:
    """What is settled for all instances at once: gold and splits, in the file's order, [N].

    Gold is codes, int64 with -1 for unknown, or ratings, float64 with NaN for unknown.
    """

    gold: np.ndarray
    split: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Whose gold is known, bool [N]."""
        return ~np.isnan(self.gold) if self.gold.dtype.kind == "f" else self.gold >= 0


def _read_annotations(options: dict[str, Any], rejects: str) -> Annotations:
    ratings = options["task"] == "regression"
    crowd = Annotations.read(
        options["annotations"],
        kind=options["task"],
        **({"low": options["low"], "high": options["high"]} if ratings else {"classes": options["classes"]}),
        on_duplicate=options["on_duplicate"],
        on_bad_rows=options["on_bad_rows"],
        rejects=rejects if options["on_bad_rows"] == "reject" else None,
    )
    if len(crowd) == 0:
        raise DataError(f"{options['annotations']}: holds no annotations.")
    if not ratings and crowd.num_classes < 2:
        only = f"only one class, {_class_names(crowd)[0]!r}"
        raise DataError(f"{options['annotations']}: {only}. Name all the classes in data.classes.")
    return crowd


def _class_names(crowd: Annotations) -> list[str]:
    assert crowd.classes is not None  # only ratings have none
    return [str(name) for name in crowd.classes]


def _gold(instances: Instances, crowd: Annotations, path: str) -> np.ndarray:
    """Gold as ratings or codes, [N].

    Of classes the column holds names, or else codes; -1 and nan mean unknown unless they are names.
    """
    classes = crowd.classes
    if classes is None:
        return instances.gold_ratings(path)
    if instances.gold is None:
        return np.full(len(instances), -1, np.int64)
    names = {str(name) for name in classes}
    gold = np.where(np.isin(instances.gold, [m for m in ("-1", "nan") if m not in names]), "", instances.gold)
    known = set(gold.tolist()) - {""}
    if not known <= names and known <= {str(code) for code in range(len(classes))}:
        return np.where(gold == "", "-1", gold).astype(np.int64)
    return dataclasses.replace(instances, gold=gold).gold_codes(classes, file=path)


def _splits(instances: Instances, eval_fraction: float, seed: int) -> np.ndarray:
    """The file's own split; else a hash of seed and task decides, so a task keeps its side when others come or go."""
    if instances.split is not None:
        return instances.split
    digests = (hashlib.sha256(f"{seed}:{task}".encode()).digest() for task in instances.tasks)
    shares = np.array([int.from_bytes(digest[:8], "big") / 2**64 for digest in digests])
    return np.where(shares < eval_fraction, "eval", "train")


def _labelled_tasks(crowd: Annotations) -> np.ndarray:
    return name_texts(crowd.tasks[crowd.redundancy > 0])


def _check_tasks(crowd: Annotations, instances: Instances, options: dict[str, Any]) -> None:
    """Every annotated task needs an instance."""
    tasks = _labelled_tasks(crowd)
    unknown = tasks[~is_among(tasks, instances.tasks)]
    if len(unknown):
        shown = ", ".join(repr(str(name)) for name in unknown[:SHOWN]) + (", ..." if len(unknown) > SHOWN else "")
        raise DataError(
            f"{options['annotations']}: {len(unknown):,} of the {len(tasks):,} tasks have no row in "
            f"{options['instances']}: {shown}. Tasks there look like {str(instances.tasks[0])!r}."
        )


def _count_splits(crowd: Annotations, instances: Instances, sides: _Sides, path: str) -> dict[str, int]:
    split = sides.split
    labelled = is_among(instances.tasks, _labelled_tasks(crowd))
    dropped = int(np.sum((split == "train") & ~labelled))
    if dropped:
        logging.warning("%d tasks of the train split have no annotations and are left out.", dropped)
    counts = {"train": int(np.sum((split == "train") & labelled)), "eval": int(np.sum(split == "eval"))}
    for name, count in counts.items():
        if count == 0:
            what = "annotated task" if name == "train" else "task"
            way_out = "Mind its column 'split'." if instances.split is not None else "Change data.eval_fraction."
            raise DataError(f"{path}: no {what} falls into the {name} split. {way_out}")
    if not np.any((split == "eval") & (labelled | sides.known)):
        raise DataError(f"{path}: no task of the eval split has gold or annotations, so no model can be evaluated.")
    logging.info("Tasks in each split: %s", counts)
    return counts


def _write_tasks(instances: Instances, sides: _Sides, crowd: Annotations, path: str) -> None:
    """Writes what is known of each task besides its features: `task`, `split` and `gold` (class name, rating, null)."""
    names = None if crowd.classes is None else _class_names(crowd)
    gold = [
        None if not known else gold if names is None else names[gold]
        for gold, known in zip(sides.gold.tolist(), sides.known, strict=True)
    ]
    columns = {"task": name_texts(instances.tasks).tolist(), "split": sides.split.tolist(), "gold": gold}
    kinds = {"task": pa.string(), "split": pa.string(), "gold": pa.float64() if names is None else pa.string()}
    pyarrow.parquet.write_table(pa.table(columns, pa.schema(list(kinds.items()))), path)


def _rows(path: str, sides: _Sides, texts: bool) -> Iterator[tuple[str, tuple[np.ndarray | str, float | None, str]]]:
    instances = read_instances(path, TEXTS if texts else VECTORS)
    contents = instances.features if instances.texts is None else instances.texts
    columns = (instances.tasks, contents, sides.gold.tolist(), sides.known, sides.split)
    for task, content, gold, known, split in zip(*columns, strict=True):
        yield str(task), (content, gold if known else None, str(split))


def _labels(path: str) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    crowd = Annotations.from_parquet(path)
    for task_ids, annotator_ids, labels in crowd.blocks():
        starts = np.flatnonzero(np.r_[True, task_ids[1:] != task_ids[:-1], True])
        for begin, end in itertools.pairwise(starts):
            yield str(crowd.tasks[task_ids[begin]]), (annotator_ids[begin:end], labels[begin:end])


def _to_examples(
    task: str, groups: dict[str, Any], ratings: bool = False
) -> Iterator[tuple[str, str, tf.train.Example]]:
    ((content, gold, split),) = groups["rows"]
    labels = list(groups["labels"])
    if not labels and split == "train":
        return
    annotator_ids, annotator_labels = labels[0] if labels else ((), ())
    example = tf.train.Example()
    feature = example.features.feature
    feature["task"].bytes_list.value.append(task.encode())
    if isinstance(content, str):
        feature["instances"].bytes_list.value.append(content.encode())
    else:
        feature["instances"].float_list.value.extend(content)
    feature["annotator_ids"].int64_list.value.extend(annotator_ids)
    kind = "float_list" if ratings else "int64_list"
    getattr(feature["annotator_labels"], kind).value.extend(annotator_labels)
    if gold is not None:
        getattr(feature["gold"], kind).value.append(gold)
    yield split, task, example
