"""Instances in a folder are those in memory, whatever they are and however many parts they were read in."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from crowdzoo.errors import DataError
from crowdzoo.instances import read_instances, recognised
from crowdzoo.reading.instances import table
from crowdzoo.reading.tables import sources

N = 700  # rows, of which a part has 256 at most
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=N).round(3)
VECTORS = RNG.normal(size=(N, 3)).round(3)
BESIDE = {
    "task": [f"t{row}" for row in range(N)],
    "gold": ["", "cat", "dog"] * (N // 3) + [""] * (N % 3),
    "split": ["train", "eval"] * (N // 2),
}
TEXT = [f"text {row}" + " 中文" * (row % 3) for row in range(N)]
COLOURS = np.array(["red", "green", "", "blue"])[RNG.integers(0, 4, N)].tolist()
TABLES = {
    "columns of numbers": {"a": NUMBERS, "b": VECTORS[:, 0]},
    "lists": {"features": VECTORS.tolist()},
    "texts": {"text": TEXT},
    "columns": {
        "size": [None if row % 7 == 0 else float(row) for row in range(N)],
        "written": [("" if row % 5 == 0 else f" {row}.5 ") for row in range(N)],
        "colour": COLOURS,
        "text": TEXT,
    },
    "columns and vectors": {"colour": pa.array(COLOURS).dictionary_encode(), "vector": VECTORS.tolist()},
}
BROKEN = {
    "a word among numbers": ({"size": ["1", *["2"] * 300, *["many"] * 11, *["3"] * (N - 312)], "text": TEXT}, 11),
    "an empty text": ({"text": ["", *TEXT[1:-1], " "]}, 2),
    "another length": ({"features": [[1.0], *[[1.0, 2.0]] * (N - 2), [1.0, 2.0, 3.0]]}, 2),
    "an infinite feature": ({"a": [np.inf, *NUMBERS[1:-1], -1e39]}, 2),
    "ids": ({"name": [f"n{row}" for row in range(N)], "a": NUMBERS}, 0),
    "dates": ({"day": ["2026-01-01", "2026-01-02"] * (N // 2), "a": NUMBERS}, 0),
    "decimal commas": ({"size": [f"{row},5" for row in range(N)], "a": NUMBERS, "colour": COLOURS}, N),
    "a column without a value": ({"size": [""] * N, "a": NUMBERS}, 0),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(table, "_PART_BYTES", 1)
    monkeypatch.setattr(sources, "CHUNK_BYTES", 4096)


def write(path, columns):
    made = pa.table(BESIDE | columns)
    if path.suffix == ".parquet":
        pq.write_table(made, path)
    else:
        pyarrow.csv.write_csv(made, path)
    return path


def both(path, tmp_path):
    """The instances in memory and in a folder, or the errors."""
    folder = tmp_path / "stored"
    folder.mkdir()
    found = []
    for where in (None, folder):
        try:
            found.append(read_instances(path, recognised(path), folder=where))
        except DataError as error:
            found.append(error)
    return found


def assert_equal(stored, values):
    assert stored.dtype == values.dtype
    assert stored.shape == values.shape
    for rows in (slice(None), slice(250, 260), slice(3, 3), np.array([N - 1, 0, 300])):
        np.testing.assert_array_equal(stored[rows], values[rows])
    for row in (0, 300, np.int64(N - 1)):
        np.testing.assert_array_equal(stored[row], values[row])
        assert isinstance(stored[row], type(values[row]))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_they_are_equal(name, ending, tmp_path):
    if ending == ".csv" and any(isinstance(column[0], list) for column in TABLES[name].values()):
        pytest.skip("CSV has no lists")
    memory, stored = both(write(tmp_path / f"a{ending}", TABLES[name]), tmp_path)
    assert memory.kind == stored.kind
    assert memory.names == stored.names
    for field in ("tasks", "gold", "split", "rows"):
        assert getattr(memory, field).tolist() == getattr(stored, field).tolist()
    if isinstance(memory.values, dict):
        assert list(memory.values) == list(stored.values)
        for column, values in memory.values.items():
            assert_equal(stored.values[column], values)
    else:
        assert_equal(stored.values, memory.values)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("name", BROKEN)
def test_they_are_refused_for_the_same_rows(name, ending, tmp_path):
    columns, total = BROKEN[name]
    if ending == ".csv" and "features" in columns:
        pytest.skip("CSV has no lists")
    memory, stored = both(write(tmp_path / f"a{ending}", columns), tmp_path)
    assert isinstance(memory, DataError)
    assert str(stored) == str(memory)
    assert stored.total == memory.total == total


def test_lists_that_are_missing_are_named_after_those_of_the_other_parts(tmp_path):
    path = write(tmp_path / "a.parquet", {"features": [None, *VECTORS.tolist()[1:-1], None]})
    memory, stored = both(path, tmp_path)
    assert str(stored) == str(memory)
    assert stored.total == 2
