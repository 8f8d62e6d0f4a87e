"""What the runs of a comparison gave, in a file from which a comparison that was stopped goes on."""

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
    """One method on one part of the data.

    Attributes:
        method: name and hyperparameters, as `crowdzoo train` prints them.
        seed: of the part and of the method.
        part: number of the part that was hidden.
        seconds: that it took.
        tasks: codes of the tasks that were asked for, [n].
        answers: to them, [n, K]; see `Compared`.
        faults: what it warned of.
        failed: why there are no answers; "" where there are.
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
    """The runs of one comparison; with a folder they are kept there, each as soon as it is there.

    `runs.parquet` is a folder of Parquet files, a file and a row for each run, as `pandas.read_parquet` reads them.

    Args:
        folder: None keeps nothing.
        identity: what comparisons that share runs have in common, name -> text.

    Raises:
        ConfigError: the folder holds runs of other data or settings; it names the difference.
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
        """The run of a method, a seed and a part."""
        return self._runs[key]

    def add(self, run: Run) -> None:
        """Keeps one more run; its file appears complete or not at all. One that failed is made again the next time."""
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
