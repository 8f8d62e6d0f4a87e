"""Beam's job server for Spark, with a Spark of two cores in the same process."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flink_cluster import connects, free_ports, wait_for
from install import SPARK

# what Spark's own scripts open of Java 17
OPENS = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
         "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action",
         "sun.util.calendar")  # fmt: skip
JAVA = ("java", "-Xmx3g", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENS))


@contextmanager
def spark_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Starts it, and ends it; gives its address and the id of its process.

    Args:
        folder: for its log and what it is sent; is made.
    """
    folder.mkdir(parents=True)
    job, artifact, expansion = free_ports(3)
    command = [
        *JAVA, f"-Djava.io.tmpdir={folder}", f"-Dspark.local.dir={folder}", "-cp", f"{SPARK}/*",
        "org.apache.beam.runners.spark.SparkJobServerDriver", "--spark-master-url=local[2]", "--job-host=localhost",
        f"--job-port={job}", f"--artifact-port={artifact}", f"--expansion-port={expansion}",
        f"--artifacts-dir={folder / 'staging'}",
    ]  # fmt: skip
    with open(folder / "log", "w") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as process:
        try:
            wait_for(lambda: connects(job), "the job server does not listen", folder / "log")
            yield f"localhost:{job}", process.pid
        finally:
            process.kill()
