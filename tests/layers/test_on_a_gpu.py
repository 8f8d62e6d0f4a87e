"""Every method's layer on a GPU with PyTorch, whose tensors must all lie there: by PyTorch's fakes, which need none."""

import contextlib

import keras
import numpy as np
import pytest

from crowdzoo.models import CrowdModel
from crowdzoo.training.methods import AGGREGATED, METHODS, RATING_METHODS, create_crowd_layer
from crowdzoo.training.phases import allow_training

pytestmark = pytest.mark.skipif(keras.backend.backend() != "torch", reason="PyTorch alone has fakes of a GPU")
B, D, R, K = 8, 4, 5, 3
CASES = [("classification", name) for name in METHODS] + [("regression", name) for name in RATING_METHODS]


@pytest.fixture
def gpu(monkeypatch):
    from keras.src.backend.torch import core, random
    from torch._subclasses.fake_tensor import FakeTensorMode

    monkeypatch.setattr(core, "DEFAULT_DEVICE", "cuda")
    monkeypatch.setattr(random, "torch_seed_generator", lambda seed: None)  # a real one needs the device
    with FakeTensorMode():
        yield core.convert_to_tensor


@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[1] != AGGREGATED])
def test_a_layer_makes_no_tensor_beside_the_gpu(kind, name, gpu):
    last = keras.layers.Dense(K, "softmax") if kind == "classification" else keras.layers.Dense(1)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(6, "relu"), last])
    arguments = {"hidden": [8]} if name == "lia" else {}
    model = CrowdModel(base, create_crowd_layer(name, R, K, arguments, kind=kind))
    model.compile("adam")
    annotators = gpu(np.tile(np.arange(3, dtype="int32"), (B, 1)))
    labels = gpu(np.ones((B, 3), "int32" if kind == "classification" else "float32"))
    inputs = {"instances": gpu(np.ones((B, D), "float32")), "annotators": annotators}
    with contextlib.nullcontext() if model.crowd is None else allow_training(model.crowd):
        if name in ("deep-em", "cross-fitted-em", "max-mig", "waum"):  # what they train on are the labels themselves
            inputs["labels"] = labels
        loss = model.compute_loss(inputs, labels, model(inputs, training=True), training=True)
    assert loss.device.type == "cuda"
