"""Saved models load in a fresh process that imports keras and crowdzoo, nothing else; load_model says what is wrong."""

import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from pkgutil import resolve_name

import keras
import numpy as np
import pytest

import crowdzoo
from crowdzoo import losses, saving
from crowdzoo.errors import DataError
from crowdzoo.layers import LayerTraits
from crowdzoo.models import METHODS, RATING_METHODS
from crowdzoo.networks.encoders import _ENCODERS
from crowdzoo.training.methods import create_crowd_layer

if keras.backend.backend() != "tensorflow":
    pytest.skip("one backend is enough: what a process imports is the same", allow_module_level=True)

REGISTERED = {name: module for module, names in saving._CLASSES.items() for name in names.split()}
D, K, R = 3, 2, 2
# run in the fresh process: loads every model of a folder and predicts
CHILD = """
import pickle, sys
import {first}
import {second}
import numpy as np
assert not any(name.startswith(("crowdzoo.layers", "crowdzoo.models")) for name in sys.modules)
for name in {names}:
    model = keras.saving.load_model(f"{folder}/{{name}}.keras")
    with open(f"{folder}/{{name}}.pickle", "rb") as file:
        x, expected = pickle.load(file)
    np.testing.assert_array_equal(np.asarray(model(x)), expected, err_msg=name)
# the other order: crowdzoo is imported where Keras is there already
for name in [name for name in sys.modules if name.split(".")[0] == "crowdzoo"]:
    del sys.modules[name]
keras.saving.get_custom_objects().clear()
import crowdzoo
assert "crowdzoo.layers" not in sys.modules
assert type(crowdzoo.load_model("{folder}/conal.keras")).__name__ == "CrowdModel"
assert keras.saving.get_registered_object("crowdzoo>CoNAL") is crowdzoo.layers.CoNAL
assert keras.saving.get_registered_object("crowdzoo>DeepEM")(num_annotators=3).num_annotators == 3
print("loaded")
"""


def models():
    """Models that hold every registered class, with their inputs."""
    from crowdzoo.layers import (
        CRF,
        LabelUnit,
        PairAnnotators,
        PairProbabilities,
        SpatialConfusions,
        Standardization,
        doctor_net,
    )
    from crowdzoo.layers.masked_convolution import MaskedConvolution
    from crowdzoo.layers.mirror_and_shift import MirrorAndShift
    from crowdzoo.layers.tf_idf import TfIdf
    from crowdzoo.models import (
        CrowdModel,
        FeatureClassifier,
        FeatureRegressor,
        ImageClassifier,
        ImageRegressor,
        Preprocessed,
        RewardModel,
        SequenceTagger,
        TextClassifier,
        TextRegressor,
        UNet,
    )
    from crowdzoo.optimizers import LazyAdam
    from crowdzoo.training.gold_metric import CrowdAccuracy

    x = np.random.default_rng(0).normal(size=(4, D)).astype("float32")
    codes = np.array([[2, 3, 4, 0], [5, 1, 0, 0]], "int32")

    def compiled(model, **arguments):
        model.compile(**arguments)
        return model

    for method in METHODS:
        layer = create_crowd_layer(method, R, K, {"hidden": [2]} if method == "lia" else {})
        heads = None if getattr(layer, "traits", LayerTraits()).needs_hidden_layer else K
        yield method, compiled(CrowdModel(FeatureClassifier(D, heads, hidden=(2,)), layer), metrics=["accuracy"]), x
    for method in RATING_METHODS:
        layer = create_crowd_layer(method, R, 1, kind="regression", center=3.0, unit=2.0)
        yield f"rating-{method}", compiled(CrowdModel(FeatureRegressor(D), layer)), x
    for loss in (
        doctor_net.VoteShareCrossentropy(), losses.MaskedCrossentropy(), losses.MaskedCrowdMeanSquaredError(),
        losses.MaskedCrowdEvidence(),
        losses.RatingSquaredError(2.0),
    ):  # fmt: skip
        model = keras.Sequential([keras.Input((D,)), keras.layers.Dense(K)])
        yield type(loss).__name__, compiled(model, loss=loss, metrics=[CrowdAccuracy()]), x
    base = keras.Sequential([keras.Input((2,)), PairProbabilities()])
    yield "pairs", compiled(CrowdModel(base, PairAnnotators(R, 9))), x[:, :2]
    scorer = keras.Sequential([keras.Input((D,)), keras.layers.Dense(1)])
    yield "reward-model", compiled(CrowdModel(RewardModel(scorer), PairAnnotators(R, 9))), {"left": x, "right": x[::-1]}
    pixels = np.random.default_rng(1).integers(0, 256, size=(2, 8, 8, 3)).astype("uint8")
    small = {"height": 8, "width": 8, "filters": (2,), "augment": True}
    yield "image-classifier", compiled(CrowdModel(ImageClassifier(num_classes=K, **small))), pixels
    yield "image-regressor", compiled(CrowdModel(ImageRegressor(**small))), pixels
    masks = CrowdModel(UNet(8, 8, K, filters=(2,)), SpatialConfusions(R))
    yield "masks", compiled(masks), pixels.astype("float32")
    halved = Preprocessed(FeatureClassifier(D, K), keras.layers.Rescaling(0.5), shape=(D,))
    model = compiled(CrowdModel(halved))
    model(x)  # it says nothing of its input before
    yield "preprocessed", model, x
    yield "text-classifier", compiled(CrowdModel(TextClassifier(9, K, "bag-of-words"))), codes
    yield "text-regressor", compiled(CrowdModel(TextRegressor(9, "bag-of-words"))), codes
    tagger = SequenceTagger(9, K, embedding=2, filters=2, units=2, crf=True)
    yield "tagger", compiled(CrowdModel(tagger), optimizer=LazyAdam()), {"words": codes}
    # the zoo's own bases make these layers anew: they are in a file where somebody's own model holds them
    yield "features", keras.Sequential([keras.Input((D,)), Standardization(), LabelUnit(1.0, 2.0)]), x
    yield "pixels", keras.Sequential([keras.Input((8, 8, 3)), MirrorAndShift(0.25)]), pixels.astype("float32")
    yield "words", keras.Sequential([keras.Input((4,), dtype="int32"), TfIdf(9)]), codes
    tokens = keras.Input((4, 2))
    convolved = MaskedConvolution(2, 3)(tokens, keras.ops.ones_like(tokens[..., 0], dtype="bool"))[0]
    yield "tokens", keras.Model(tokens, CRF()(convolved)), np.ones((2, 4, 2), "float32")


