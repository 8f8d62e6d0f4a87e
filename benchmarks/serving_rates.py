"""The local server under public tools, wrk for REST and ghz for gRPC, compared with the same call in the process.

    python benchmarks/serving_rates.py                      # what results/serving_rates.json does not have; 5 minutes
    python benchmarks/serving_rates.py --again              # all of it
    python benchmarks/serving_rates.py --parts "REST, batch 1" --rows "8 clients" --again
    python benchmarks/serving_rates.py --print

wrk is in Debian's package of this name. ghz is a Go program: `go install github.com/bojand/ghz/cmd/ghz@v0.120.0`. It
is looked for on the PATH and in ~/go/bin.

A client is a connection that sends the next request when the one before it is answered; each request has the same
instances of 512 numbers. The model has a hidden layer of 128 units and eight
classes. In each of two runs of a row the call in the process is
timed before and after the tool, in a process of its own, and the ratio is to the mean of both: answers per second by
calls a second. Tool, server and calls share the cores; ghz itself takes more of them than wrk. Requests that the server
refuses (503 and UNAVAILABLE, when too many are under way) are counted apart.

"""

from __future__ import annotations

import atexit
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import run

RESULTS = Path(__file__).parent / "results" / "serving_rates.json"
PROTOCOLS, BATCHES, CLIENTS, RUNS, SECONDS, CALL_SECONDS = ("REST", "gRPC"), (1, 32), (1, 8, 64, 512), 2, 4, 1
FEATURES, CLASSES, ANNOTATORS = 512, 8, 59
SERVER_PARTS = {"REST": ("uvicorn", "httptools", "uvloop", "pysimdjson", "orjson"), "gRPC": ("grpcio", "protobuf")}
SERVE = """
import sys
from crowdzoo.serving import serve
def ready(server):
    print("ports", server.rest_port, server.grpc_port, flush=True)
serve(sys.argv[1], rest_port=0, grpc_port=0, on_ready=ready)
"""
CALLS = """
import sys, time
import numpy as np, tensorflow as tf
predict = tf.saved_model.load(sys.argv[1] + "/1").signatures["serving_default"]
def call(x):
    predict(instances=tf.constant(x))
batches = {n: np.random.default_rng(0).normal(size=(n, int(sys.argv[2]))).astype("float32") for n in (1, 32)}
for x in batches.values():
    call(x)
print("ready", flush=True)
for line in sys.stdin:
    x = batches[int(line.split()[0])]
    started, number = time.perf_counter(), 0
    while time.perf_counter() - started < float(line.split()[1]):
        call(x)
        number += 1
    print(number / (time.perf_counter() - started), flush=True)
"""
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
file:close()
"""


def build(folder: Path) -> None:
    import keras

    from crowdzoo.export.saved_model import export_model
    from crowdzoo.layers import CrowdsourcedLayer
    from crowdzoo.networks.feature_network import FeatureClassifier
    from crowdzoo.training.crowd_model import CrowdModel

    keras.utils.set_random_seed(0)
    crowd = CrowdsourcedLayer(ANNOTATORS)
    crowd.build((None, CLASSES))
    export_model(
        CrowdModel(FeatureClassifier(FEATURES, CLASSES), crowd), folder / "1",
        classes=[f"class {k}" for k in range(CLASSES)], annotators=[str(r) for r in range(ANNOTATORS)],
    )  # fmt: skip


class Stand:
    """A server of the model, a process that calls it without a server, and the files that the tools read."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        build(self.folder / "model")
        python = partial(subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._server = python([sys.executable, "-c", SERVE, str(self.folder / "model")])
        atexit.register(self._end, self._server)
        self._calls = python([sys.executable, "-c", CALLS, str(self.folder / "model"), str(FEATURES)])
        atexit.register(self._end, self._calls)
        ports = next(line.split()[1:] for line in self._server.stdout if line.startswith("ports "))
        self.ports = dict(zip(PROTOCOLS, ports, strict=True))
        assert self._calls.stdout.readline() == "ready\n"
        self._write_requests()

    def calls_a_second(self, batch: int) -> float:
        """Speed of the call in the process."""
        self._calls.stdin.write(f"{batch} {CALL_SECONDS}\n")
        self._calls.stdin.flush()
        return float(self._calls.stdout.readline())

    def _write_requests(self) -> None:
        import tensorflow as tf
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from tensorflow_serving.apis import prediction_service_pb2
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        files: dict[str, Any] = {}

        def add(file: Any) -> None:
            for needed in file.dependencies:
                add(needed)
            files[file.name] = file

        add(prediction_service_pb2.DESCRIPTOR)
        described = FileDescriptorSet()
        for file in files.values():
            file.CopyToProto(described.file.add())
        (self.folder / "service.protoset").write_bytes(described.SerializeToString())
        for batch in BATCHES:
            x = np.random.default_rng(0).normal(size=(batch, FEATURES)).astype("float32")
            body = self.folder / f"{batch}.json"
            body.write_text(json.dumps({"instances": [[float(str(value)) for value in row] for row in x]}))
            (self.folder / f"{batch}.lua").write_text(SCRIPT.format(body=body))
            request = PredictRequest(model_spec={"name": "model"})
            request.inputs["instances"].CopyFrom(tf.make_tensor_proto(x))
            (self.folder / f"{batch}.bin").write_bytes(request.SerializeToString())

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        process.terminate()
        process.wait()


@functools.cache
def stand() -> Stand:
    return Stand()


@functools.cache
def tool(name: str) -> tuple[str, str]:
    """Path and version of a tool."""
    path = shutil.which(name) or shutil.which(str(Path.home() / "go" / "bin" / name))
    if path is None:
        raise SystemExit(f"{name} was not found; `python {sys.argv[0]} --help` says where it is from")
    if name == "wrk":
        text = subprocess.run([path, "-v"], capture_output=True, text=True).stdout
        return path, re.search(r"wrk (\S+)", text)[1]
    text = subprocess.run(["go", "version", "-m", path], capture_output=True, text=True).stdout
    return path, re.search(r"mod\s+github.com/bojand/ghz\s+(\S+)", text)[1]


def measure(protocol: str, batch: int, clients: int) -> Iterator[dict[str, Any]]:
    """Runs of one row: answers and refusals a second, milliseconds, and the ratio to the call in the process."""
    name = "wrk" if protocol == "REST" else "ghz"
    path, number = tool(name)
    here, by_tool = stand(), by_wrk if protocol == "REST" else by_ghz
    versions = ", ".join(f"{part} {version(part)}" for part in SERVER_PARTS[protocol])
    about = {"tool": f"{name} {number}", "server": versions}
    for seed in range(RUNS):
        before = here.calls_a_second(batch)
        rates = by_tool(path, here, batch, clients)
        calls = (before + here.calls_a_second(batch)) / 2
        ratio = round(rates["answers_a_second"] / calls, 3)
        yield {"run": seed, **rates, "calls_a_second": round(calls, 1), "ratio": ratio, **about}
        time.sleep(0.5)


def by_wrk(path: str, here: Stand, batch: int, clients: int) -> dict[str, float]:
    options = ["-t1", f"-c{clients}", f"-d{SECONDS}s", "--timeout=30s", "--latency"]
    script = here.folder / f"{batch}.lua"
    url = f"http://127.0.0.1:{here.ports['REST']}/v1/models/model:predict"
    return of_wrk(
        subprocess.run([path, *options, "-s", script, url], check=True, capture_output=True, text=True).stdout
    )


def of_wrk(text: str) -> dict[str, float]:
    """Figures of wrk's report; milliseconds are those of answers and refusals."""
    units = {"us": 1e-3, "ms": 1.0, "s": 1e3}

    def quantile(name: str) -> float:
        number, unit = re.search(rf"{name}%\s+([\d.]+)(us|ms|s)\b", text).groups()
        return round(float(number) * units[unit], 2)

    requests, seconds, unit = re.search(r"(\d+) requests in ([\d.]+)(ms|s)", text).groups()
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    number, wall = int(refused.group(1)) if refused else 0, float(seconds) * units[unit] / 1e3
    return {
        "answers_a_second": round((int(requests) - number) / wall, 1),
        "refused_a_second": round(number / wall, 1),
        "median_ms": quantile("50"),
        "p99_ms": quantile("99"),
        "errors": sum(map(int, errors.groups())) if errors else 0,
    }


def by_ghz(path: str, here: Stand, batch: int, clients: int) -> dict[str, float]:
    files = ["--protoset", here.folder / "service.protoset", "--binary-file", here.folder / f"{batch}.bin"]
    load = ["--concurrency", str(clients), "--connections", str(clients), "--duration", f"{SECONDS}s"]
    options = ["--insecure", "--call", "tensorflow.serving.PredictionService.Predict", "--duration-stop", "ignore"]
    command = [path, *files, *load, *options, "--format", "json", f"127.0.0.1:{here.ports['gRPC']}"]
    return of_ghz(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def of_ghz(report: dict[str, Any]) -> dict[str, float]:
    """Figures of ghz's report in JSON; calls that its end cut off are not counted, its milliseconds are of answers."""
    counts = report["statusCodeDistribution"]
    quantiles = {entry["percentage"]: entry["latency"] / 1e6 for entry in report["latencyDistribution"]}
    wall = report["total"] / 1e9
    answered, refused = counts.get("OK", 0), counts.get("Unavailable", 0) + counts.get("ResourceExhausted", 0)
    return {
        "answers_a_second": round(answered / wall, 1),
        "refused_a_second": round(refused / wall, 1),
        "median_ms": round(quantiles[50], 2),
        "p99_ms": round(quantiles[99], 2),
        "errors": sum(counts.values()) - answered - refused,
    }


if __name__ == "__main__":
    parts = {
        f"{protocol}, batch {batch}": {
            f"{number} client{'s' if number > 1 else ''}": partial(measure, protocol, batch, number)
            for number in CLIENTS
        }
        for protocol in PROTOCOLS
        for batch in BATCHES
    }
    run(RESULTS, parts, __doc__)
