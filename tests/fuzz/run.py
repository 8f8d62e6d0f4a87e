"""Tries broken and strange inputs for as long as wanted: `make fuzz SEED=1 MINUTES=10`.

Each target runs in a process of its own, in batches of inputs with a seed each, so that a crash, a hang or too much
memory names the target, the seed and the smallest input, and the others go on.
"""

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BATCH = 500


def load_targets():
    """Targets of every `fuzz_*.py` of this folder, by name."""
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "shared")]
    found = {}
    for path in sorted(FOLDER.glob("fuzz_*.py")):
        found |= importlib.import_module(path.stem).TARGETS
    return found


def run_target(name, seed, minutes, most):
    """Batches of one target until the time or the inputs are used up; prints the count after each batch."""
    from target import run

    target = load_targets()[name]
    end, checked, batch = time.monotonic() + 60 * minutes, 0, 0
    while time.monotonic() < end and (most is None or checked < most):
        try:
            checked += run(target, seed + 1000003 * batch, BATCH if most is None else min(BATCH, most - checked), True)
        except BaseException:
            print(f"FAILED {checked} {name} batch seed {seed + 1000003 * batch}", flush=True)
            raise
        batch += 1
        print(f"{checked}", flush=True)


def main():
    """Runs the targets one after another and counts what was not foreseen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="names of targets; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5.0, help="in all, shared equally by the targets")
    parser.add_argument("--inputs", type=int, help="most inputs of a target")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_target(arguments.child, arguments.seed, arguments.minutes, arguments.inputs)
        return
    known = load_targets()
    unknown = [name for name in arguments.targets if name not in known]
    if unknown:
        parser.error(f"unknown target: {unknown[0]}; choose from {', '.join(known)}")
    names = arguments.targets or list(known)
    total, failures = 0, []
    for name in names:
        command = [sys.executable, __file__, "--child", name, "--seed", str(arguments.seed)]
        command += ["--minutes", str(arguments.minutes / len(names))]
        command += [] if arguments.inputs is None else ["--inputs", str(arguments.inputs)]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
        counts = [line for line in ended.stdout.splitlines() if line.isdigit()]
        checked = int(counts[-1]) if counts else 0
        total += checked
        print(f"{name:32} {checked:9,} inputs  {'ok' if ended.returncode == 0 else f'FAILED ({ended.returncode})'}")
        sys.stdout.flush()
        if ended.returncode != 0:
            failures.append(name)
            print(ended.stdout[-500:] + ended.stderr[-6000:])
    print(f"{total:,} inputs, {len(failures)} of {len(names)} targets with something unforeseen")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
