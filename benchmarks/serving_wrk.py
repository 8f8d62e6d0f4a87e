"""The local server's REST port under wrk: requests a second, median and 99th percentile, beside calls in the process.

    python benchmarks/serving_wrk.py                                      # what results/serving_wrk.json does not have
    python benchmarks/serving_wrk.py --parts "batch 1" --rows "8 clients" --again
    python benchmarks/serving_wrk.py --print

wrk is in Debian's package of this name (version 4.1 or later). It sends the same body of 512 numbers an instance over
and over. The model is that of `serving.py`. In each of three runs of a row the call in the process is timed before and
after wrk, in a process of its own, and the ratio is to the mean of both: answers a second by calls a second. wrk,
server and calls share the cores. Requests that the server refuses (503, when too many are under way) are counted apart.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from serving import FEATURES, build

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import run

RESULTS = Path(__file__).parent / "results" / "serving_wrk.json"
BATCHES, CLIENTS, RUNS, SECONDS = (1, 32), (1, 8, 64, 512), 3, 8
SERVE = """
import sys
from crowdzoo.serving import serve
def ready(server):
    print("port", server.rest_port, flush=True)
serve(sys.argv[1], rest_port=0, grpc_port=0, on_ready=ready)
"""
CALLS = """
import sys, time
import numpy as np, tensorflow as tf
predict = tf.saved_model.load(sys.argv[1] + "/1").signatures["serving_default"]
x = np.random.default_rng(0).normal(size=(int(sys.argv[2]), int(sys.argv[3]))).astype("float32")
call = lambda: predict(instances=tf.constant(x))
call()
print("ready", flush=True)
for line in sys.stdin:
    started, number = time.perf_counter(), 0
    while time.perf_counter() - started < 2:
        call()
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


def measure(batch: int, clients: int) -> Iterator[dict[str, Any]]:
    """Runs of one row: answers and refusals a second, milliseconds, and the ratio to the call in the process."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk was not found. On Debian: apt install wrk")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder / "model")
        body, script = folder / "body.json", folder / "post.lua"
        x = np.random.default_rng(0).normal(size=(batch, FEATURES)).astype("float32")
        body.write_text(json.dumps({"instances": [[float(str(value)) for value in row] for row in x]}))
        script.write_text(SCRIPT.format(body=body))
        python = partial(subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        server = python([sys.executable, "-c", SERVE, str(folder / "model")])
        calls = python([sys.executable, "-c", CALLS, str(folder / "model"), str(batch), str(FEATURES)])
        try:
            port = next(line.split()[1] for line in server.stdout if line.startswith("port "))
            assert calls.stdout.readline() == "ready\n"

            def in_process() -> float:
                calls.stdin.write("\n")
                calls.stdin.flush()
                return float(calls.stdout.readline())

            url = f"http://127.0.0.1:{port}/v1/models/model:predict"
            for seed in range(RUNS):
                before = in_process()
                command = [
                    wrk,
                    "-t1",
                    f"-c{clients}",
                    f"-d{SECONDS}s",
                    "--timeout=30s",
                    "--latency",
                    "-s",
                    str(script),
                    url,
                ]
                found = parsed(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
                calls_a_second = (before + in_process()) / 2
                ratio = found["answers_a_second"] / calls_a_second
                yield {"run": seed, **found, "calls_a_second": round(calls_a_second, 1), "ratio": round(ratio, 3)}
                time.sleep(1)
        finally:
            for process in (server, calls):
                process.terminate()
                process.wait()


def parsed(text: str) -> dict[str, float]:
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


def row(batch: int, clients: int) -> Callable[[], Iterator[dict[str, Any]]]:
    return lambda: measure(batch, clients)


if __name__ == "__main__":
    parts = {
        f"batch {batch}": {f"{number} client{'s' if number > 1 else ''}": row(batch, number) for number in CLIENTS}
        for batch in BATCHES
    }
    run(RESULTS, parts, __doc__)
