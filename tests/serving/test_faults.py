"""What goes wrong in operation, on real processes under load: killed, told to stop, a broken version, a full disk."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client

SERVE = """
import sys
from crowdzoo.serving import serve
serve(sys.argv[1], name="pets", rest_port=int(sys.argv[2]), grpc_port=int(sys.argv[3]), poll_seconds=0.2)
"""
# copies a model into a serving folder on a disk on which no file may have more bytes than this
PUSH = """
import resource, sys
from crowdzoo.components.push_version import push_version
from crowdzoo.errors import PipelineError
most = int(sys.argv[3])
if most:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    print(push_version(sys.argv[1], sys.argv[2]).name)
except PipelineError as error:
    sys.exit(str(error))
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder, ports):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder), *map(str, ports)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    for line in process.stdout:
        if line.startswith("Ctrl-C"):
            return process
    raise AssertionError(process.stderr.read())


class Load:
    """Clients of both protocols that ask without a pause; every answer is compared with what is expected."""

    def __init__(self, ports, instances, expected):
        self._ports, self._instances, self._expected = ports, instances, expected
        self._body = json.dumps({"instances": instances.astype(float).tolist()}).encode()
        self.outcomes = Counter()
        self.wrong = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._rest, self._rest, self._grpc, self._grpc)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_for("REST answered", "gRPC answered")
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for(self, *outcomes, more=20):
        before, end = Counter(self.outcomes), time.monotonic() + 120
        while any(self.outcomes[one] < before[one] + more for one in outcomes):
            assert time.monotonic() < end, (self.outcomes, self.wrong)
            time.sleep(0.02)

    def _check(self, protocol, probabilities):
        close = [np.allclose(probabilities, one, atol=1e-6) for one in self._expected]
        if not any(close):
            self.wrong.append((protocol, probabilities))
        self.outcomes[f"{protocol} answered"] += 1

    def _rest(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._ports[0], timeout=30)
        while not self._stop.is_set():
            try:
                connection.request("POST", "/v1/models/pets:predict", self._body)
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException):  # no answer at all
                connection.close()
                self.outcomes["REST no connection"] += 1
                time.sleep(0.02)
                continue
            try:
                content = json.loads(answer.read())
                if answer.status != 200:
                    self.wrong.append((answer.status, content))
                self._check("REST", [row["probabilities"] for row in content["predictions"]])
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:  # half an answer
                self.wrong.append(error)
                connection.close()
        connection.close()

    def _grpc(self):
        with Client(f"grpc://127.0.0.1:{self._ports[1]}", model="pets", timeout=30) as client:
            while not self._stop.is_set():
                try:
                    self._check("gRPC", client.predict(self._instances)["probabilities"])
                except ServingError:
                    self.outcomes["gRPC no connection"] += 1
                    time.sleep(0.02)


@pytest.fixture
def running(tmp_path, export_version, pets, instances):
    """A folder with version 2, its server as a process, and clients of it."""
    folder = tmp_path / "served"
    shutil.copytree(pets.folder / "2", folder / "2")
    time.sleep(2.5)  # files at rest
    ports = free_port(), free_port()
    expected = [pets.models[version].predict(instances, verbose=0) for version in (2, 1)]

    class Running:
        process = start(folder, ports)

    Running.folder, Running.ports = folder, ports
    Running.load = lambda newer=False: Load(ports, instances, expected if newer else expected[:1])
    yield Running
    if Running.process.poll() is None:
        Running.process.kill()
    Running.process.communicate(timeout=60)


@pytest.mark.slow
def test_a_server_that_is_killed_under_load_leaves_no_half_answer_and_its_successor_answers(running):
    with running.load() as load:
        running.process.kill()
        running.process.communicate(timeout=60)
        load.wait_for("REST no connection", "gRPC no connection")
        running.process = start(running.folder, running.ports)
        load.wait_for("REST answered", "gRPC answered")
    assert load.wrong == []


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_under_load_ends_well_and_leaves_no_half_answer(running):
    with running.load() as load:
        running.process.send_signal(signal.SIGTERM)
        _, said = running.process.communicate(timeout=60)
        load.wait_for("REST no connection", "gRPC no connection")
    assert running.process.returncode == 0, said
    assert "Traceback" not in said
    assert load.wrong == []


@contextmanager
def small_disk(folder, _):
    """A disk of 40 KB, of which the push sees the end; skipped where mounting is not allowed."""
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    try:
        yield [0]
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def short_files(folder, size):
    yield [size]


@pytest.mark.parametrize(("limit", "says"), [(small_disk, "No space left"), (short_files, "File too large")])
def test_a_push_onto_a_full_disk_says_so_and_leaves_nothing_behind(tmp_path, pets, limit, says):
    model, folder = pets.folder / "1", tmp_path / "served"
    folder.mkdir()
    largest = max(path.stat().st_size for path in model.rglob("*") if path.is_file())
    with limit(folder, largest // 2) as most:
        (folder / "notes").write_text("kept")
        push = [sys.executable, "-c", PUSH, model, folder, *map(str, most)]
        failed = subprocess.run(push, capture_output=True, text=True)
        assert failed.returncode == 1
        assert failed.stderr.startswith(f"{folder}: the model cannot be copied there: ")
        assert says in failed.stderr
        assert failed.stderr.count("\n") == 1
        assert [path.name for path in folder.iterdir()] == ["notes"]
    again = subprocess.run([*push[:-1], "0"], capture_output=True, text=True, check=True)
    assert (folder / again.stdout.strip() / "saved_model.pb").read_bytes() == (model / "saved_model.pb").read_bytes()