def test_every_registered_class_has_its_place_in_the_table():
    root = Path(crowdzoo.__file__).parent
    registered = re.compile(r"^@keras\.saving\.register_keras_serializable\(.*\)\nclass (\w+)", re.MULTILINE)
    found = {}
    for folder in ("", "layers", "networks", "training"):
        for path in (root / folder).glob("*.py"):
            for name in registered.findall(path.read_text()):
                found[name] = ".".join(["crowdzoo", *path.relative_to(root).with_suffix("").parts])
    assert found == REGISTERED


@pytest.mark.slow
def test_classes_load_in_a_fresh_process_with_keras_and_crowdzoo_imported_in_either_order(tmp_path):
    names, held = [], set()
    for name, model, x in models():
        model.save(tmp_path / f"{name}.keras")
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps((x, np.asarray(model(x)))))
        with zipfile.ZipFile(tmp_path / f"{name}.keras") as file:
            held |= set(re.findall(r"crowdzoo>(\w+)", file.read("config.json").decode()))
        names.append(name)
    assert held == {*REGISTERED}
    code = CHILD.format(first="crowdzoo", second="keras", names=names, folder=tmp_path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("loaded\n"), done.stderr[-3000:]
    loaded = crowdzoo.load_model(tmp_path / "conal.keras", compile=False)
    assert not loaded.compiled


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.keras", "missing.keras does not exist"),
        (".", "is a folder. A model that was exported for serving cannot be trained on"),
        ("weights.h5", "the name of a model file must end in .keras"),
        ("broken.keras", "broken.keras: is not a valid model file"),
    ],
)
def test_what_is_no_model_is_refused(name, message, tmp_path):
    for file in ("weights.h5", "broken.keras"):
        (tmp_path / file).write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=message):
        crowdzoo.load_model(tmp_path / name)


@pytest.mark.parametrize("nested", [False, True])
def test_a_class_that_is_not_registered_is_named_without_the_configuration(nested, tmp_path):
    class Gate(keras.layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    keras.saving.register_keras_serializable("mine")(Gate)
    inner = keras.Sequential([keras.Input((3,)), Gate(), keras.layers.Dense(2)])
    model = keras.Sequential([keras.Input((3,)), inner]) if nested else inner
    model.save(tmp_path / "m.keras")
    keras.saving.get_custom_objects().pop("mine>Gate")
    with pytest.raises(DataError) as caught:
        crowdzoo.load_model(tmp_path / "m.keras")
    message = str(caught.value)
    assert "could not locate class 'Gate'. Import the module" in message
    assert "--base FILE.py:FUNCTION" in message
    assert len(message) < 300 + len(str(tmp_path))
    crowdzoo.load_model(tmp_path / "m.keras", custom_objects={"mine>Gate": Gate})


def test_the_encoder_of_a_saved_model_is_found_by_its_key():
    for key, place in _ENCODERS.items():
        assert resolve_name(f"crowdzoo.networks.{place}").key == key
