"""Exported models of masks: pixels or the bytes of a photograph in, classes of the pixels out."""

import io
import subprocess
import sys

import numpy as np
import pytest
from saved_models import keras, tf

from crowdzoo.errors import ConfigError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.layers import SpatialConfusions
from crowdzoo.models import CrowdModel, ImagePixels

H, W = 8, 10
NAMES = {"classes": ["ground", "cell"], "annotators": ["ann", "bob"]}
FRESH = """
import sys, numpy as np, tensorflow as tf
served = tf.saved_model.load(sys.argv[1])
assert "crowdzoo" not in sys.modules
x, expected = np.load(sys.argv[2]), np.load(sys.argv[3])
found = served.signatures["serving_default"](instances=tf.constant(x))
print(float(np.abs(found["probabilities"].numpy() - expected).max()), found["label"].shape)
"""


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    layer = SpatialConfusions(2, filters=[])
    hidden = keras.layers.Conv2D(2, 3, padding="same", name="features")
    base = keras.Sequential([keras.Input((H, W, 3)), hidden, keras.layers.Dense(2, activation="softmax")])
    model = CrowdModel(base, layer, features="features")
    layer.set_weights([np.random.default_rng(0).normal(size=w.shape) for w in layer.get_weights()])
    return model


def pixels(n=3):
    return np.random.default_rng(0).integers(0, 256, (n, H, W, 3)).astype("float32")


@pytest.mark.slow
def test_a_process_without_crowdzoo_gives_the_same_masks(model, tmp_path):
    model.export(tmp_path / "served" / "1", **NAMES)
    expected = model.predict(pixels(), verbose=0)
    np.save(tmp_path / "x.npy", pixels())
    np.save(tmp_path / "expected.npy", expected)
    arguments = [tmp_path / "served" / "1", tmp_path / "x.npy", tmp_path / "expected.npy"]
    done = subprocess.run([sys.executable, "-c", FRESH, *map(str, arguments)], capture_output=True, text=True)
    assert done.stdout == f"0.0 (3, {H}, {W})\n", done.stderr[-2000:]
    found = load_and_predict(tmp_path / "served", pixels())
    np.testing.assert_array_equal(found["label"], expected.argmax(axis=-1))
    # what an annotator would draw
    loaded = tf.saved_model.load(str(tmp_path / "served" / "1"))
    drawn = loaded.signatures["annotators"](instances=pixels(), annotator=tf.constant(["bob", "ann", "bob"]))
    x = {"instances": pixels(), "annotators": np.array([[1], [0], [1]])}
    said = np.exp(model(x).numpy()[..., 0, :])
    np.testing.assert_allclose(drawn["probabilities"].numpy(), said, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_bytes_of_an_image_go_in_and_a_mask_comes_out(model, tmp_path):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(pixels(1)[0].astype("uint8")).save(file, "PNG")
    model.export(tmp_path / "served" / "1", encoder=ImagePixels(H, W), **NAMES)
    found = load_and_predict(tmp_path / "served", [file.getvalue()])
    np.testing.assert_allclose(found["probabilities"], model.predict(pixels(1), verbose=0), rtol=1e-4, atol=1e-5)


def test_names_of_another_number_of_classes_are_refused(model, tmp_path):
    with pytest.raises(ConfigError, match="3 classes are named, the model has 2 outputs"):
        model.export(tmp_path / "served", classes=["a", "b", "c"], annotators=["ann", "bob"])
