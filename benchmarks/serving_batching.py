"""Requests a second of the local server with and without batching across clients, for a small and a large model.

    python benchmarks/serving_batching.py [--requests 400] [--out benchmarks/results/serving_batching.json]

Each client sends one instance a request, over gRPC. Both servers of a model run in one process, one after the other
asked, with as many requests under way at the same time; the ratio of a row is to the same clients without batching in
the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serving import FEATURES, over_the_wire

CLASSES = 8
MODELS = {"128 ReLU": (128,), "2048 and 2048 ReLU": (2048, 2048)}
CLIENTS = (1, 8, 32)


def build(folder: Path, hidden: tuple[int, ...]) -> None:
    import keras

    from crowdzoo.export.saved_model import export_model
    from crowdzoo.networks.feature_classifier import FeatureClassifier
    from crowdzoo.training.crowd_model import CrowdModel

    keras.utils.set_random_seed(0)
    model = CrowdModel(FeatureClassifier(FEATURES, CLASSES, hidden=hidden))
    export_model(model, folder / "1", classes=[f"class {k}" for k in range(CLASSES)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "serving_batching.json")
    arguments = parser.parse_args()

    import tensorflow as tf

    from crowdzoo.serving import BatchingSettings, Server

    settings = BatchingSettings(max_batch_size=32, num_batch_threads=1)
    results: dict[str, Any] = {}
    for name, hidden in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder), hidden)
            with (
                Server(folder, rest_port=0, grpc_port=0, threads=settings.max_batch_size) as alone,
                Server(folder, rest_port=0, grpc_port=0, batching=settings) as joined,
            ):
                for clients in CLIENTS:
                    requests = arguments.requests // clients * clients
                    without = over_the_wire(f"grpc://127.0.0.1:{alone.grpc_port}", clients, requests)
                    row = over_the_wire(f"grpc://127.0.0.1:{joined.grpc_port}", clients, requests)
                    row["ratio"] = round(row["requests_per_second"] / without["requests_per_second"], 2)
                    results[f"{name}, {clients} clients"] = {"each by itself": without, "batching": row}
                    print(name, clients, results[f"{name}, {clients} clients"], flush=True)
    report = {
        "seed": 0,
        "backend": "tensorflow",
        "models": f"{FEATURES} features, {CLASSES} classes; one instance a request, gRPC",
        "batching": {"max_batch_size": settings.max_batch_size, "batch_timeout_micros": 0, "num_batch_threads": 1},
        "machine": {
            "cores": len(os.sched_getaffinity(0)), "processor": platform.machine(), "load": list(os.getloadavg()),
            "python": platform.python_version(), "tensorflow": tf.__version__, "grpcio": version("grpcio"),
        },
        "note": "clients and servers share the cores; `load` is the machine's load average at the end",
        "results": results,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
