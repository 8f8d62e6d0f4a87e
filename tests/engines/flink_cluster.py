"""A Flink cluster on this machine: a JobManager, two TaskManagers, and Beam's job server."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from install import FLINK, JOB_SERVER, PYTHON, ROOT

CONFIG = """jobmanager.rpc.address: localhost
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: localhost
jobmanager.memory.process.size: 1600m
taskmanager.host: localhost
taskmanager.bind-host: localhost
taskmanager.memory.process.size: {memory}
taskmanager.numberOfTaskSlots: 2
parallelism.default: 2
rest.address: localhost
rest.bind-address: localhost
rest.port: {rest}
classloader.resolve-order: parent-first
process.working-dir: {scratch}
io.tmp.dirs: {scratch}
"""
RUNTIME = "org.apache.flink.runtime"
# what Flink's own scripts open of Java 17
EXPORTS = ("java.base/sun.net.util", "java.rmi/sun.rmi.registry", "java.security.jgss/sun.security.krb5")
OPENS = ("lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent",
         "util.concurrent.atomic", "util.concurrent.locks")  # fmt: skip
JAVA = (
    "java",
    *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS),
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENS),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def memory_of_task_manager(classes: str, conf: Path) -> tuple[list[str], list[str]]:
    """Java's options and Flink's settings for the memory that the configuration gives, computed by Flink itself."""
    utilities = f"{FLINK}/bin/bash-java-utils.jar:{classes}"
    tool = [f"{RUNTIME}.util.bash.BashJavaUtils", "GET_TM_RESOURCE_PARAMS", "--configDir", str(conf), "--bindir", "."]
    done = subprocess.run([*JAVA, "-cp", utilities, *tool], check=True, capture_output=True, text=True)
    mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
    java, flink = (line.partition(mark)[2] for line in done.stdout.splitlines() if mark in line)
    return java.split(), flink.split()


def wait_for(ready, what: str, logs: Path, seconds: float = 120) -> None:
    """Asks until it is so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            if ready():
                return
        time.sleep(0.5)
    raise TimeoutError(f"{what} after {seconds} s; logs are in {logs}")


def connects(port: int) -> bool:
    with socket.create_connection(("localhost", port), timeout=1):
        return True


class FlinkCluster:
    """Four processes: `jobmanager`, `taskmanager1`, `taskmanager2` and `jobserver`; any of them may be killed.

    Args:
        folder: for configuration and logs; is made.
        memory: of a TaskManager; by Flink's defaults a tenth of it is for what goes between steps.
        network: memory for what goes between steps, where it is not that.
    """

    def __init__(self, folder: Path, memory: str, network: str):
        self.folder, self.conf, self.logs = folder, folder / "conf", folder / "logs"
        self.scratch = folder / "scratch"  # some GB of Python environments; a killed TaskManager leaves its own
        self.conf.mkdir(parents=True)
        self.logs.mkdir()
        self.scratch.mkdir()
        rpc, self.rest, self.job, artifact, expansion = free_ports(5)
        sizes = [f"taskmanager.memory.network.{end}: {network}\n" for end in ("min", "max") if network]
        config = CONFIG.format(rpc=rpc, rest=self.rest, memory=memory, scratch=self.scratch)
        (self.conf / "config.yaml").write_text(config + "".join(sizes))
        classes = ":".join(map(str, sorted((FLINK / "lib").glob("*.jar"))))
        java, settings = memory_of_task_manager(classes, self.conf)
        flink = (*JAVA, "-cp", f"{classes}:{JOB_SERVER}")
        worker = (*flink, *java, f"{RUNTIME}.taskexecutor.TaskManagerRunner", "--configDir", str(self.conf), *settings)
        manager = f"{RUNTIME}.entrypoint.StandaloneSessionClusterEntrypoint"
        self.commands = {
            "jobmanager": (*flink, "-Xmx1g", manager, "--configDir", str(self.conf)),
            "taskmanager1": worker,
            "taskmanager2": worker,
            "jobserver": (
                "java", "-Xmx1g", "-cp", str(JOB_SERVER),
                "org.apache.beam.runners.flink.FlinkJobServerDriver", f"--flink-master=localhost:{self.rest}",
                "--job-host=localhost", f"--job-port={self.job}", f"--artifact-port={artifact}",
                f"--expansion-port={expansion}", f"--artifacts-dir={folder / 'staging'}",
            ),
        }  # fmt: skip
        self.processes: dict[str, subprocess.Popen] = {}

    @property
    def address(self) -> str:
        """Where the job server listens."""
        return f"localhost:{self.job}"

    def start(self, name: str) -> None:
        """Starts one of the processes."""
        with (self.logs / f"{name}.log").open("a") as log:
            environment = {**os.environ, "FLINK_CONF_DIR": str(self.conf)}
            self.processes[name] = subprocess.Popen(
                self.commands[name], stdout=log, stderr=log, env=environment, start_new_session=True, cwd=self.folder
            )

    def kill(self, name: str) -> None:
        """Ends one of the processes at once, without a chance to say anything."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait(self) -> None:
        """Until the cluster is complete."""
        wait_for(lambda: self._ask("overview")["taskmanagers"] == 2, "Flink has not two TaskManagers", self.logs)
        wait_for(lambda: connects(self.job), "the job server does not listen", self.logs)

    def _ask(self, what: str) -> Any:
        with urllib.request.urlopen(f"http://localhost:{self.rest}/{what}", timeout=10) as answer:
            return json.load(answer)

    def finished_steps(self) -> int:
        """How many steps of the job that runs have finished; 0: there is none."""
        running = [job for job in self.jobs() if job["state"] == "RUNNING"]
        return sum(step["status"] == "FINISHED" for job in running for step in job["vertices"])

    def jobs(self) -> list[dict[str, Any]]:
        """What Flink says of each job that it has run: its state, and each step's records and bytes."""
        return [self._ask(f"jobs/{job['id']}") for job in self._ask("jobs")["jobs"]]


@contextmanager
def flink_cluster(folder: Path, memory: str = "1728m", network: str = "") -> Iterator[FlinkCluster]:
    """Starts a cluster, and ends it. Arguments: see `FlinkCluster`."""
    cluster = FlinkCluster(folder, memory, network)
    try:
        for name in cluster.commands:
            cluster.start(name)
        cluster.wait()
        yield cluster
    finally:
        for name in reversed(list(cluster.processes)):
            cluster.kill(name)
        shutil.rmtree(cluster.scratch, ignore_errors=True)


@dataclass
class WorkerPool:
    """A pool of workers in Python, apart from Flink and from who calls: each worker is a process of its own."""

    address: str
    log: Path
    process: subprocess.Popen

    def workers(self) -> list[int]:
        """Ids of the processes that the pool has started and that live."""
        found = subprocess.run(
            ["ps", "-o", "pid=,stat=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        rows = (line.split() for line in found.stdout.splitlines())
        return [int(pid) for pid, state in rows if not state.startswith("Z")]

    def started(self) -> int:
        """How many workers it has started so far."""
        return self.log.read_text().count("Starting worker with command")


@contextmanager
def worker_pool(folder: Path) -> Iterator[WorkerPool]:
    """Starts a pool, whose log goes to a folder, and ends it and its workers."""
    (port,) = free_ports(1)
    path = f"{PYTHON.parent}:{os.environ['PATH']}"  # it starts `python`, the first one there is
    command = [PYTHON, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    log = folder / "pool.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=environment, start_new_session=True, cwd=folder
        )
    try:
        wait_for(lambda: connects(port), "the pool of workers does not listen", folder)
        yield WorkerPool(f"localhost:{port}", log, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
