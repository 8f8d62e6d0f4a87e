"""Writes data sets as files for the pipeline."""

from pathlib import Path

import numpy as np

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.vocabulary import name_texts
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.errors import DataError
from crowdzoo.files.writing import atomic_file, table_of, write_rows, write_table
from crowdzoo.reading.sentences.span_writing import write_spans
from crowdzoo.reading.tables.annotation_files import write_annotations


def write_files(dataset: CrowdDataset | CrowdSequences, folder: str | Path) -> tuple[Path, ...]:
    """Writes a data set as the files that the pipeline reads.

    `annotations.csv` has the columns task, annotator, label (names; ratings as numbers); `instances.parquet` has task,
    features (list of float32), gold (class name, or true rating) and split, with one row per task. Images are files in
    a folder `images`, named after their tasks, and `instances.csv` has task, image (their paths), gold and split.
    Sentences are one file, `spans.jsonl`, which includes gold.

    Args:
        dataset: data set to write.
        folder: folder to write to, created if missing. Existing files of these names are replaced.

    Returns:
        Paths of annotations.csv and of the file of instances; for sentences the path of spans.jsonl.

    Raises:
        DataError: the annotations of a `CrowdDataset` are of kind "sequence".
    """
    if isinstance(dataset, CrowdSequences):
        return (write_spans(dataset, Path(folder) / "spans.jsonl"),)
    annotations = dataset.annotations
    if annotations.positions is not None:
        raise DataError("write_files takes sentences as CrowdSequences. Received: annotations of kind 'sequence'.")
    classes = annotations.classes
    folder = Path(folder)
    table_path = write_annotations(annotations, folder / "annotations.csv")

    if dataset.instances.dtype == object:
        return table_path, _write_images(dataset, folder)
    instances = table_of(
        {
            "task": annotations.tasks,
            "features": np.asarray(dataset.instances, np.float32),
            "gold": dataset.gold if classes is None else name_texts(classes[dataset.gold]),
            "split": dataset.split,
        }
    )
    instances_path = folder / "instances.parquet"
    with atomic_file(instances_path) as file:
        write_table(instances, file, "parquet")
    return table_path, instances_path


def _write_images(dataset: CrowdDataset, folder: Path) -> Path:
    """Writes JPEG files, and the table of them."""
    annotations = dataset.annotations
    assert annotations.classes is not None  # only ratings have no classes
    names = [f"images/{task}.jpg" for task in annotations.tasks.tolist()]
    for name, content in zip(names, dataset.instances, strict=True):
        with atomic_file(folder / name) as file:
            file.write(content)
    columns = (annotations.tasks, names, annotations.classes[dataset.gold], dataset.split)
    return write_rows(folder / "instances.csv", ("task", "image", "gold", "split"), zip(*columns, strict=True))
