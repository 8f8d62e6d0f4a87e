"""A model of images that is asked with the bytes of files, over REST and gRPC, and in a process without crowdzoo."""

import io

import numpy as np
import pytest
from running_server import serving

pytest.importorskip("PIL")

import keras
from PIL import Image

from crowdzoo.errors import DataError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel, ImageClassifier, ImagePixels

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
def server(folder):
    with serving(folder, "photos") as running:
        yield running


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
