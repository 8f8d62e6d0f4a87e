"""A model of images that is asked with the bytes of files, over REST and gRPC, and in a process without crowdzoo."""

import base64
import io
import json
import subprocess
import sys

import httpx
import numpy as np
import pytest

pytest.importorskip("PIL")

import keras
from PIL import Image

from crowdzoo.errors import DataError, ServingError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel, ImageClassifier, ImagePixels
from crowdzoo.serving import Client, Server

pytestmark = pytest.mark.slow
CLASSES = ["cat", "dog", "cow"]


def file_of(seed, kind):
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype="uint8")).save(stream, kind)
    return stream.getvalue()


FILES = [file_of(0, "JPEG"), file_of(1, "PNG"), file_of(2, "BMP")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    keras.utils.set_random_seed(0)
    base = ImageClassifier(16, 16, len(CLASSES), filters=(4,), augment=True)
    crowd = CrowdsourcedLayer(2)
    crowd.build((None, len(CLASSES)))
    model = CrowdModel(base, crowd)
    path = tmp_path_factory.mktemp("photos")
    export_model(
        model, path / "1", classes=CLASSES, annotators=["ann", "bob"], encoder=ImagePixels(16, 16), name="photos",
        warmup_instances=FILES[:1],
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def expected(folder):
    return load_and_predict(folder, FILES)


@pytest.fixture(scope="module")
def running(folder):
    with Server(folder, name="photos", rest_port=0, grpc_port=0) as server:
        yield server


@pytest.fixture(params=["http", "grpc"])
def client(request, running):
    port = running.rest_port if request.param == "http" else running.grpc_port
    with Client(f"{request.param}://127.0.0.1:{port}", model="photos") as connected:
        yield connected


def test_bytes_and_paths_get_the_same_answers_over_both_protocols(client, expected, tmp_path):
    assert np.ptp(expected["probabilities"], axis=0).max() > 1e-3
    paths = [tmp_path / name for name in ("a.jpg", "b.png", "c.bmp")]
    for path, content in zip(paths, FILES, strict=True):
        path.write_bytes(content)
    for instances in (FILES, paths):
        found = client.predict(instances)
        assert found["class"].tolist() == expected["class"].tolist()
        np.testing.assert_allclose(found["probabilities"], expected["probabilities"], rtol=1e-5)
    said = client.predict(FILES, signature="annotators", annotator="bob")
    assert said["probabilities"].shape == (3, 3)
    with pytest.raises(DataError, match=r"d\.jpg does not exist"):
        client.predict([tmp_path / "d.jpg"])


def test_rows_without_an_image_are_named(client):
    for bad in (b"no image", FILES[0][:100], b""):
        with pytest.raises(ServingError, match=r"no sound JPEG, PNG or BMP.* in row 1"):
            client.predict([FILES[0], bad])


def test_rest_takes_b64_as_tensorflow_serving_does(running, expected):
    url = f"http://127.0.0.1:{running.rest_port}/v1/models/photos:predict"
    body = {"instances": [{"b64": base64.b64encode(content).decode()} for content in FILES]}
    found = httpx.post(url, content=json.dumps(body)).json()["predictions"]
    assert [answer["class"] for answer in found] == expected["class"].tolist()


def test_base64_as_plain_text_is_told_how_to_be_sent(running):
    url = f"http://127.0.0.1:{running.rest_port}/v1/models/photos:predict"
    answer = httpx.post(url, content=json.dumps({"instances": [base64.b64encode(FILES[0]).decode()]}))
    assert answer.status_code == 400
    assert answer.json()["error"].endswith("image (bytes of a file; in JSON {b64: ...} with their base64) in row 0")


def test_the_card_says_the_size_policy_and_the_request_beside_it_is_one(folder, running):
    card = json.loads((folder / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["images"] == {
        "height": 16, "width": 16, "fit": "crop", "max_megapixels": 50.0,
        "formats": ["JPEG", "PNG", "BMP (24 or 32 bits)"],
    }  # fmt: skip
    request = json.loads((folder / "1" / "assets.extra" / "request.json").read_text())
    assert base64.b64decode(request["instances"][0]["b64"]) == FILES[0]


def test_the_model_answers_in_a_process_without_crowdzoo(folder, expected, tmp_path):
    for number, content in enumerate(FILES):
        (tmp_path / f"{number}").write_bytes(content)
    code = f"""
import json, sys
import tensorflow as tf
model = tf.saved_model.load({str(folder / "1")!r})
files = [open({str(tmp_path)!r} + f"/{{number}}", "rb").read() for number in range(3)]
print(json.dumps(model.signatures["serving_default"](instances=tf.constant(files))["probabilities"].numpy().tolist()))
assert "crowdzoo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(done.stdout.splitlines()[-1]), expected["probabilities"], rtol=1e-4)
