import contextlib
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORE = ROOT / ".engines" / "store" / "bin" / "moto_server"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}

sys.path.insert(0, str(Path(__file__).parent))

# the extra `pipeline` brings it; without it there is nothing to test here
if find_spec("tfx") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Environment variables that lead to an object store of this machine, which has the bucket `crowd`."""
    if not STORE.exists():
        pytest.skip(f"no {STORE.relative_to(ROOT)}: run `make engines`")
    boto3 = pytest.importorskip("boto3", reason="the extra `s3` is not installed")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    log = open(tmp_path_factory.mktemp("store") / "log", "w")  # noqa: SIM115, closed below
    server = subprocess.Popen([STORE, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    try:
        with pytest.MonkeyPatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            client = boto3.client("s3")
            for _ in range(300):
                with contextlib.suppress(Exception):
                    client.create_bucket(Bucket="crowd")
                    break
                assert server.poll() is None, Path(log.name).read_text()
                time.sleep(0.1)
            yield environment
    finally:
        server.terminate()
        server.wait()
        log.close()


@pytest.fixture(scope="session")
def client(store):
    """boto3's client of the store."""
    import boto3

    return boto3.client("s3", endpoint_url=store["AWS_ENDPOINT_URL"])


@pytest.fixture(autouse=True)
def _store_environment(monkeypatch):
    """Beam makes its client of the store when it is first used."""
    for key, value in CREDENTIALS.items():
        if key not in os.environ:
            monkeypatch.setenv(key, value)
