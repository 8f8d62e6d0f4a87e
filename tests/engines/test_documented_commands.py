"""The commands of docs/scale.md, one for each engine of Beam, as they are on the page."""

import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("tfx")
sys.path.insert(0, str(Path(__file__).parent))
from flink_cluster import flink_cluster
from install import FLINK, JOB_SERVER, PRISM, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").replace("\\\n", " ")
COMMANDS = [shlex.split(line) for line in re.findall(r"^    crowdzoo (run .*)$", PAGE, flags=re.M)]
NEEDS = {"prism_location": (PRISM,), "job_endpoint=localhost": (FLINK, JOB_SERVER)}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[-1])
def test_the_command_of_an_engine_ends_in_a_pushed_model(words, tmp_path):
    paths = [path for option, needed in NEEDS.items() if option in words[-1] for path in needed]
    if missing := [str(path.relative_to(ROOT)) for path in paths if not path.exists()]:
        pytest.skip(f"no {', '.join(missing)}: run `make engines`")
    with ExitStack() as stack:
        witness = tmp_path / "prism"  # Prism, which notes that it was started
        witness.write_text(f'#!/bin/sh\necho started >> {tmp_path}/started\nexec {PRISM} "$@"\n')
        witness.chmod(0o755)
        options = words[-1].replace("=.engines/prism", f"={witness}")
        if FLINK in paths:
            cluster = stack.enter_context(flink_cluster(tmp_path / "cluster", memory="3g", network="1g"))
            options = options.replace("localhost:8099", cluster.address)
        small = {"output.root": tmp_path, "training.epochs": 1, "evaluation.minimum_accuracy": 0}
        settings = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-W", "ignore", "-m", "crowdzoo", *words[:-1], options, *settings]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
        assert FLINK not in paths or cluster.jobs()
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"Model:       {tmp_path}/serving/" in done.stdout
    assert (tmp_path / "started").exists() == (PRISM in paths)
