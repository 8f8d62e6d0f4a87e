"""The local server under load: short requests beside long ones and idle clients, and answers in time under overload.

    python benchmarks/serving_load.py [--seconds 8] [--out benchmarks/results/serving_load.json]
    python benchmarks/serving_load.py --print

The clients (`serving_load_client.py`) are processes beside the server's and share its cores. The probe sends one
instance of 512 numbers every 20 ms; its 99th percentile is compared with the one alone, in the same run. Capacity is
what 8 clients get answered that ask one after another. Under overload 512 clients ask, each with a deadline of one
second after which it gives up; goodput is what is answered in time. A client that is told to try later waits a second.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crowdzoo.report.tables import print_table
from serving import FEATURES, build

RESULTS = Path(__file__).parent / "results" / "serving_load.json"
CLIENT = Path(__file__).parent / "serving_load_client.py"
MANY, DEADLINE, LONG_BYTES = 512, 1.0, 33_000_000
SERVE = """
import sys
from crowdzoo.serving import serve
def ready(server):
    print("ports", server.rest_port, server.grpc_port, flush=True)
serve(sys.argv[1], rest_port=0, grpc_port=0, on_ready=ready)
"""


def start(job: dict[str, Any]) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, CLIENT, json.dumps(job)], stdout=subprocess.PIPE, text=True)


def report(process: "subprocess.Popen[str]") -> dict[str, Any]:
    return json.loads(process.communicate(timeout=120)[0].splitlines()[-1])


def peak_mib(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def measure(seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert server.stdout is not None
        ports = next(line for line in server.stdout if line.startswith("ports "))
        rest_port, grpc_port = map(int, ports.split()[1:])
        common = {"rest_port": rest_port, "grpc_port": grpc_port, "features": FEATURES, "seconds": seconds}
        start_mib = peak_mib(server.pid)
        for name, beside in (
            ("short requests alone", []),
            ("beside one client with bodies of 33 MB", [{"what": "long", "bytes": LONG_BYTES}]),
            ("beside two clients with bodies of 33 MB", [{"what": "long", "bytes": LONG_BYTES}] * 2),
            (f"beside {MANY} idle clients", [{"what": "idle", "clients": MANY}]),
        ):
            others = [start({**common, **job, "seconds": seconds + 3}) for job in beside]
            for other in others:
                assert other.stdout is not None
                assert other.stdout.readline() == "ready\n"
            found[name] = report(start({**common, "what": "probe"}))
            found[name]["beside"] = [report(other) for other in others]
            print(name, found[name], flush=True)
        for protocol in ("REST", "gRPC"):
            job = {**common, "what": "clients", "protocol": protocol}
            found[f"{protocol}, 8 clients"] = report(start({**job, "clients": 8, "deadline": 30.0}))
            found[f"{protocol}, {MANY} clients"] = report(start({**job, "clients": MANY, "deadline": DEADLINE}))
            for clients in (8, MANY):
                print(protocol, clients, found[f"{protocol}, {clients} clients"], flush=True)
        memory = {"start_mib": start_mib, "peak_mib": peak_mib(server.pid)}
        server.terminate()
        server.wait(30)
    return {
        "seconds": seconds,
        "machine": {
            "cores": len(os.sched_getaffinity(0)), "processor": platform.machine(), "load": list(os.getloadavg()),
            "python": platform.python_version(), "tensorflow": version("tensorflow"), "uvicorn": version("uvicorn"),
            "grpcio": version("grpcio"),
        },
        "memory": memory,
        "results": found,
    }  # fmt: skip


def show(saved: dict[str, Any]) -> None:
    found = saved["results"]
    alone = found["short requests alone"]["p99_ms"]
    rows = [
        (name, one["requests"], f"{one['median_ms']:.1f}", f"{one['p99_ms']:.1f}", f"{one['p99_ms'] / alone:.1f}")
        for name, one in found.items()
        if "p99_ms" in one
    ]
    print_table("short REST requests", ("", "requests", "median ms", "99 % ms", "to alone"), rows)
    rows = []
    for protocol in ("REST", "gRPC"):
        capacity = found[f"{protocol}, 8 clients"]["answered_per_second"]
        goodput = found[f"{protocol}, {MANY} clients"]["answered_per_second"]
        rows.append((protocol, f"{capacity:,.0f}", f"{goodput:,.0f}", f"{goodput / capacity:.2f}"))
    header = ("", "8 clients, answers/s", f"{MANY} clients, answers in time/s", "ratio")
    print_table(f"overload, deadline {DEADLINE:g} s", header, rows)
    memory = saved["memory"]
    print(f"memory of the server: {memory['start_mib']:,} MiB at the start, {memory['peak_mib']:,} MiB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each row")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if not args.only_print:
        args.out.write_text(json.dumps(measure(args.seconds), indent=2) + "\n", encoding="utf-8")
    show(json.loads(args.out.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
