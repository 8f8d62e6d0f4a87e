"""Parquet files that somebody made on purpose: none runs code, all end in a `DataError`."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote, RatingMean
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.files.arrow import parquet_batches, parse_csv, parse_json_lines, read_parquet

ROOT = Path(__file__).resolve().parents[2]
GOOD = "task,annotator,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n2,bob,dog\n"
CONFIG = "name: pets\ndata: {annotations: %s, instances: %s}\noutput: {root: out}\n"
REFUSED = "Python extension type" if hasattr(pa, "PyExtensionType") else ""


@pytest.mark.parametrize(("form", "chunk"), [("csv", b"a,1\nb,2\n"), ("json", b'{"0": "a"}\n{"0": "b"}\n')])
def test_arrow_does_not_read_from_memory_of_python(form, chunk, monkeypatch):
    # a thread of Arrow may let it go when Python has ended, which aborts: one of 80 commands that failed early did
    module, places = getattr(pyarrow, form), []
    original = getattr(module, f"read_{form}")

    def reading(source, **options):
        places.append(source.read_buffer().address)
        source.seek(0)
        return original(source, **options)

    monkeypatch.setattr(module, f"read_{form}", reading)
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
    if form == "csv":
        found = parse_csv(chunk, ends, ",", 2, {0: pa.large_string()})
    else:
        found = parse_json_lines(chunk, ends, {"0": pa.large_string()})
    assert found[0].to_pylist() == ["a", "b"]
    assert places != [np.frombuffer(chunk, np.uint8).ctypes.data]


class _MakesAMarker:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def malicious(path, marker, names=("task", "annotator", "label", "gold", "text", "features")):
    """A sound Parquet file of strings whose first column says that it is a pickled Python type."""
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(_MakesAMarker(marker)),
    }
    fields = [pa.field(name, pa.string(), metadata=metadata if name == names[0] else None) for name in names]
    pq.write_table(pa.table([pa.array(["1", "2"])] * len(names), schema=pa.schema(fields)), path)


SIGNATURES = {"serving_default": {"inputs": {"instances": {"dtype": "float32", "shape": [None, 2]}}, "outputs": {}}}
COMMANDS = (
    "aggregate bad.parquet --out out",
    "aggregate good.csv --gold bad.parquet --out out",
    "quality bad.parquet",
    "train good.csv bad.parquet --out model.keras",
    "train bad.parquet instances.csv --out model.keras",
    "predict served bad.parquet",
    "run check.yaml --check",
    "run instances.yaml --check",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_code_out_of_a_parquet_file(command, tmp_path, here, capsys):
    malicious("bad.parquet", tmp_path / "marker")
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "instances.csv").write_text("task,f0\n1,0.5\n2,2.5\n")
    (tmp_path / "check.yaml").write_text(CONFIG % ("bad.parquet", "instances.csv"))
    served = tmp_path / "served" / "1"
    (served / "assets.extra").mkdir(parents=True)
    (served / "saved_model.pb").write_bytes(b"")
    (served / "assets.extra" / "model_card.json").write_text(json.dumps({"signatures": SIGNATURES}))
    (tmp_path / "instances.yaml").write_text(CONFIG % ("good.csv", "bad.parquet"))
    code = cli.main(command.split())
    message = capsys.readouterr().err
    assert not (tmp_path / "marker").exists()
    assert code in (3, 4)
    assert "bad.parquet" in message
    assert REFUSED in message


def test_no_result_folder_runs_code(tmp_path):
    crowd = Annotations.from_arrays([1, 1, 2], ["a", "b", "a"], ["x", "y", "y"])
    ratings = Annotations.from_arrays([1, 1, 2], ["a", "b", "a"], [1.0, 2.0, 3.0], kind="regression")
    for result in (MajorityVote().fit(crowd), RatingMean().fit(ratings)):
        for name in ("tasks.parquet", "annotators.parquet"):
            folder = result.to_parquet(tmp_path / f"{type(result).__name__}-{name}")
            malicious(folder / name, tmp_path / "marker", ("task", "annotator"))
            with pytest.raises(DataError, match=name):
                type(result).from_parquet(folder)
            assert not (tmp_path / "marker").exists()


def test_opening_the_door_stops_the_pickles_of_everybody_in_the_process(tmp_path):
    malicious(tmp_path / "bad.parquet", tmp_path / "marker")
    code = (
        "import crowdzoo.files.arrow, pyarrow.parquet as pq, contextlib, sys\n"
        "with contextlib.suppress(Exception):\n    pq.ParquetFile(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bad.parquet")], check=True)
    assert not (tmp_path / "marker").exists()


def test_no_other_module_opens_files_with_arrow():
    calls = re.compile(r"\b(pq|parquet)\.read_table\(|ParquetFile\(|read_schema\(|\bread_csv\(|pyarrow\.json")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("crowdzoo", "components", "pipelines", "serving")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != ROOT / "crowdzoo/files/arrow.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if calls.search(line) and "write" not in line
    ]
    assert found == []


def test_whatever_cannot_be_read_is_a_data_error_that_names_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"task": ["a", "b"] * 500}), path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-3], whole[:100], whole[:20] + b"\xff" * 40 + whole[60:], b"PAR1" * 100):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t\.parquet"):
            read_parquet(path)


READ_CHANGED = """
import sys
from pathlib import Path
from crowdzoo import Annotations
from crowdzoo.errors import DataError
path, content = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
for place in range(500, 720):
    path.write_bytes(content[:place] + b"\\1" + content[place + 1 :])
    try:
        Annotations.read(path)
    except DataError:
        pass
print("read")
"""


def test_one_changed_byte_of_a_parquet_file_ends_no_process(tmp_path):
    """Where a column ends early, Arrow's reader in batches takes memory for it that is not there."""
    table = {"task": [f"t{i}" for i in range(8)], "annotator": ["a", "b"] * 4, "label": ["x", "y"] * 4}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path, compression="none", data_page_version="2.0", row_group_size=4)
    done = subprocess.run([sys.executable, "-c", READ_CHANGED, path], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "read\n")


def test_batches_of_a_parquet_file_keep_to_their_rows(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": range(10), "y": ["a"] * 10}), path, row_group_size=7)
    batches = list(parquet_batches(path, ["y", "x"], 4))
    assert [batch.num_rows for batch in batches] == [4, 3, 3]
    assert [value for batch in batches for value in batch.column("x").to_pylist()] == list(range(10))
