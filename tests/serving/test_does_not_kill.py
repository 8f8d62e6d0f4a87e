"""Requests that once took all memory: a server that may have 2 GiB more answers or refuses each, and lives."""

import os
import subprocess
import sys

import httpx
import pytest
from running_server import predict_request, proto_of

from crowdzoo.serving import Client

# a server of a model of texts, which may take 2 GiB of memory beyond what it has when it is started
SERVE = """
import resource, sys
from crowdzoo.serving import serve
def ready(server):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), used + (2 << 30)))
    print("ports", server.rest_port, server.grpc_port, flush=True)
serve(sys.argv[1], rest_port=0, grpc_port=0, on_ready=ready)
"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the limit is of Linux")]


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    import keras

    from crowdzoo.export.saved_model import export_model
    from crowdzoo.models import CrowdModel, TextClassifier, TextIds

    keras.utils.set_random_seed(0)
    encoder = TextIds(["good", "bad"])
    base = TextClassifier(encoder.num_words, 2, form="convolutional", embedding=64, filters=64)
    base.adapt(encoder.to_numpy(["good bad"]))
    model = CrowdModel(base)
    folder = tmp_path_factory.mktemp("texts")
    export_model(model, folder / "1", classes=["a", "b"], encoder=encoder)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "MALLOC_ARENA_MAX": "2"},
    )  # fmt: skip
    found = next((line.split()[1:] for line in process.stdout if line.startswith("ports ")), None)
    assert found, process.wait()
    yield found
    assert process.poll() is None, "the server died"
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.fixture(autouse=True)
def lives(ports):
    """After each request a good one is answered."""
    yield
    with Client(f"http://127.0.0.1:{ports[0]}") as client:
        assert client.predict(["good"])["class"].shape == (1,)


def post(ports, body):
    url = f"http://127.0.0.1:{ports[0]}/v1/models/model:predict"
    return httpx.post(url, content=body, trust_env=False, timeout=120)


def test_two_thousand_texts_beside_one_of_20_000_words_are_answered(ports):
    for url in (f"http://127.0.0.1:{ports[0]}", f"grpc://127.0.0.1:{ports[1]}"):
        with Client(url, timeout=120) as client:
            assert len(client.predict(["good"] * 2000 + ["bad " * 20_000])["class"]) == 2001


def test_one_string_of_250_kb_for_30_000_rows_is_refused(ports):
    import grpc

    request = predict_request({"instances": proto_of(7, 30_000, string_val=[b"x" * 250_000])})
    request.model_spec.name = "model"
    with grpc.insecure_channel(f"127.0.0.1:{ports[1]}", [("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        with pytest.raises(grpc.RpcError, match=r"shape \[30000\] takes more than the 67,108,864 bytes"):
            call(request.SerializeToString(), timeout=60)


def test_60_mb_of_empty_lists_are_refused(ports):
    answer = post(ports, b'{"instances": [' + b"[]," * 20_000_000 + b"[]]}")
    assert answer.status_code == 413
    assert "bytes of memory once they are read" in answer.json()["error"]
