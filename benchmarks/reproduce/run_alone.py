"""Runs a part of a benchmark in a process of its own, and says how much memory a process took."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MIB = 2**20


def peak_bytes() -> int:
    """Peak memory of this process; getrusage's figure begins with the parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def run_alone(script: str, arguments: list[str], name: str) -> dict[str, Any] | None:
    """What a script prints after "RESULT", run by a process of its own; its other lines are passed on.

    A process of its own, because its peak memory is measured and a failed row should not take the others with it.

    Args:
        script: path of the script.
        arguments: its command line.
        name: what is said to have failed.

    Returns:
        The result; None where it failed, which is said.
    """
    environment = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", **os.environ}
    result = None
    with subprocess.Popen(
        [sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        for line in process.stdout or ():
            if line.startswith("RESULT"):
                result = json.loads(line.removeprefix("RESULT"))
            else:
                print(line, end="", flush=True)
    if result is None:
        print(f"{name}: FAILED, exit code {process.returncode}", file=sys.stderr)
    return result
