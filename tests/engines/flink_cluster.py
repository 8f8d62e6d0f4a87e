"""A Flink cluster on this machine: a JobManager, two TaskManagers, and Beam's job server."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from install import FLINK, JOB_SERVER

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


@contextmanager
def flink_cluster(folder: Path, memory: str = "1728m", network: str = "") -> Iterator[str]:
    """Starts the four processes; gives the address of the job server, and ends them.

    Args:
        folder: for configuration and logs; is made.
        memory: of a TaskManager; by Flink's defaults a tenth of it is for what goes between steps.
        network: memory for what goes between steps, where it is not that.
    """
    conf, logs = folder / "conf", folder / "logs"
    conf.mkdir(parents=True)
    logs.mkdir()
    rpc, rest, job, artifact, expansion = free_ports(5)
    sizes = [f"taskmanager.memory.network.{end}: {network}\n" for end in ("min", "max") if network]
    (conf / "config.yaml").write_text(CONFIG.format(rpc=rpc, rest=rest, memory=memory) + "".join(sizes))
    classes = ":".join(map(str, sorted((FLINK / "lib").glob("*.jar"))))
    java, settings = memory_of_task_manager(classes, conf)
    processes: list[subprocess.Popen] = []

    def start(name: str, *command: str) -> None:
        with (logs / f"{name}.log").open("w") as log:
            environment = {**os.environ, "FLINK_CONF_DIR": str(conf)}
            processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True, cwd=folder)
            )

    flink = (*JAVA, "-cp", classes)
    try:
        manager = f"{RUNTIME}.entrypoint.StandaloneSessionClusterEntrypoint"
        start("jobmanager", *flink, "-Xmx1g", manager, "--configDir", str(conf))
        for number in (1, 2):
            worker = f"{RUNTIME}.taskexecutor.TaskManagerRunner"
            start(f"taskmanager{number}", *flink, *java, worker, "--configDir", str(conf), *settings)
        start(
            "jobserver", "java", "-Xmx1g", "-cp", str(JOB_SERVER),
            "org.apache.beam.runners.flink.FlinkJobServerDriver", f"--flink-master=localhost:{rest}",
            "--job-host=localhost", f"--job-port={job}", f"--artifact-port={artifact}",
            f"--expansion-port={expansion}", f"--artifacts-dir={folder / 'staging'}",
        )  # fmt: skip

        def complete() -> bool:
            with urllib.request.urlopen(f"http://localhost:{rest}/overview", timeout=2) as answer:
                return json.load(answer)["taskmanagers"] == 2

        wait_for(complete, "Flink has not two TaskManagers", logs)
        wait_for(lambda: connects(job), "the job server does not listen", logs)
        yield f"localhost:{job}"
    finally:
        for process in reversed(processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
