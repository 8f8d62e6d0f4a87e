"""The client, over both protocols."""

import socket
import subprocess
import sys

import numpy as np
import pytest

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client


def test_predictions_are_the_models_own(client, pets, instances):
    outputs = client.predict(instances)
    expected = pets.models[2].predict(instances, verbose=0)
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-6)
    assert outputs["probabilities"].dtype == np.float32
    assert outputs["label"].dtype == np.int64
    assert outputs["class"].tolist() == [pets.classes[k] for k in expected.argmax(axis=1)]


def test_both_protocols_give_the_same_bits(server, instances):
    with Client(server.url, model="pets") as rest, Client(server.grpc_url, model="pets") as grpc:
        first, second = rest.predict(instances), grpc.predict(instances)
        assert rest.metadata() == grpc.metadata()
        assert rest.status() == grpc.status()
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("protocol", ["url", "grpc_url"])
def test_a_version_can_be_chosen(server, pets, instances, protocol):
    with Client(getattr(server, protocol), model="pets", version=1) as client:
        assert client.metadata()["version"] == 1
        expected = pets.models[1].predict(instances, verbose=0)
        np.testing.assert_allclose(client.predict(instances)["probabilities"], expected, atol=1e-6)
        assert [one["version"] for one in client.status()] == [1]


X = np.zeros((2, 4), "float32")
REFUSED = {
    "NaN": ({"instances": np.full((2, 4), np.nan)}, r"input 'instances': nan at \[0, 0\] is not a finite number"),
    "too large": ({"instances": X + np.float64(1e39)}, "too large for float32"),
    "ragged": ({"instances": [[1, 2], [3]]}, "different lengths"),
    "text": ({"instances": [["a"] * 4]}, "not float32"),
    "name that is no text": ({"instances": X, "signature": "annotators", "annotator": [1, 2]}, "is not a text"),
    "fewer names": ({"instances": X, "signature": "annotators", "annotator": ["ann"]}, "has 1 rows, but"),
    "batch size": ({"instances": X, "batch_size": -1}, "batch_size: must be at least 1"),
    "signature": ({"instances": X, "signature": "annotator"}, "signature 'annotator' is not in model 'pets'"),
    "shape, by the server": ({"instances": X[:, :3]}, r"shape \[2, 3\] does not fit \[-1, 4\]"),
    "no rows, by the server": ({"instances": X[:0]}, "input 'instances': "),
    "unknown input, by the server": ({"instances": X, "annotatr": "ann"}, "unknown input 'annotatr'"),
    "unknown name, by the server": ({"instances": X, "signature": "annotators", "annotator": "zoe"}, "this model: zoe"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_said(client, case):
    arguments, message = REFUSED[case]
    with pytest.raises(ServingError, match=message):
        client.predict(**arguments)


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_no_server_is_said_with_a_way_out(scheme):
    with socket.socket() as bound:  # bound and not listening: nobody answers there
        bound.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{bound.getsockname()[1]}"
        with Client(url, timeout=5) as client, pytest.raises(ServingError, match=r"does not answer.*crowdzoo serve"):
            client.predict(X)


@pytest.mark.parametrize("url", ["127.0.0.1:8501", "ftp://127.0.0.1", "http://"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(ServingError, match="write http://host:port"):
        Client(url)


def test_the_rest_client_needs_no_tensorflow():
    script = """
import sys
from crowdzoo.serving import Client
Client("http://127.0.0.1:1").close()
heavy = {"tensorflow", "keras", "grpc", "apache_beam", "tfx"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)
