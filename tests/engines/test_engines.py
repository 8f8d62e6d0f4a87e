"""Aggregation on runners of Beam that are programs of their own: equal to local. `make engines` brings them."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from flink_cluster import flink_cluster, worker_pool
from install import FLINK, JOB_SERVER, PRISM, PYTHON, ROOT, SPARK
from spark_server import spark_server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
ONE_PASS = ("majority-vote", "mean", "median")
CLASSES = ("majority-vote", "dawid-skene", "one-coin")
METHODS = (*CLASSES, "robust", "mean", "median")


def lacks(*paths):
    missing = [path.relative_to(ROOT) for path in paths if not path.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(map(str, missing))}: run `make engines`")


@contextmanager
def comparing(python, *arguments):
    """Both sides on one table, in a process: the benchmark fails if a label differs, or a posterior by over 1e-6."""
    command = [python, ROOT / "benchmarks" / "beam.py", "--annotators", "300", "--repeats", "1", "--no-save"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def end_of(process):
    """What a comparison printed, and its warnings."""
    printed, said = process.communicate(timeout=1200)
    assert process.returncode == 0, printed + said[-3000:]
    return printed, said


def compare(python, *arguments):
    """What a comparison printed."""
    with comparing(python, *arguments) as process:
        return end_of(process)[0]


@lacks(PRISM)
@pytest.mark.parametrize("method", METHODS)
def test_prism_finds_what_the_local_method_finds(method):
    runner = ("--runner", "PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK")
    options = ("--method", method, "--annotations", "3e4")
    assert f"{method}, 30,000 annotations" in compare(sys.executable, *options, *runner)


def by_job_server(address):
    return "--runner", "PortableRunner", f"--job_endpoint={address}", "--environment_type=LOOPBACK"


@pytest.fixture(scope="module")
def flink(tmp_path_factory):
    with flink_cluster(tmp_path_factory.mktemp("flink") / "cluster") as cluster:
        yield by_job_server(cluster.address)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with spark_server(tmp_path_factory.mktemp("spark") / "server") as (address, _):
        yield by_job_server(address)


@lacks(SPARK, PYTHON)
@pytest.mark.parametrize("method", METHODS)
def test_spark_finds_what_the_local_method_finds(spark, method):
    assert f"{method}, 30,000 annotations" in compare(PYTHON, "--method", method, "--annotations", "3e4", *spark)


@lacks(FLINK, JOB_SERVER, PYTHON)
@pytest.mark.parametrize("method", METHODS)
def test_flink_with_its_default_memory_finds_what_the_local_method_finds(flink, method):
    found = compare(PYTHON, "--method", method, "--annotations", "1e5", *flink)
    iterations, pipelines = (int(number) for number in re.search(r"(\d+) iterations, (\d+) pipelines", found).groups())
    assert (iterations > 8) == (pipelines > 1) == (method not in (*ONE_PASS, "robust"))  # of four steps


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """A cluster whose workers are in a pool; and the options of who uses it."""
    folder = tmp_path_factory.mktemp("pooled")
    with flink_cluster(folder / "cluster") as cluster, worker_pool(folder) as pool:
        place = f"--job_endpoint={cluster.address}", f"--environment_config={pool.address}"
        kept = "--environment_cache_millis=600000"
        yield cluster, pool, ("--runner", "PortableRunner", "--environment_type=EXTERNAL", kept, *place)


NEEDS_FLINK = lacks(FLINK, JOB_SERVER, PYTHON)
DAWID_SKENE = ("--method", "dawid-skene", "--annotations", "1e5")


@NEEDS_FLINK
@pytest.mark.parametrize("method", ["majority-vote", "dawid-skene"])
def test_workers_in_a_pool_find_what_the_local_method_finds(pooled, method):
    _, pool, options = pooled
    before = pool.started()
    found = compare(PYTHON, "--method", method, "--annotations", "1e5", *options)
    pipelines = int(re.search(r"(\d+) pipelines", found).group(1))
    started = pool.started() - before
    assert pipelines <= started <= 2 * pipelines, "one for a TaskManager and pipeline, not one for each step"


def wait_until(so, process):
    """Until something is so while a process runs."""
    while not so():
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.2)


@NEEDS_FLINK
@pytest.mark.parametrize("victim", ["worker", "taskmanager1", "jobmanager", "jobserver"])
def test_a_run_ends_with_the_same_answer_when_a_process_is_killed(pooled, tmp_path, victim):
    """In the second pipeline. The benchmark compares with the local method, and fails if they differ."""
    cluster, pool, options = pooled
    arguments = (*DAWID_SKENE, *options, "--folder", str(tmp_path), "--iterations-per-pipeline", "3", "--retries", "6")
    with comparing(PYTHON, *arguments, "--iterations", "8", "--timeout", "400") as process:
        wait_until(lambda: (tmp_path / "checkpoint-000001.manifest").exists(), process)
        wait_until(lambda: cluster.finished_steps() > 3, process)  # of some 30
        if victim == "worker":
            for worker in pool.workers():
                os.kill(worker, signal.SIGKILL)
        else:
            cluster.kill(victim)
            cluster.start(victim)
        assert not (tmp_path / "checkpoint-000002.manifest").exists()
        printed, said = end_of(process)
    cluster.wait()
    assert "0 labels" in printed
    again = "3 pipelines" not in printed  # a pipeline that is run again counts, too
    assert again == ("It is run again from checkpoint 1" in said)
    assert again or victim != "worker", "the others may die while the workers finish the pipeline by themselves"
