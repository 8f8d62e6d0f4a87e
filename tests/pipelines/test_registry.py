"""A model on its way through MLflow's own server: from one machine's served folder to another's, and its gate."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet
import pytest

ROOT = Path(__file__).parents[2]
SERVER = ROOT / ".engines" / "mlflow" / "bin" / "mlflow"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("engines"),
    pytest.mark.skipif(not SERVER.exists(), reason=f"no {SERVER.relative_to(ROOT)}: run `make engines`"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server with SQLite, which also keeps the artifacts."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = ("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "files"))
    command = [SERVER, "server", *places, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "PATH": f"{SERVER.parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def ask(address, path):
    """What the server's REST API answers."""
    with urllib.request.urlopen(f"{address}/api/2.0/mlflow/{path}", timeout=30) as answer:
        return json.loads(answer.read())


def test_a_model_travels_by_the_registry_and_answers_and_guards_alike(server, make_inputs, tmp_path):
    make_inputs(tmp_path)
    environment = {**os.environ, "MLFLOW_TRACKING_URI": server, "CROWDZOO_COMMIT": "c0ffee"}

    def crowdzoo(*words, code=0):
        """What a command of a fresh process prints."""
        command = [sys.executable, "-W", "ignore", "-m", "crowdzoo", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200)
        assert done.returncode == code, done.stdout + done.stderr[-3000:]
        return done.stdout

    crowdzoo("run", "tiny.yaml")
    served = tmp_path / "out" / "serving"
    registered = crowdzoo("register", served, "--name", "pets", "--alias", "stable")
    assert registered.startswith("models:/pets/1, stable: registered at http://127.0.0.1:")
    entry = ask(server, "registered-models/alias?name=pets&alias=stable")["model_version"]
    tags = {tag["key"]: tag["value"] for tag in entry["tags"]}
    assert tags["crowdzoo.files.annotations"] == str(tmp_path / "answers.csv")
    assert tags["crowdzoo.commit"] == "c0ffee"
    metrics = {
        each["key"]: each["value"]
        for each in ask(server, f"runs/get?run_id={entry['run_id']}")["run"]["data"]["metrics"]
    }
    assert tags["crowdzoo.blessing.candidate.accuracy"] == str(metrics["accuracy"])

    version = Path(crowdzoo("fetch", "models:/pets@stable", "fetched/pets").strip())
    assert crowdzoo("lineage", version, "--verify", "answers.csv").startswith("answers.csv: is the input annotations")
    expected = crowdzoo("predict", served, "instances.parquet")
    assert crowdzoo("predict", "fetched/pets", "instances.parquet") == expected
    assert crowdzoo("predict", "models:/pets@stable", "instances.parquet") == expected
    loads = (
        "import mlflow.tensorflow, numpy, pyarrow.parquet\n"
        "table = pyarrow.parquet.read_table('instances.parquet')\n"
        "rows = numpy.array(table['features'].to_pylist(), 'float32')\n"
        "model = mlflow.tensorflow.load_model('models:/pets@stable')\n"
        "print(*(name.decode() for name in model.signatures['serving_default'](instances=rows)['class'].numpy()))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", loads]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    classes = [line.split(",")[1] for line in expected.splitlines()[1:]]
    assert len(classes) == pyarrow.parquet.read_table(tmp_path / "instances.parquet").num_rows
    assert done.stdout.split() == classes, "MLflow's own library loads it, too"

    settings = ("output.serving=fetched/pets", "training.epochs=1", "training.learning_rate=1e-7")
    other = [word for setting in settings for word in ("--set", setting)]
    printed = crowdzoo("run", "tiny.yaml", *other, "--fail-unless", "pushed", code=9)
    assert f"of version {version.name}" in printed, "it is compared with the one that was fetched"
    assert [path.name for path in (tmp_path / "fetched" / "pets").iterdir()] == [version.name]
