"""Memory of the local server over minutes of mixed requests: REST and gRPC, errors, long and gzip bodies, new versions.

    python benchmarks/serving_soak.py [--minutes 10] [--swap-seconds 60] [--out benchmarks/results/serving_soak.json]
    python benchmarks/serving_soak.py --print

Six clients ask without a pause. Each minute a newer version of the model is put into the folder and the oldest but one
taken out (`--swap-seconds`, 0 for never). The memory (RSS) of the server and of its reader processes is saved every ten
seconds. The slope is that of a straight line through the second half, when caches are full.
"""

import argparse
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from serving_rates import SERVE

from serving import FEATURES, build

sys.path.append(str(Path(__file__).parent / "reproduce"))
from stack import stack

RESULTS = Path(__file__).parent / "results" / "serving_soak.json"
EVERY = 10.0


def resident_mib(process: int) -> tuple[float, float]:
    """RSS of a process, and of its children together."""

    def of(number: int) -> float:
        try:
            pages = Path(f"/proc/{number}/statm").read_text(encoding="ascii").split()[1]
        except OSError:
            return 0.0
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
    return round(of(process), 1), round(sum(of(int(child)) for child in children), 1)


def requests(rest: str, grpc: str) -> dict[str, Callable[[], str]]:
    """What each client does, once; gives the outcome."""
    from crowdzoo.errors import ServingError
    from crowdzoo.serving import Client

    x = np.random.default_rng(0).normal(size=(2000, FEATURES)).astype("float32")
    url = f"{rest}/v1/models/model:predict"
    http = httpx.Client(timeout=120, trust_env=False)
    by_rest, by_grpc = Client(rest, timeout=120), Client(grpc, timeout=120)
    bodies = {count: json.dumps({"instances": x[:count].astype(float).tolist()}).encode() for count in (1, 32, 500)}
    sizes = itertools.cycle([1, 32])
    broken = itertools.cycle([b"{", b'{"instances": [[1]]}', b'{"instances": [[NaN]]}', b"\xff", b'{"inputs": {}}'])

    def status(answer: httpx.Response) -> str:
        return f"REST {answer.status_code}"

    def refused() -> str:
        try:
            by_grpc.predict(x[:1, :5])
        except ServingError:
            return "gRPC refused"
        raise AssertionError("a request of 5 features was answered")

    def annotators() -> str:
        by_rest.predict(x[:4], signature="annotators", annotator="3")
        by_grpc.predict(x[:4], signature="annotators", annotator="3")
        return "both answered"

    def grpc_short() -> str:
        by_grpc.predict(x[: next(sizes)])
        return "gRPC answered"

    def grpc_long() -> str:
        by_grpc.predict(x)  # 4 MB: read in another process
        return "gRPC answered, long"

    zipped = {"content-encoding": "gzip", "accept-encoding": "gzip"}
    return {
        "short": lambda: status(http.post(url, content=bodies[next(sizes)])),
        "errors": lambda: status(http.post(url, content=next(broken))) if np.random.rand() < 0.5 else refused(),
        "gzip": lambda: status(http.post(url, content=gzip.compress(bodies[32], 1), headers=zipped)),
        "long": lambda: status(http.post(url, content=bodies[500])) if np.random.rand() < 0.5 else grpc_long(),
        "annotators": annotators,
        "gRPC": grpc_short,
    }


def measure(minutes: float, swap_seconds: float) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    samples: list[tuple[float, float, float]] = []
    stop = threading.Event()
    failures: list[str] = []

    def ask(name: str, once: Callable[[], str]) -> None:
        while not stop.is_set():
            try:
                outcomes[f"{name}: {once()}"] += 1
            except Exception as error:
                failures.append(f"{name}: {error!r}"[:300])
                time.sleep(1)

    with tempfile.TemporaryDirectory() as name:
        folder, ready = Path(name) / "model", Path(name) / "ready"
        folder.mkdir()
        build(ready)
        shutil.copytree(ready / "1", folder / "1")
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert server.stdout is not None
            rest_port, grpc_port = next(line.split()[1:] for line in server.stdout if line.startswith("ports "))
            asked = requests(f"http://127.0.0.1:{rest_port}", f"grpc://127.0.0.1:{grpc_port}")
            threads = [threading.Thread(target=ask, args=pair, daemon=True) for pair in asked.items()]
            for thread in threads:
                thread.start()
            started, swaps = time.monotonic(), 0
            while (passed := time.monotonic() - started) < 60 * minutes:
                samples.append((round(passed, 1), *resident_mib(server.pid)))
                print(f"{passed:6.0f} s  {samples[-1][1]:7.1f} MiB, readers {samples[-1][2]:6.1f} MiB", flush=True)
                if swap_seconds and passed >= swap_seconds * (swaps + 1):
                    swaps += 1
                    shutil.copytree(ready / "1", folder / ".coming")
                    (folder / ".coming").rename(folder / str(swaps + 1))
                    if swaps > 1:
                        shutil.rmtree(folder / str(swaps - 1))
                time.sleep(EVERY)
            stop.set()
            for thread in threads:
                thread.join(130)
        finally:
            server.terminate()
            server.wait(30)
    return {
        "minutes": minutes, "swaps": swaps, "outcomes": dict(sorted(outcomes.items())), "failures": failures[:20],
        "number_of_failures": len(failures), "samples": samples,
        "stack": stack() | {part: version(part) for part in ("uvicorn", "httptools", "uvloop", "grpcio", "pysimdjson")},
    }  # fmt: skip


def slope(samples: list[Any]) -> float:
    """MiB a minute, of a straight line through the second half of the samples."""
    times, mib = np.array([(one[0] / 60, one[1]) for one in samples[len(samples) // 2 :]]).T
    return float(np.polyfit(times, mib, 1)[0])


def show(saved: dict[str, Any]) -> None:
    samples = saved["samples"]
    mib = [one[1] for one in samples]
    for outcome, count in saved["outcomes"].items():
        print(f"{count:8,} {outcome}")
    print(f"{saved['number_of_failures']} failures {saved['failures'][:3]}; {saved['swaps']} new versions")
    for minute in range(int(saved["minutes"]) + 1):
        nearest = min(samples, key=lambda one: abs(one[0] - 60 * minute))
        print(f"minute {minute}: server {nearest[1]:,.0f} MiB, readers {nearest[2]:,.0f} MiB")
    print(f"at most {max(mib):,.0f} MiB; slope of the second half {slope(samples):+.2f} MiB a minute")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--swap-seconds", type=float, default=60.0, help="time between new versions; 0: none comes")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if not args.only_print:
        args.out.write_text(json.dumps(measure(args.minutes, args.swap_seconds)) + "\n", encoding="utf-8")
    show(json.loads(args.out.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
