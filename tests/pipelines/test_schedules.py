"""The files of examples/schedules: what cron, systemd and Kubeflow Pipelines are told."""

import http.server
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from crowdzoo.commands import main as cli

ROOT = Path(__file__).parents[2]
SCHEDULES = ROOT / "examples" / "schedules"
# The program, as the systemd service names it
(CROWDZOO,) = re.findall(r"(?m)^ExecStart=(/\S+/crowdzoo) ", (SCHEDULES / "crowdzoo-pets.service").read_text())


def commands_of(text):
    """Each command line of crowdzoo in a text, without the program's name."""
    return [shlex.split(words) for words in re.findall(rf'(?:{CROWDZOO}|"\$CROWDZOO") ([^&\n]+)', text)]


@pytest.mark.parametrize("name", ["crontab", "crowdzoo-pets.service"])
def test_every_command_of_the_files_is_one_that_crowdzoo_takes(name):
    commands = commands_of((SCHEDULES / name).read_text())
    assert [words[0] for words in commands] == ["run", "register"]
    for words in commands:
        assert cli._parser().parse_args(words).command_function


def test_the_line_of_cron_registers_only_what_was_pushed(tmp_path):
    lines = [line for line in (SCHEDULES / "crontab").read_text().splitlines() if not line.startswith("#")]
    (registry, setting, line) = lines
    assert registry.startswith("MLFLOW_TRACKING_URI=http")
    assert setting == f"CROWDZOO={CROWDZOO}"
    *fields, command = line.split(maxsplit=5)
    assert fields == ["30", "3", "*", "*", "*"]
    assert "%" not in command, "cron makes a new line of it"
    stub = tmp_path / "crowdzoo"
    stub.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\nexit $CODE\n')
    stub.chmod(0o755)
    command = command.replace("/srv/pets", str(tmp_path))
    for code, calls in (("0", "run\nregister\n"), ("8", "run\n"), ("10", "run\n")):
        (tmp_path / "calls").unlink(missing_ok=True)
        subprocess.run(["/bin/sh", "-c", command], env={"CROWDZOO": str(stub), "CODE": code}, check=False)
        assert (tmp_path / "calls").read_text() == calls


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_finds_no_fault_with_service_and_timer(tmp_path):
    for name in ("crowdzoo-pets.service", "crowdzoo-pets.timer"):
        text = (SCHEDULES / name).read_text().replace(CROWDZOO, "/bin/true").replace("User=crowdzoo", "User=root")
        (tmp_path / name).write_text(text)

    def verify():
        command = ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.glob("crowdzoo-pets.*")))]
        done = subprocess.run(command, capture_output=True, text=True)
        return [line for line in done.stderr.splitlines() if "crowdzoo-pets" in line]

    assert verify() == []
    with open(tmp_path / "crowdzoo-pets.timer", "a") as file:
        file.write("OnCalendar=never\n")
    assert verify(), "or the check says nothing of anything"


class KubeflowApi(http.server.BaseHTTPRequestHandler):
    """As much of Kubeflow Pipelines' API as the client asks for; `server.runs` has the recurring runs."""

    def do_GET(self):
        self.answer({"recurringRuns": list(self.server.runs.values())} if "/recurringruns" in self.path else {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/recurringruns"):
            number = self.server.count = self.server.count + 1
            self.server.runs[f"run{number}"] = body | {"recurring_run_id": f"run{number}"}
            self.answer(self.server.runs[f"run{number}"])
        else:
            self.answer(body | {"experiment_id": "experiment1"})

    def do_DELETE(self):
        del self.server.runs[self.path.rpartition("/")[2]]
        self.answer({})

    def answer(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


PETS = """\
name: pets
data: {annotations: s3://crowd/answers.csv, instances: s3://crowd/instances.parquet}
model: {base: feature-classifier}
training: {epochs: 60}
kubeflow:
  image: registry.example.com/crowdzoo:1.0
  pipeline_root: s3://crowd/runs
  serving: s3://crowd/serving
  parameters: [training.epochs]
  resources: {default: {cpu: 2, memory_gb: 8}}
"""


@pytest.mark.slow
def test_a_recurring_run_replaces_the_earlier_one_and_runs_alone(tmp_path):
    (tmp_path / "pets.yaml").write_text(PETS)
    package = tmp_path / "pets-kubeflow.yaml"
    assert cli.main(["run", str(tmp_path / "pets.yaml"), "--on", "kubeflow", "--out", str(package)]) == 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), KubeflowApi) as server:
        server.runs, server.count = {}, 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [sys.executable, "-W", "ignore", SCHEDULES / "recurring_run.py", package, "--name", "pets"]
        command += ["--host", f"http://127.0.0.1:{server.server_port}"]
        for more in ((), ("--cron", "0 0 4 * * 1", "--parameters", '{"training_epochs": 30}')):
            done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr[-3000:]
        server.shutdown()
    (run,) = server.runs.values()
    assert done.stdout.splitlines()[-1] == "pets: recurring run run2, 0 0 4 * * 1"
    assert run["trigger"]["cron_schedule"]["cron"] == "0 0 4 * * 1"
    assert (run["max_concurrency"], run["no_catchup"], run["mode"]) == (1, True, "ENABLE")
    assert run["runtime_config"]["parameters"] == {"training_epochs": 30}
    spec = run["pipeline_spec"].get("pipeline_spec", run["pipeline_spec"])
    assert spec["pipelineInfo"]["name"] == "pets"
    assert "Trainer" in spec["root"]["dag"]["tasks"]
