"""Public crowd sets: what is downloaded is what the set was, or nothing is written."""

import gzip
import importlib.util
import re
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crowdzoo.commands.main import main
from crowdzoo.datasets import data_folder, fetch, public_files
from crowdzoo.errors import DataError

MODULE = importlib.import_module("crowdzoo.datasets.fetch")
ROOT = Path(__file__).parents[2]
CONTENT = b"item,worker,label\n1,2,0\n"


class Files(BaseHTTPRequestHandler):
    asked = 0

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(404 if self.path == "/gone.csv" else 200)
        self.end_headers()
        self.wfile.write(CONTENT)


@pytest.fixture
def server(monkeypatch):
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
    monkeypatch.setattr(MODULE, "public_files", lambda: table)
    monkeypatch.setattr("crowdzoo.datasets.public_files", lambda: table)
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


def test_fetch_needs_a_name(capsys):
    assert main(["datasets", "--fetch"]) == 4
    assert "crowdzoo datasets rte --fetch" in capsys.readouterr().err
    assert main(["datasets", "rte"]) == 3
    assert "'rte' is not here: get its files by `crowdzoo datasets rte --fetch`" in capsys.readouterr().err


def test_every_file_has_a_commit_and_a_licence():
    for name, rows in public_files().items():
        for row in rows:
            assert row["url"].startswith("https://raw.githubusercontent.com/"), name
            assert len(row["url"].split("/")[5]) == 40
            assert row["licence"] in {"MIT", "Apache-2.0", "BSD-3-Clause-Clear"}
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


@pytest.mark.skipif(not (data_folder() / "truth-inference").is_dir(), reason="needs the raw data sets")
def test_the_sums_are_those_of_the_sets_that_the_tables_were_made_of():
    for rows in public_files().values():
        for row in rows:
            path = data_folder() / row["file"]
            content = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".csv.gz").read_bytes())
            assert sha256(content).hexdigest() == row["sha256"]
