"""`crowdzoo aggregate` works with blocks on disk where memory is short, and says so."""

import gzip
import os

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, DawidSkene
from crowdzoo.checks.option_types import num_bytes
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.reading.tables import suffixes as memory
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.testing.aggregators import simulated_crowd


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_annotations(simulated_crowd(num_tasks=80, seed=2)[0], tmp_path / "a.csv")  # 400 annotations
    return tmp_path


def aggregate(*words):
    return cli.main(["aggregate", "a.csv", "--out", "out", *words])


def test_a_short_memory_is_noticed_and_the_result_is_the_same(here, capsys):
    assert aggregate("--method", "dawid-skene", "--memory", "1KB") == 0
    said = capsys.readouterr()
    assert "Out of core: about 4.01e-05 GB would be needed and 1e-06 GB may be used." in said.err
    for words in ("annotations  400", "tasks        80", "annotators   8", "label 0", "(converged)"):
        assert words in said.out, said.out
    found, expected = Aggregation.from_parquet("out"), DawidSkene().fit(Annotations.read("a.csv"))
    np.testing.assert_allclose(found.posteriors, expected.posteriors, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert sorted(each.name for each in here.iterdir()) == ["a.csv", "out"]


def test_it_can_be_asked_for(capsys):
    assert aggregate("--method", "glad", "--out-of-core", "--format", "csv") == 0
    assert "Out of core: as asked for." in capsys.readouterr().err
    assert sorted(os.listdir("out")) == ["annotators.csv", "summary.json", "tasks.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "1KB"], "robust works in memory. These work out of core: majority-vote, dawid-skene"),
        (["--out-of-core"], "robust works in memory. These work out of core: majority-vote, dawid-skene"),
        (["--out-of-core", "--method", "mace"], "mace works in memory"),
        (["--out-of-core", "--task", "regression"], "--out-of-core is for classes; --task regression works in memory"),
        (["--out-of-core", "--method", "dawid-skene", "--gold", "a.csv"], "--gold does not go with --out-of-core"),
        (
            ["--memory", "1KB", "--method", "dawid-skene", "--gold", "a.csv"],
            "and --gold works in memory. Give more --memory, or leave it out.",
        ),
        (
            ["--out-of-core", "--method", "dawid-skene", "--set", "start=one-coin"],
            "does not run out of core with start",
        ),
        (["--out-of-core", "--platform", "toloka"], "--platform does not go with --out-of-core"),
    ],
)
def test_what_cannot_work_out_of_core_is_refused_with_the_way_out(here, capsys, words, message):
    assert aggregate(*words) != 0
    assert message in capsys.readouterr().err
    assert [each.name for each in here.iterdir()] == ["a.csv"]


def test_bad_rows_have_their_place_and_their_file(here, capsys):
    (here / "a.csv").write_text("task,annotator,label\nt1,ann,cat\nt1,,cat\nt2,bob,dog\nt2,bob,cat\n")
    assert aggregate("--method", "majority-vote", "--out-of-core") == 3
    said = capsys.readouterr().err
    assert "a.csv, row 3, column 'annotator': '' is empty." in said
    assert "a.csv, row 5, column 'annotator': 'bob' has labelled task 't2' before, in row 4." in said
    rejecting = "--on-bad-rows", "reject", "--rejects", "bad.csv"
    assert aggregate("--method", "majority-vote", "--out-of-core", *rejecting) == 0
    assert len((here / "bad.csv").read_text().splitlines()) == 3
    assert "rows left out  2" in capsys.readouterr().out


# === How much memory ===


def test_the_memory_of_a_file_follows_its_rows(here):
    assert memory.needed_memory("a.csv") == 401 * memory.BYTES_A_ROW  # with the header
    Annotations.read("a.csv").to_parquet("a.parquet")
    assert memory.needed_memory("a.parquet") == 400 * memory.BYTES_A_ROW
    (here / "wide.csv").write_text("task,ann,bob,cid\n" + "1,a,b,a\n" * 9)
    assert memory.needed_memory("wide.csv", Layout(wide=True)) == 10 * 3 * memory.BYTES_A_ROW
    with pytest.raises(DataError, match="does not exist"):
        memory.needed_memory("absent.csv")


def test_the_rows_of_a_large_text_file_are_estimated_from_its_head(here, monkeypatch):
    monkeypatch.setattr(memory, "HEAD", 1000)
    assert memory.needed_memory("a.csv") == pytest.approx(401 * memory.BYTES_A_ROW, rel=0.2)
    data = (here / "a.csv").read_bytes()
    (here / "a.csv.gz").write_bytes(gzip.compress(data))
    size = (here / "a.csv.gz").stat().st_size
    expected = size * memory.GROWTH * 401 / len(data) * memory.BYTES_A_ROW
    assert memory.needed_memory("a.csv.gz") == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(("text", "expected"), [("8GB", 8e9), ("500 mb", 5e8), ("1.5GiB", 1.5 * 2**30), ("7B", 7)])
def test_a_number_of_bytes_is_read(text, expected):
    assert num_bytes(text) == expected


@pytest.mark.parametrize("text", ["8", "GB", "1e3GB", "8 G", "inf GB", "8XB"])
def test_what_is_no_number_of_bytes_is_refused(text, capsys):
    with pytest.raises(SystemExit):
        aggregate("--memory", text)
    assert "is not a number of bytes, such as 8GB" in capsys.readouterr().err
