"""A model's folder that travels: saved, described, loaded again, sent to a hub and fetched from there."""

import base64
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import keras
import numpy as np
import pytest
import yaml

import crowdzoo
from crowdzoo import Annotations, CrowdModel
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.export import save_pretrained
from crowdzoo.files.model_files import read_model_names
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import FeatureClassifier

X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
ANNOTATIONS = Annotations.from_arrays(
    [0, 0, 1, 2, 3, 4, 5], ["ann", "bob", "ann", "bob", "ann", "bob", "ann"], [*"aabbcca"]
)


@pytest.fixture
def model():
    keras.utils.set_random_seed(0)
    made = CrowdModel(FeatureClassifier(4, 3), CrowdsourcedLayer(2))
    made.fit(X, ANNOTATIONS, verbose=0)
    return made


def front_matter(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


def test_a_folder_loads_with_names_matrices_and_a_card(model, tmp_path):
    folder = save_pretrained(
        model, tmp_path / "zoo", licence="cc-by-4.0", training={"sha-256": "1f"}, card={"accuracy": 0.76, "by": "a|b"}
    )
    for load in (crowdzoo.load_model, keras.saving.load_model):
        np.testing.assert_array_equal(load(folder).predict(X, verbose=0), model.predict(X, verbose=0))
    names = read_model_names(folder / "crowdzoo.json")
    assert (names["classes"], names["annotators"], names["training"]) == (
        ["a", "b", "c"], ["ann", "bob"], {"sha-256": "1f"}
    )  # fmt: skip
    np.testing.assert_array_equal(np.load(folder / "confusions.npy"), model.annotator_confusions())
    front = front_matter(folder)
    assert (front["license"], front["library_name"], front["metrics"]) == ("cc-by-4.0", "keras", ["accuracy"])
    text = (folder / "README.md").read_text(encoding="utf-8")
    for line in ("| method | CrowdsourcedLayer |", "| accuracy | 0.76 |", "| by | a\\|b |", "| sha-256 | 1f |"):
        assert line in text
    assert "| intended use | Estimates for" in text
    with pytest.raises(ConfigError, match="not empty"):
        save_pretrained(model, folder)


def test_a_base_alone_has_no_matrices(tmp_path):
    folder = save_pretrained(CrowdModel(FeatureClassifier(4, 3)), tmp_path / "base")
    assert not (folder / "confusions.npy").exists()
    assert read_model_names(folder / "crowdzoo.json")["annotators"] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["metadata.json", "model.weights.h5"])
def test_a_folder_without_a_part_is_named(model, tmp_path, part):
    folder = save_pretrained(model, tmp_path / "zoo")
    (folder / part).unlink()
    with pytest.raises(DataError, match=f"{part} does not exist"):
        crowdzoo.load_model(folder)


@pytest.mark.slow
def test_the_command_writes_a_folder_and_exports_it_for_serving(model, tmp_path, capsys, refusal_of):
    model.save(tmp_path / "model.keras")
    known = {"classes": ["a", "b", "c"], "annotators": ["ann", "bob"], "training": {"method": "crowdsourced-layer"}}
    (tmp_path / "model.names.json").write_text(json.dumps({**known, "format_version": 1}))
    file, folder, served = (str(tmp_path / name) for name in ("model.keras", "zoo", "served"))
    assert main(["export", file, folder, "--hub", "mit", "--card", "accuracy=0.5"]) == 0
    assert read_model_names(tmp_path / "zoo" / "crowdzoo.json") == known
    assert front_matter(tmp_path / "zoo") | {"tags": []} == {
        "license": "mit", "library_name": "keras", "tags": [], "metrics": ["accuracy"]
    }  # fmt: skip
    assert main(["export", folder, served]) == 0
    assert (tmp_path / "served" / "1" / "saved_model.pb").is_file()
    capsys.readouterr()
    assert "give --hub LICENCE" in refusal_of("export", file, served, "--card", "accuracy=0.5")


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's API as an upload and a download of small files need."""

    files: dict[str, bytes]
    commit = "0" * 40

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, content: object, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/repos/create"):
            self._answer({"url": f"http://{self.headers['Host']}/me/zoo", "id": "me/zoo"})
        elif "/preupload/" in self.path:
            paths = [file["path"] for file in json.loads(body)["files"]]
            self._answer({"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            url = f"http://{self.headers['Host']}/me/zoo/commit/{self.commit}"
            self._answer({"commitUrl": url, "commitOid": self.commit})
        else:
            self._answer({})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "/resolve/" in path:
            name = path.split("/resolve/")[1].partition("/")[2]
            self._answer(self.files[name], ETag=f'"{len(name)}"', X_Repo_Commit=self.commit)
        elif "/tree/" in path:
            sizes = {name: len(content) for name, content in self.files.items()}
            self._answer([{"type": "file", "path": name, "size": size, "oid": "0"} for name, size in sizes.items()])
        else:
            siblings = [{"rfilename": name} for name in self.files]
            self._answer({"id": "me/zoo", "sha": self.commit, "siblings": siblings, "private": False, "tags": []})

    def do_HEAD(self) -> None:
        self.do_GET()


CHILD = """
import sys
import keras
import numpy as np
import crowdzoo
from huggingface_hub import HfApi

folder, x, out = sys.argv[1:]
api = HfApi()
api.create_repo("me/zoo", exist_ok=True)
api.upload_folder(repo_id="me/zoo", folder_path=folder)
np.save(out, keras.saving.load_model("hf://me/zoo").predict(np.load(x), verbose=0))
"""


@pytest.mark.slow
def test_a_model_is_pushed_to_a_stand_in_of_the_hub_and_loaded_from_there(model, tmp_path):
    pytest.importorskip("huggingface_hub")
    folder = save_pretrained(model, tmp_path / "zoo")
    np.save(tmp_path / "x.npy", X)
    hub = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Hub,), {"files": {}}))
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    try:
        environment = os.environ | {
            "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HOME": str(tmp_path / "cache"),
            "HF_TOKEN": "hf_none", "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1", "HF_HUB_OFFLINE": "0",
        }  # fmt: skip
        command = [sys.executable, "-c", CHILD, str(folder), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    finally:
        hub.shutdown()
        hub.server_close()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model.predict(X, verbose=0))
