"""Brings what tests on real engines need into `.engines`: an object store, Prism, Flink, Spark, and a Beam for them.

And the schemas by which files for Kubernetes, KServe and Docker Compose are checked, and two programs that read
exported models: TensorFlow for Java and OpenVINO. And Label Studio, with which people annotate, MLflow's server, and
Prometheus.

    make engines        # some 10 minutes and 5 GB; needs go, java (17) and mvn, but not for the store and the servers;
                        # Prometheus is Debian's package, which needs `apt-get update` before

Versions are pinned. Go checks its modules against its checksum database; Flink's archive and the jars of Beam's job
server are checked here. What is there already is left alone.

Beam's job server is made from its parts as one jar: Flink is sent each jar of the class path by itself, for every
pipeline, and 162 jars take it 15 seconds.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINES = ROOT / ".engines"
PRISM = ENGINES / "prism"
JOB_SERVER = ENGINES / "job-server.jar"
FLINK = ENGINES / "flink"
SPARK = ENGINES / "spark"  # the jars of a job server in which Spark runs
PYTHON = ENGINES / "python" / "bin" / "python"  # with the Beam of the job server
STORE = ENGINES / "store" / "bin" / "moto_server"  # an object store that speaks Amazon's language
JAVA_JARS = ENGINES / "tensorflow-java"
OPENVINO = ENGINES / "openvino" / "bin" / "python"
MLFLOW = ENGINES / "mlflow" / "bin" / "mlflow"  # the server with its model registry
LABEL_STUDIO = ENGINES / "label-studio" / "bin" / "label-studio"
PROMETHEUS = ENGINES / "prometheus" / "usr" / "bin" / "prometheus"  # promtool is next to it
SCHEMAS = ENGINES / "schemas-2"  # of KServe, Compose and others, and a Python that knows Kubernetes'

FLINK_BEAM = "2.62.0"  # the last one of which all jars could be had when this was written
FLINK_PACKAGE = "apache-flink-libraries"
FLINK_VERSION = "1.19.3"
SPARK_VERSION = "3.5.0"  # that of which this Beam's runner is made
FLINK_SHA256 = "4a58e3a1fb7d83340bc96b6c080624c6d792d69fae5d294b96224775204a9c60"
SPARK_JARS_SHA256 = "08d7bfaf1f4834eada09afe07052fd72f575c3b14d41225e9680368e0cc04de0"
JARS_SHA256 = "d48aa836447648803693560de9fa84be15fa7f9c408f3ee20b6cd6d4da4f16f6"  # of the lines of `sha256sum *.jar`
PACKAGES = ("-r", f"{ROOT / 'pyproject.toml'}", f"apache-beam=={FLINK_BEAM}", "keras==3.12.4", "numpy<2", "pyyaml")
STORE_PACKAGES = ("moto[server]==5.2.5", "boto3==1.44.5")
LABEL_STUDIO_PACKAGES = ("label-studio==1.23.2",)
LABEL_STUDIO_PYTHON = "3.11"  # where it is found; else the Python that runs this
OPENVINO_PACKAGES = ("openvino==2026.4.1", "numpy==2.2.6")
JAVA_TENSORFLOW = "2.16"  # whose models it reads: of what TensorFlow for Java 1.0.0 is made
JAVA_JARS_SHA256 = "d40aa642639c19f636a374bd9347c4c40c2f32795ed0a1a0d39c6d3533a038c6"
JAVA_PARTS = (
    ("org.tensorflow", "tensorflow-core-api", "1.0.0", ""),
    ("org.tensorflow", "tensorflow-core-native", "1.0.0", "linux-x86_64"),
    ("org.bytedeco", "javacpp", "1.5.10", "linux-x86_64"),
)
SCHEMA_PACKAGES = ("kubernetes-validate==1.37.0", "jsonschema==4.26.0", "pyyaml==6.0.3")
# Go's module -> the files of it, and the checksum that Go gives
SCHEMA_MODULES = {
    "github.com/kserve/kserve@v0.15.2": (
        ("config/crd/full/serving.kserve.io_inferenceservices.yaml",),
        "h1:uph7Umk331fvBMrHHpTJNDt6+lf3IAuyiskaQw8wIAk=",
    ),
    "github.com/compose-spec/compose-go/v2@v2.6.0": (
        ("schema/compose-spec.json",),
        "h1:/+oBD2ixSENOeN/TlJqWZmUak0xM8A7J08w/z661Wd4=",
    ),
    "sigs.k8s.io/gateway-api@v1.2.1": (
        (
            "config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
            "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
        ),
        "h1:fZZ/+RyRb+Y5tGkwxFKuYuSRQHu9dZtbjenblleOLHM=",
    ),
    "github.com/prometheus-operator/prometheus-operator@v0.79.2": (
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        ),
        "h1:H/HCiMS4dXQyiFHw28PFlWMh15YUraL3MFe8u7k7dGA=",
    ),
}
LOGS = ("org.slf4j", "slf4j-simple", "1.7.36", "")
FLINK_PARTS = (("org.apache.beam", "beam-runners-flink-1.19", FLINK_BEAM, ""), LOGS)
SPARK_PARTS = (
    ("org.apache.beam", "beam-runners-spark-3", FLINK_BEAM, ""),
    *(("org.apache.spark", f"spark-{part}_2.12", SPARK_VERSION, "") for part in ("core", "streaming", "sql")),
    LOGS,
)
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>crowdzoo</groupId><artifactId>engines</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(found: str, wanted: str, what: str) -> None:
    """Ends where a download is not what it was."""
    if found != wanted:
        sys.exit(f"engines: {what} has the checksum {found}, expected {wanted}.")


def install_prism() -> None:
    """Beam's runner in Go, of the version that is installed here."""
    target = f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{version('apache-beam')}"
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        subprocess.run(["env", f"GOBIN={name}", "go", "install", target], check=True)
        Path(name, "prism").replace(PRISM)


