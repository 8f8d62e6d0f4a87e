"""Other clients' latencies while eight clients send short requests that ask for much.

    python benchmarks/serving_attacks.py
    python benchmarks/serving_attacks.py --attacks "512 MiB in 41 bytes"

One client asks for the prediction of one row over REST, another one over gRPC, each again as soon as it is answered,
for ten seconds. Milliseconds are those of all their requests together; a request ends after ten seconds without an
answer. Eight attackers do the same with a request of their own, over gRPC. Each row has a new server with the default
limits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from serving_rates import FEATURES, SERVE, build

ATTACKERS, SECONDS, PATIENCE = 8, 10.0, 10.0


def request(sizes: tuple[int, ...] = (1, FEATURES), outputs: tuple[str, ...] = ()) -> bytes:
    """A Predict request whose one value fills all of its tensor."""
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    message = PredictRequest(model_spec={"name": "model"}, output_filter=outputs)
    tensor = message.inputs["instances"]
    tensor.dtype = 1
    tensor.float_val.append(0.5)
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    return bytes(message.SerializeToString())


# What the attackers send; the third is what fits into the default limits
ATTACKS = {
    "nothing": None,
    "512 MiB in 41 bytes": lambda: request((260_000, FEATURES)),
    "64 MiB in 41 bytes": lambda: request((32_000, FEATURES)),
    "an output 70,000 times": lambda: request(outputs=("label",) * 70_000),
}


def by_grpc(port: str, message: bytes) -> Callable[[], str]:
    """A call that sends the message and gives its status."""
    import grpc

    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
    predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

    def call() -> str:
        try:
            predict(message, timeout=PATIENCE)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    return call


def by_rest(port: str) -> Callable[[], str]:
    """The same over REST, of one row."""
    import httpx

    client = httpx.Client(trust_env=False, timeout=PATIENCE)
    body = json.dumps({"instances": [[0.5] * FEATURES]}).encode()

    def call() -> str:
        try:
            answer = client.post(f"http://127.0.0.1:{port}/v1/models/model:predict", content=body)
        except httpx.TimeoutException:
            return "DEADLINE_EXCEEDED"
        except httpx.HTTPError:
            return "UNAVAILABLE"
        return "OK" if answer.status_code == 200 else str(answer.status_code)

    return call


def repeat(call: Callable[[], str], statuses: Counter[str], seconds: list[float]) -> None:
    """Sends the request until the time is over."""
    end = time.monotonic() + SECONDS
    while (start := time.monotonic()) < end:
        statuses[call()] += 1
        seconds.append(time.monotonic() - start)


def measure(folder: Path, attack: str) -> dict[str, Any]:
    """One row: a server of its own, the attackers, and the two clients."""
    server = subprocess.Popen([sys.executable, "-c", SERVE, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        rest, grpc = next(line.split()[1:] for line in server.stdout if line.startswith("ports "))
        good = [by_rest(rest), by_grpc(grpc, request())]
        for call in good:
            assert call() == "OK"
        message = ATTACKS[attack]
        attackers = [by_grpc(grpc, message()) for _ in range(ATTACKERS)] if message else []
        sent, answered = Counter(), Counter()
        seconds: list[float] = []
        threads = [threading.Thread(target=repeat, args=(call, sent, []), daemon=True) for call in attackers]
        threads += [threading.Thread(target=repeat, args=(call, answered, seconds), daemon=True) for call in good]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        memory = Path(f"/proc/{server.pid}/status")
        peak = next((line.split()[1] for line in memory.read_text().splitlines() if line.startswith("VmHWM")), "0")
        p50, p99 = np.quantile(seconds, (0.5, 0.99)) * 1e3
        return {
            "clients": dict(answered), "p50_ms": round(p50, 1), "p99_ms": round(p99, 1),
            "max_ms": round(max(seconds) * 1e3, 1), "attackers": dict(sent), "peak_mib": int(peak) >> 10,
        }  # fmt: skip
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attacks", nargs="*", choices=ATTACKS, default=list(ATTACKS))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        build(folder)
        for attack in arguments.attacks:
            print(f"{attack}: {json.dumps(measure(folder, attack))}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
