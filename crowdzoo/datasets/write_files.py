"""A data set as files for the pipeline."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.errors import DataError

__all__ = ["write_files"]


def write_files(dataset: CrowdDataset, folder: str | Path) -> tuple[Path, Path]:
    """Writes a data set as the two files that the pipeline reads.

    `annotations.csv` has the columns task, annotator, label (names); `instances.parquet` has task, features (list of
    float32), gold (class name) and split, one row a task.

    Args:
        dataset: what to write.
        folder: is made where it is missing. Files of these names there are replaced.

    Returns:
        Paths of annotations.csv and instances.parquet.

    Raises:
        DataError: the annotations are not of kind "classification".
    """
    annotations = dataset.annotations
    if annotations.kind != "classification" or annotations.classes is None:
        raise DataError(f"write_files takes annotations of kind 'classification'. Received: kind {annotations.kind!r}.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    table_path = folder / "annotations.csv"
    columns = (
        annotations.tasks[annotations.task_ids],
        annotations.annotators[annotations.annotator_ids],
        annotations.classes[annotations.labels],
    )
    with open(table_path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("task", "annotator", "label"))
        writer.writerows(zip(*columns, strict=True))

    num_tasks, num_features = dataset.instances.shape
    values = pa.array(np.ascontiguousarray(dataset.instances, dtype=np.float32).ravel())
    offsets = pa.array(np.arange(num_tasks + 1) * num_features, pa.int32())
    instances = pa.table(
        {
            "task": pa.array(annotations.tasks.tolist()),
            "features": pa.ListArray.from_arrays(offsets, values),
            "gold": pa.array([str(name) for name in annotations.classes[dataset.gold]]),
            "split": pa.array(dataset.split.tolist()),
        }
    )
    instances_path = folder / "instances.parquet"
    pyarrow.parquet.write_table(instances, instances_path)
    return table_path, instances_path