def install_job_server() -> None:
    """Beam's job server for Flink, in one jar. Of files of one name the first stays, lists of services are joined."""
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        folder = Path(name)
        jars = download_jars(FLINK_PARTS, folder, JARS_SHA256, "the list of Beam's jars")
        seen: set[str] = set()
        services: dict[str, list[bytes]] = {}
        with zipfile.ZipFile(folder / "all.jar", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as together:
            for jar in sorted(jars, key=lambda jar: not jar.name.startswith("beam-")):
                with zipfile.ZipFile(jar) as part:
                    for entry in part.infolist():
                        file = entry.filename
                        if file.startswith("META-INF/services/") and not entry.is_dir():
                            services.setdefault(file, []).append(part.read(file))
                        elif not (entry.is_dir() or file in seen or belongs_to_one_jar(file)):
                            seen.add(file)
                            together.writestr(entry, part.read(file))
            for file, parts in services.items():
                together.writestr(file, b"\n".join(parts) + b"\n")
            together.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMulti-Release: true\n\n")
        (folder / "all.jar").replace(JOB_SERVER)


def install_spark() -> None:
    """Beam's job server for Spark, and Spark itself."""
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        download_jars(SPARK_PARTS, Path(name), SPARK_JARS_SHA256, "the list of Spark's jars")
        Path(name, "jars").replace(SPARK)


def download_jars(parts: tuple[tuple[str, str, str, str], ...], folder: Path, wanted: str, what: str) -> list[Path]:
    """Jars and what they need, in `jars` of a folder; their checksums together are what is wanted."""
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version>"
        f"{f'<classifier>{platform_name}</classifier>' if platform_name else ''}</dependency>"
        for group, name, number, platform_name in parts
    )
    (folder / "pom.xml").write_text(POM.format(dependencies))
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    subprocess.run(command, cwd=folder, check=True)
    jars = sorted((folder / "jars").glob("*.jar"))
    lines = "".join(f"{sha256(jar)}  {jar.name}\n" for jar in jars)
    check(hashlib.sha256(lines.encode()).hexdigest(), wanted, what)
    return jars


def belongs_to_one_jar(file: str) -> bool:
    """Whether a file says something of its jar as a whole: manifest and signatures."""
    return file.startswith("META-INF/") and file.endswith(("/MANIFEST.MF", ".SF", ".RSA", ".DSA"))


def install_flink() -> None:
    """Flink's jars, from the Python package that carries them."""
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        pip = [sys.executable, "-m", "venv", f"{name}/venv"]
        subprocess.run(pip, check=True)
        wanted = f"{FLINK_PACKAGE}=={FLINK_VERSION}"
        download = [f"{name}/venv/bin/pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", name, wanted]
        subprocess.run(download, check=True)
        archive = next(Path(name).glob("*.tar.gz"))
        check(sha256(archive), FLINK_SHA256, archive.name)
        with tarfile.open(archive) as file:
            file.extractall(name)
        shutil.move(next(Path(name).glob("*/deps")), FLINK)


