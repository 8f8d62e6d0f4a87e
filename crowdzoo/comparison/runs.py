"""Stored results of a comparison's runs, from which an interrupted comparison resumes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.arrow import read_parquet
from crowdzoo.files.writing import atomic_file

FOLDER = "runs.parquet"
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("seed", pa.int64()),
        ("part", pa.int32()),
        ("seconds", pa.float64()),
        ("tasks", pa.list_(pa.int64())),
        ("answers", pa.list_(pa.list_(pa.float64()))),
        ("faults", pa.list_(pa.string())),
        ("failed", pa.string()),
    ]
)
IDENTITY = b"crowdzoo.comparison"


@dataclass(frozen=True)
class Run:
    """Result of one method on one part of the data.

    Attributes:
        method: name and hyperparameters, as `crowdzoo train` prints them.
        seed: seed of the split and of the method.
        part: number of the hidden part.
        seconds: duration of the run.
        tasks: codes of the predicted tasks, [n].
        answers: predictions for these tasks, [n, K]; see `Measure`.
        faults: warnings of the run.
        failed: why there are no answers; "" if the run succeeded.
    """

    method: str
    seed: int
    part: int
    seconds: float
    tasks: NDArray[np.int64]
    answers: NDArray[np.float64]
    faults: list[str]
    failed: str = ""


class Runs:
    """The runs of one comparison; with a folder, each run is stored when it is done.

    `runs.parquet` is a folder of Parquet files, one file with one row per run, which `pandas.read_parquet` can read.

    Args:
        folder: folder for `runs.parquet`; None stores nothing.
        identity: data and settings that must match for comparisons to share runs, name -> text.

    Raises:
        ConfigError: the folder contains runs of other data or settings; the message names the difference.
        DataError: a file is damaged.
    """

    def __init__(self, folder: Path | None, identity: dict[str, str]):
        self._folder = None if folder is None else folder / FOLDER
        self._identity = identity
        self._runs: dict[tuple[str, int, int], Run] = {}
        if self._folder is not None:
            for file in sorted(self._folder.glob("[!.]*.parquet")):
                self._read(file)

    def __contains__(self, key: tuple[str, int, int]) -> bool:
        return key in self._runs

    def get(self, *key: Any) -> Run:
        """Return the run of a method, a seed and a part."""
        return self._runs[key]

    def add(self, run: Run) -> None:
        """Store a run, writing its file atomically. A failed run is repeated next time."""
        key = run.method, run.seed, run.part
        self._runs[key] = run
        if self._folder is None or run.failed:
            return
        table = pa.Table.from_pylist([{**vars(run), "answers": run.answers.tolist()}], SCHEMA)
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
        with atomic_file(self._folder / f"{name}.parquet") as file:
            pq.write_table(table.replace_schema_metadata({IDENTITY: json.dumps(self._identity)}), file)

    def _read(self, file: Path) -> None:
        try:
            table = read_parquet(file)
            (row,), stored = table.to_pylist(), json.loads(table.schema.metadata[IDENTITY])
            tasks, answers = np.array(row.pop("tasks"), int), np.array(row.pop("answers"), float)
            run = Run(**row, tasks=tasks, answers=answers)
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{file}: holds no run of a comparison. Remove it, or name another folder.") from error
        other = [name for name in {**stored, **self._identity} if stored.get(name) != self._identity.get(name)]
        if other:
            raise ConfigError(
                f"{file.parent}: its runs are of other {', '.join(other)}. Name another folder, or begin "
                "again with --force (in Python: remove it)."
            )
        self._runs[run.method, run.seed, run.part] = run
