"""Aggregation on runners of Beam that are programs of their own: equal to local. `make engines` brings them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from flink_cluster import flink_cluster
from install import FLINK, JOB_SERVER, PRISM, PYTHON, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
ONE_PASS = ("majority-vote", "mean", "median", "token-votes")
CLASSES = ("majority-vote", "dawid-skene", "one-coin", "glad", "ibcc")
METHODS = (
    *CLASSES,
    "hierarchical-dawid-skene",
    "robust",
    "mean",
    "median",
    "rating-em",
    "token-votes",
    "bsc-seq",
    "hmm-crowd",
)


def lacks(*paths):
    missing = [path.relative_to(ROOT) for path in paths if not path.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(map(str, missing))}: run `make engines`")


def compare(python, *arguments):
    """Both sides on one table: the benchmark fails if a label differs, or a posterior by more than 1e-6."""
    command = [
        python,
        ROOT / "benchmarks" / "beam.py",
        "--annotators",
        "300",
        "--repeats",
        "1",
        "--no-save",
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@lacks(PRISM)
@pytest.mark.parametrize("shard_bytes", [2**26, 2**16], ids=["whole", "shards"])
@pytest.mark.parametrize("method", METHODS)
def test_prism_finds_what_the_local_method_finds(method, shard_bytes):
    runner = ("--runner", "PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK")
    options = ("--method", method, "--annotations", "3e4", "--shard-bytes", str(shard_bytes))
    assert f"{method}, 30,000 annotations" in compare(sys.executable, *options, *runner)


def on_flink(address):
    return "--runner", "PortableRunner", f"--job_endpoint={address}", "--environment_type=LOOPBACK"


@pytest.fixture(scope="module")
def flink(tmp_path_factory):
    with flink_cluster(tmp_path_factory.mktemp("flink") / "cluster") as address:
        yield on_flink(address)


@lacks(FLINK, JOB_SERVER, PYTHON)
@pytest.mark.parametrize("method", METHODS)
def test_flink_with_its_default_memory_finds_what_the_local_method_finds(flink, method):
    found = compare(PYTHON, "--method", method, "--annotations", "1e5", *flink)
    iterations, pipelines = (int(number) for number in re.search(r"(\d+) iterations, (\d+) pipelines", found).groups())
    if method != "robust":  # three models
        assert (iterations > 8) == (pipelines > 1) == (method not in ONE_PASS)


@lacks(FLINK, JOB_SERVER, PYTHON)
def test_flink_finds_it_with_annotators_in_shards(tmp_path):
    shards = ("--shard-bytes", "65536", "--iterations", "4")
    with flink_cluster(tmp_path / "cluster", memory="3g", network="512m") as address:
        compare(PYTHON, "--method", "dawid-skene", "--annotations", "3e4", *shards, *on_flink(address))
