"""Requests a second of the local server, REST and gRPC, beside the same call in the process.

    python benchmarks/serving.py [--requests 1000] [--out benchmarks/results/serving.json]

A client is a thread with a connection of its own that sends one instance a request; the clients are in one or two
processes beside the server's. Every row is the same count of requests; start-up is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, CLASSES, ANNOTATORS = 512, 8, 59
CLIENT = """
import json, sys, threading, time
import numpy as np
from crowdzoo.serving import Client

url, clients, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = np.random.default_rng(0).normal(size=(1, int(sys.argv[4]))).astype("float32")
connections = [Client(url) for _ in range(clients)]
for connection in connections:
    connection.predict(x)
seconds = [[] for _ in range(clients)]

def ask(connection, mine):
    for _ in range(requests // clients):
        started = time.perf_counter()
        connection.predict(x)
        mine.append(time.perf_counter() - started)

threads = [threading.Thread(target=ask, args=pair) for pair in zip(connections, seconds)]
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"wall": time.perf_counter() - started, "seconds": sum(seconds, [])}))
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


def over_the_wire(url: str, clients: int, requests: int) -> dict[str, Any]:
    """Requests a second of `clients` threads in one or two processes."""
    workers = min(clients, 2)
    command = [sys.executable, "-c", CLIENT, url, str(clients // workers), str(requests // workers), str(FEATURES)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reports = [json.loads(process.communicate()[0]) for process in processes]
    seconds = [value for report in reports for value in report["seconds"]]
    return summary(seconds, max(report["wall"] for report in reports))


def in_process(predict: Callable[[np.ndarray], Any], requests: int) -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=(1, FEATURES)).astype("float32")
    predict(x)
    seconds = []
    started = time.perf_counter()
    for _ in range(requests):
        before = time.perf_counter()
        predict(x)
        seconds.append(time.perf_counter() - before)
    return summary(seconds, time.perf_counter() - started)


def summary(seconds: list[float], wall: float) -> dict[str, Any]:
    milliseconds = np.array(seconds) * 1000
    return {
        "requests": len(seconds),
        "requests_per_second": round(len(seconds) / wall, 1),
        "median_ms": round(float(np.median(milliseconds)), 3),
        "p99_ms": round(float(np.percentile(milliseconds, 99)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "serving.json")
    arguments = parser.parse_args()

    import tensorflow as tf

    from crowdzoo.serving import Server

    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        loaded = tf.saved_model.load(str(Path(folder) / "1"))
        function = loaded.signatures["serving_default"]
        results["in process"] = in_process(lambda x: function(instances=tf.constant(x)), arguments.requests)
        print("in process", results["in process"], flush=True)
        with Server(folder, rest_port=0, grpc_port=0) as server:
            urls = {"REST": f"http://127.0.0.1:{server.rest_port}", "gRPC": f"grpc://127.0.0.1:{server.grpc_port}"}
            for protocol, url in urls.items():
                for clients in (1, 8):
                    key = f"{protocol}, {clients} client{'s' if clients > 1 else ''}"
                    results[key] = over_the_wire(url, clients, arguments.requests)
                    print(key, results[key], flush=True)
    report = {
        "model": f"{FEATURES} features, 128 ReLU, {CLASSES} classes; one instance a request",
        "machine": {
            "cores": len(os.sched_getaffinity(0)), "processor": platform.machine(), "load": list(os.getloadavg()),
            "python": platform.python_version(), "tensorflow": tf.__version__,
            **{name: version(name) for name in ("uvicorn", "grpcio")},
        },
        "note": "clients and server share the cores; `load` is the machine's load average at the end",
        "results": results,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
