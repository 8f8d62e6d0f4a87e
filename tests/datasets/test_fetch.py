"""Public crowd sets: what is downloaded is what the set was, or nothing is written."""

import gzip
import importlib.util
import re
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from crowdzoo import datasets
from crowdzoo.commands.main import main
from crowdzoo.datasets import data_folder, fetch, public_files
from crowdzoo.errors import DataError

MODULE = importlib.import_module("crowdzoo.datasets.fetch")
ROOT = Path(__file__).parents[2]
CONTENT = b"item,worker,label\n1,2,0\n"


class Files(BaseHTTPRequestHandler):
    asked = 0
    files: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(404 if self.path == "/gone.csv" else 200)
        self.end_headers()
        self.wfile.write(self.files.get(self.path, CONTENT))


@pytest.fixture
def use_table(monkeypatch):
    """Has a table of files in the place of the public one."""

    def use(table):
        for place in (MODULE, datasets):
            monkeypatch.setattr(place, "public_files", lambda: table)

    return use


@pytest.fixture
def server(monkeypatch, use_table):
    kind = type("Own", (Files,), {})
    served = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    address = f"http://127.0.0.1:{served.server_port}"
    rows = {"licence": "MIT", "sha256": sha256(CONTENT).hexdigest()}
    table = {
        "tiny": [{**rows, "url": f"{address}/label.csv", "file": "sets/tiny/label.csv"}],
        "other": [{**rows, "url": f"{address}/label.csv", "file": "sets/other.csv", "sha256": "0" * 64}],
        "gone": [{**rows, "url": f"{address}/gone.csv", "file": "sets/gone.csv"}],
        "off": [{**rows, "url": "http://127.0.0.1:1/label.csv", "file": "sets/off.csv"}],
    }
    use_table(table)
    kind.address = address
    yield kind
    served.shutdown()
    served.server_close()


def test_a_set_is_written_once_into_the_folder_of_data(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CROWDZOO_DATA", str(tmp_path))
    path = tmp_path / "sets" / "tiny" / "label.csv"
    assert main(["datasets", "tiny", "--fetch"]) == 0
    assert path.read_bytes() == CONTENT
    assert capsys.readouterr().out.splitlines() == [str(path), "licence: MIT"]
    assert fetch("tiny") == [path]
    assert server.asked == 1
    path.write_bytes(b"damaged")
    assert fetch("tiny")[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other", f"has the SHA-256 {sha256(CONTENT).hexdigest()}, and the set had 0000"),
        ("gone", "cannot be fetched: HTTP Error 404"),
        ("off", "Try again where there is a connection"),
        ("tinny", "Did you mean 'tiny'"),
    ],
)
def test_trouble_is_named_and_nothing_is_written(server, tmp_path, name, says):
    with pytest.raises(DataError, match=says):
        fetch(name, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_fetch_needs_a_name(capsys, refusal_of):
    assert "crowdzoo datasets rte --fetch" in refusal_of("datasets", "--fetch")
    assert main(["datasets", "rte"]) == 3
    assert "'rte' is not here: get its files by `crowdzoo data" in capsys.readouterr().err


def test_every_file_has_a_commit_and_a_licence():
    for name, rows in public_files().items():
        for row in rows:
            assert row["url"].startswith("https://raw.githubusercontent.com/"), name
            assert len(row["url"].split("/")[5]) == 40
            known = {"MIT", "Apache-2.0", "BSD-3-Clause-Clear", "GPL-3.0", "none stated"}
            assert row["licence"].partition(";")[0] in known
            assert ".." not in row["file"]


def test_the_page_names_every_crowd_of_the_tables_and_every_set():
    page = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", page))
    crowds = importlib.util.spec_from_file_location("real_crowds", ROOT / "benchmarks" / "real_crowds.py")
    module = importlib.util.module_from_spec(crowds)
    sys.modules["real_crowds"] = module  # dataclasses look there
    crowds.loader.exec_module(module)
    del sys.modules["real_crowds"]
    assert {*module.CROWDS, *public_files()} - words == set()


def test_the_sets_of_the_papers_have_names():
    assert {"labelme-amt", "music", "movie-reviews", "ner-amt"} <= {*public_files()}


@pytest.mark.skipif(not (data_folder() / "truth-inference").is_dir(), reason="needs the raw data sets")
@pytest.mark.parametrize("name", ["music", "movie-reviews", "ner-amt"])
def test_what_is_fetched_of_a_paper_s_set_is_what_its_loader_reads(
    server, use_table, tmp_path, monkeypatch, capsys, name
):
    rows, files = public_files()[name], {}
    for row in rows:
        content = (data_folder() / row["file"]).read_bytes()
        place = "/" + row["url"].rpartition("/")[2] + str(len(files))
        files[place] = gzip.decompress(content) if row["file"].endswith(".gz") else content
        row["url"] = f"{server.address}{place}"
    server.files = files
    use_table({name: rows})
    monkeypatch.setenv("CROWDZOO_DATA", str(tmp_path))
    assert main(["datasets", name, "--fetch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) + len({row["licence"] for row in rows})
    assert fetch(name)  # all files are kept
    assert server.asked == len(rows)
    for row in rows:
        packed = row["file"].endswith(".gz")
        content = (tmp_path / row["file"]).read_bytes()
        assert sha256(gzip.decompress(content) if packed else content).hexdigest() == row["sha256"]
    path = tmp_path / rows[-1]["file"]
    path.write_bytes(path.read_bytes()[:-9])
    assert fetch(name)
    assert server.asked == len(rows) + 1  # the damaged one


@pytest.mark.skipif(not (data_folder() / "truth-inference").is_dir(), reason="needs the raw data sets")
def test_the_sums_are_those_of_the_sets_that_the_tables_were_made_of():
    for rows in public_files().values():
        for row in rows:
            path = data_folder() / row["file"]
            content = path.read_bytes() if path.exists() else path.with_suffix(".csv.gz").read_bytes()
            if path.suffix == ".gz" or not path.exists():
                content = gzip.decompress(content)
            assert sha256(content).hexdigest() == row["sha256"]