def install_python() -> None:
    """Python with the job server's version of Beam: workers of another version lose their connection now and then."""
    if sys.version_info >= (3, 13):
        sys.exit(f"engines: Beam {FLINK_BEAM} needs Python 3.12 or older, so that tests on Flink skip here.")
    make_environment(PYTHON, PACKAGES)


def install_store() -> None:
    """moto's server."""
    make_environment(STORE.with_name("python"), STORE_PACKAGES)


def install_java() -> None:
    """TensorFlow for Java, where it is of the version of the TensorFlow that is installed here."""
    here = (sys.platform, platform.machine(), version("tensorflow").rpartition(".")[0])
    if here != ("linux", "x86_64", JAVA_TENSORFLOW):
        print(f"engines: TensorFlow for Java is left out; it is for TensorFlow {JAVA_TENSORFLOW} on Linux, x86_64.")
        return
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        download_jars(JAVA_PARTS, Path(name), JAVA_JARS_SHA256, "the list of jars of TensorFlow for Java")
        Path(name, "jars").replace(JAVA_JARS)


def install_openvino() -> None:
    """OpenVINO, in an environment of its own."""
    make_environment(OPENVINO, OPENVINO_PACKAGES)


def install_mlflow() -> None:
    """MLflow's server, of the version of the client that is installed here."""
    make_environment(MLFLOW.with_name("python"), (f"mlflow=={version('mlflow-skinny')}",))


def install_label_studio() -> None:
    """Label Studio, in an environment of its own: its Django and pandas are not those of crowdzoo."""
    python = shutil.which(f"python{LABEL_STUDIO_PYTHON}") or sys.executable
    make_environment(LABEL_STUDIO.with_name("python"), LABEL_STUDIO_PACKAGES, python)


def install_prometheus() -> None:
    """Prometheus and promtool from Debian's package, whose signature apt checks; the system is left as it is."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("engines: Prometheus is left out; it is taken from Debian's package.")
        return
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=name, check=True)
        (package,) = Path(name).glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, Path(name, "files")], check=True)
        Path(name, "files").replace(PROMETHEUS.parents[2])


def install_schemas() -> None:
    """Schemas of files for Kubernetes, KServe and Docker Compose."""
    with tempfile.TemporaryDirectory(dir=ENGINES) as name:
        folder = Path(name, "schemas")
        make_environment(folder / "bin" / "python", SCHEMA_PACKAGES)
        Path(name, "go.mod").write_text("module crowdzoo/schemas\n")
        for module, (files, wanted) in SCHEMA_MODULES.items():
            command = ["go", "mod", "download", "-json", module]
            done = subprocess.run(command, cwd=name, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            check(found["Sum"], wanted, module)
            for file in files:
                shutil.copyfile(Path(found["Dir"], file), folder / Path(file).name)
        folder.replace(SCHEMAS)


def make_environment(python: Path, packages: tuple[str, ...], base: str = sys.executable) -> None:
    """An environment with packages, of the Python that runs this or of another one."""
    uv = shutil.which("uv") or ROOT / ".venv-tools" / "bin" / "uv"
    subprocess.run([uv, "venv", "-q", "--clear", "--python", base, python.parents[1]], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", python, *packages], check=True)


def main() -> None:
    ENGINES.mkdir(exist_ok=True)
    bring(STORE, install_store)
    bring(LABEL_STUDIO, install_label_studio)
    bring(PROMETHEUS, install_prometheus)
    bring(MLFLOW, install_mlflow)
    lacking = [tool for tool in ("go", "java", "mvn") if shutil.which(tool) is None]
    if lacking:
        sys.exit(f"engines: {', '.join(lacking)} not found; install Go, Java 17 and Maven.")
    for path, install in (
        (OPENVINO, install_openvino),
        (SCHEMAS, install_schemas),
        (JAVA_JARS, install_java),
        (PRISM, install_prism),
        (JOB_SERVER, install_job_server),
        (FLINK, install_flink),
        (SPARK, install_spark),
        (PYTHON, install_python),
    ):
        bring(path, install)


def bring(path: Path, install: Callable[[], None]) -> None:
    """Installs what is not there."""
    if not path.exists():
        print(f"engines: {path.relative_to(ROOT)}", flush=True)
        install()


if __name__ == "__main__":
    main()
