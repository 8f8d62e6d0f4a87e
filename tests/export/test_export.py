"""Exported models: what is in the folder, and that TensorFlow alone can use it."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from saved_models import keras, tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from crowdzoo.errors import ConfigError, DataError, ServingError
from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.files.served_model import REQUEST_FILES, WARMUP_FILE
from crowdzoo.files.version_folders import newest_version
from crowdzoo.layers import ConfusionMatrices, CrowdsourcedLayer
from crowdzoo.networks.feature_network import FeatureClassifier
from crowdzoo.training.crowd_model import CrowdModel

CLASSES = ["cat", "dog", "ünïcorn"]
ANNOTATORS = ["ann", "bob", "7", "chloé"]
D, K, R = 5, len(CLASSES), len(ANNOTATORS)


def make_model(crowd=True, base=None):
    keras.utils.set_random_seed(3)
    if base is None:
        base = FeatureClassifier(D, K, hidden=(8,), mean=np.arange(D), variance=np.full(D, 4.0))
    layer = None
    if crowd:
        layer = CrowdsourcedLayer(R)
        layer.build((None, K))
        layer.set_weights([np.random.default_rng(0).normal(size=(R, K, K)).astype("float32")])
    return CrowdModel(base, layer)


def instances(n=6, seed=1):
    return np.random.default_rng(seed).normal(size=(n, D)).astype("float32")


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "1"
    return export_model(
        model, path, classes=CLASSES, annotators=ANNOTATORS, name="pets", warmup_instances=instances(20),
        model_card={"accuracy": np.float32(0.5), "per_class": np.array([0.25, 0.5, 0.75])},
    )  # fmt: skip


@pytest.fixture(scope="module")
def loaded(exported):
    return tf.saved_model.load(str(exported))


def test_serving_default_gives_what_predict_gives(model, loaded):
    x = instances()
    outputs = loaded.signatures["serving_default"](instances=tf.constant(x))
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-6)
    np.testing.assert_array_equal(outputs["label"], expected.argmax(axis=1))
    assert [name.decode() for name in outputs["class"].numpy()] == [CLASSES[k] for k in expected.argmax(axis=1)]


def test_kerass_own_layer_loads_it_by_the_usual_endpoint_and_servers_see_no_new_signature(model, exported, loaded):
    layer = keras.layers.TFSMLayer(exported, call_endpoint="serve")
    np.testing.assert_allclose(layer(instances()), model.predict(instances(), verbose=0), atol=1e-6)
    assert set(loaded.signatures) == {"serving_default", "annotators"}


def test_annotators_gives_the_named_annotators_label_distribution(model, loaded):
    x = instances(5)
    names = ["chloé", "ann", "7", "7", "bob"]
    outputs = loaded.signatures["annotators"](instances=tf.constant(x), annotator=tf.constant(names))
    kernel = model.crowd.get_weights()[0]
    truth = model.predict(x, verbose=0)
    logits = np.stack([truth[i] @ kernel[ANNOTATORS.index(name)] for i, name in enumerate(names)])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-6)
    np.testing.assert_array_equal(outputs["label"], expected.argmax(axis=1))


def test_an_unknown_annotator_is_an_error_that_names_it(loaded):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not among the 4 annotators.*zoe"):
        loaded.signatures["annotators"](instances=tf.constant(instances(2)), annotator=tf.constant(["ann", "zoe"]))


def test_each_variable_is_written_once_and_the_optimizer_not_at_all(tmp_path):
    model = make_model()
    model.compile(run_eagerly=True)
    ids = np.zeros((6, 1), dtype="int64")
    model.train_on_batch({"instances": instances(), "annotators": ids}, np.ones((6, 1), dtype="int64"))
    path = export_model(model, tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS)
    written = tf.train.load_checkpoint(str(path / "variables" / "variables")).get_variable_to_shape_map()
    shapes = sorted(tuple(shape) for name, shape in written.items() if name != "_CHECKPOINTABLE_OBJECT_GRAPH")
    # mean and variance, hidden kernel and bias, output kernel and bias, the annotators' matrices
    assert shapes == sorted([(D,), (D,), (D, 8), (8,), (8, K), (K,), (R, K, K)])


def test_a_base_without_crowd_layer_has_no_annotators_signature(tmp_path):
    model = make_model(crowd=False)
    path = export_model(model, tmp_path / "1", classes=CLASSES)
    assert set(tf.saved_model.load(str(path)).signatures) == {"serving_default"}
    assert not (path / REQUEST_FILES["annotators"]).exists()
    np.testing.assert_allclose(
        load_and_predict(path, instances())["probabilities"], model.predict(instances(), verbose=0), atol=1e-6
    )


def test_warm_up_requests_are_parsed_and_answered(model, exported, loaded):
    records = tf.data.TFRecordDataset(str(exported / WARMUP_FILE)).as_numpy_iterator()
    requests = [PredictionLog.FromString(record).predict_log.request for record in records]
    found = []
    for request in requests:
        signature = request.model_spec.signature_name
        inputs = {name: tf.constant(tf.make_ndarray(proto)) for name, proto in request.inputs.items()}
        probabilities = loaded.signatures[signature](**inputs)["probabilities"].numpy()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
        found.append((request.model_spec.name, signature, len(probabilities)))
    assert found == [
        ("pets", "serving_default", 1),
        ("pets", "serving_default", 16),
        ("pets", "annotators", 1),
        ("pets", "annotators", 16),
    ]
    np.testing.assert_array_equal(tf.make_ndarray(requests[1].inputs["instances"]), instances(20)[:16])


def test_the_model_card_tells_classes_counts_signatures_and_what_was_added(exported):
    card = json.loads((exported / "assets.extra" / "model_card.json").read_text())
    assert card["name"] == "pets"
    assert card["classes"] == CLASSES
    assert card["num_annotators"] == R
    assert card["num_parameters"] == 2 * D + D * 8 + 8 + 8 * K + K
    assert card["signatures"]["annotators"]["inputs"] == {
        "instances": {"dtype": "float32", "shape": [None, D]}, "annotator": {"dtype": "string", "shape": [None]}
    }  # fmt: skip
    assert card["accuracy"] == 0.5
    assert card["per_class"] == [0.25, 0.5, 0.75]
    assert "bob" not in json.dumps(card)


def test_other_users_may_read_the_folder_and_nothing_is_left_beside_it(exported):
    assert os.listdir(exported.parent) == ["1"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o777 & ~umask


def test_a_full_folder_is_refused_and_an_empty_one_is_used(tmp_path):
    model = make_model(crowd=False)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        export_model(model, tmp_path / "full", classes=CLASSES)
    assert os.listdir(tmp_path / "full") == ["kept"]
    (tmp_path / "empty").mkdir()
    export_model(model, tmp_path / "empty", classes=CLASSES)
    assert newest_version(tmp_path / "empty") == tmp_path / "empty"


@pytest.mark.slow
def test_names_are_those_that_fit_saw(tmp_path):
    frame = {"task": [0, 0, 1, 2], "annotator": ["ann", "bob", "bob", "cem"], "label": ["b", "a", "b", "c"]}
    model = CrowdModel(
        keras.Sequential([keras.Input((D,)), keras.layers.Dense(3, activation="softmax")]), ConfusionMatrices(3)
    )
    model.fit(instances()[:3], pd.DataFrame(frame), tasks=[0, 1, 2], verbose=0)
    loaded = tf.saved_model.load(str(model.export(tmp_path / "1")))
    said = loaded.signatures["annotators"](instances=tf.zeros([1, D]), annotator=tf.constant(["cem"]))
    assert said["class"].numpy()[0] in {b"a", b"b", b"c"}


class Subclassed(keras.Model):
    """A base that is not functional: its input is known only from what it was called with."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(K, activation="softmax")

    def call(self, inputs):
        return self.dense(inputs)


@pytest.mark.slow
def test_a_subclassed_base_takes_the_shape_it_was_built_with(tmp_path):
    base = Subclassed()
    base(instances())
    path = export_model(make_model(base=base), tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS)
    expected = base.predict(instances(), verbose=0)
    np.testing.assert_allclose(load_and_predict(path, instances())["probabilities"], expected, atol=1e-6)


SEQUENCE_BASE = lambda: keras.Sequential([keras.Input((4, D)), keras.layers.Dense(K)])  # noqa: E731
BROKEN = {
    "too few classes": ({"classes": CLASSES[:2]}, "2 classes are named, the model has 3 outputs"),
    "no classes": ({"classes": []}, r"the classes have no names: give classes=\[...\]"),
    "a class twice": ({"classes": ["a", "b", "a"]}, "classes has 'a' twice"),
    "too few annotators": ({"annotators": ["ann"]}, "1 annotators are named, the crowd layer has 4"),
    "an annotator twice": ({"annotators": ["ann", "bob", 7, "7"]}, "annotators has '7' twice"),
    "wrong warm-up shape": ({"warmup_instances": np.zeros((2, 9))}, r"shape \[2, 9\], the base takes \[None, 5\]"),
    "no warm-up instance": ({"warmup_instances": np.zeros((0, D))}, r"shape \[0, 5\]"),
    "NaN in warm-up": ({"warmup_instances": np.full((1, D), np.nan)}, "not finite"),
    "card that is not JSON": ({"model_card": {"model": object()}}, "model_card cannot be written"),
    "card with NaN": ({"model_card": {"accuracy": float("nan")}}, "model_card cannot be written"),
    "card that contradicts": ({"model_card": {"classes": ["x"]}}, r"model_card\['classes'\]"),
    "a base for sequences": ({"base": SEQUENCE_BASE}, r"the model's output is \[None, 4, 3\]"),
    "an unbuilt base": ({"base": Subclassed}, "not built yet"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_exported_is_said_and_leaves_nothing(case, tmp_path):
    changes, message = BROKEN[case]
    arguments = {"classes": CLASSES, "annotators": ANNOTATORS, **changes}
    make_base = arguments.pop("base", None)
    model = make_model()
    if make_base is not None:
        model = CrowdModel(make_base())
    with pytest.raises(ConfigError, match=message):
        export_model(model, tmp_path / "1", **arguments)
    assert os.listdir(tmp_path) == []


def test_a_model_with_a_weight_that_is_nan_is_refused_by_the_weights_name(tmp_path):
    model = make_model()
    bias = model.base.weights[-1]
    bias.assign(np.full(bias.shape, np.nan))
    with pytest.raises(DataError, match=rf"3 of the 3 numbers of weight '{bias.path}' are NaN or infinite"):
        export_model(model, tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("place", "x", "message"),
    [
        ("nowhere", np.zeros((1, D)), "folder does not exist"),
        ("", np.zeros((1, 9)), r"shape \[1, 9\] \(float64\), the model takes \[None, 5\]"),
        ("", np.array([["a"] * D]), "the model takes"),
        ("1/variables", np.zeros((1, D)), "holds no model"),
    ],
)
def test_load_and_predict_says_what_is_wrong(exported, place, x, message):
    with pytest.raises(ServingError, match=message):
        load_and_predict(Path(exported.parent, place), x)


# === Several inputs ===


def two_inputs(structure, names=("left", "right")):
    left, right = keras.Input((2,), name=names[0]), keras.Input((3,), dtype="int32", name=names[1])
    wide = keras.layers.Rescaling(0.5)(right)
    output = keras.layers.Dense(K, "softmax")(keras.layers.Concatenate()([left, wide]))
    return keras.Model([left, right] if structure == "list" else {names[0]: left, names[1]: right}, output)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["list", "dict"])
def test_several_inputs_are_served_by_their_keras_names(structure, tmp_path):
    model = make_model(base=two_inputs(structure))
    named = {"left": instances(3)[:, :2], "right": np.arange(9).reshape(3, 3).astype("int32")}
    x = list(named.values()) if structure == "list" else named
    path = model.export(tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS, warmup_instances=x)
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(load_and_predict(path, named, batch_size=2)["probabilities"], expected, atol=1e-6)
    layer = keras.layers.TFSMLayer(path, call_endpoint="serve")
    np.testing.assert_allclose(layer(keras.tree.map_structure(tf.constant, named)), expected, atol=1e-6)
    said = tf.saved_model.load(str(path)).signatures["annotators"](
        **{name: tf.constant(value) for name, value in named.items()}, annotator=tf.constant(["ann", "bob", "7"])
    )
    logits = np.einsum("nk,nkl->nl", expected, model.crowd.get_weights()[0][:3])
    np.testing.assert_allclose(said["probabilities"], tf.nn.softmax(logits), atol=1e-6)
    request = json.loads((path / REQUEST_FILES["serving_default"]).read_text())
    np.testing.assert_array_equal(np.float32(request["instances"][0]["left"]), named["left"][0])
    assert request["instances"][0]["right"] == [0, 1, 2]
    card = json.loads((path / "assets.extra" / "model_card.json").read_text())
    assert card["signatures"]["serving_default"]["inputs"] == {
        "left": {"dtype": "float32", "shape": [None, 2]}, "right": {"dtype": "int32", "shape": [None, 3]}
    }  # fmt: skip
    for wrong, message in (
        (named["left"], "give the inputs by name, as the model takes them: left, right"),
        ({"left": named["left"]}, "the model takes left, right, got left"),
        ({**named, "right": named["right"][:2]}, "different numbers of rows: {'left': 3, 'right': 2}"),
        ({**named, "right": named["right"][:, :2]}, r"right has shape \[3, 2\]"),
    ):
        with pytest.raises(ServingError, match=message):
            load_and_predict(path, wrong)


@pytest.mark.slow
def test_a_feature_space_is_served_by_its_columns(tmp_path):
    space = keras.utils.FeatureSpace({"a": "float_rescaled", "b": "string_categorical"}, output_mode="concat")
    data = {"a": np.arange(4.0), "b": np.array(["x", "y", "x", "x"])}
    space.adapt(tf.data.Dataset.from_tensor_slices(data))
    base = keras.Model(dict(space.get_inputs()), keras.layers.Dense(K, "softmax")(space.get_encoded_features()))
    model = make_model(base=base)
    path = model.export(tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS)
    x = {"a": np.array([[3.0], [1.0]], "float32"), "b": np.array([["y"], ["never seen"]], object)}
    expected = base(keras.tree.map_structure(tf.constant, x)).numpy()
    np.testing.assert_allclose(load_and_predict(path, x)["probabilities"], expected, atol=1e-6)
    assert json.loads((path / REQUEST_FILES["serving_default"]).read_text()) == {
        "instances": [{"a": [0.0], "b": ["warm up"]}]
    }


@pytest.mark.parametrize(
    ("base", "warmup", "message"),
    [
        (lambda: two_inputs("list", ("left", "annotator")), None, r"'annotator' cannot be served .*keras\.Input\("),
        (lambda: two_inputs("list", ("left", "height (cm)")), None, r"'height \(cm\)' cannot be served"),
        (lambda: two_inputs("list"), instances(), "must name left, right"),
        (lambda: two_inputs("dict"), {"left": instances()}, "must name left, right"),
        (lambda: two_inputs("list"), [instances(), instances()], r"warmup_instances\['left'\] has shape \[6, 5\]"),
        (
            lambda: two_inputs("list"), [instances()[:, :2], instances(3)[:, :3].astype("int32")],
            "as many rows for each input",
        ),
    ],
)  # fmt: skip
def test_several_inputs_that_cannot_be_served_say_what_to_write(base, warmup, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        make_model(base=base()).export(tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS, warmup_instances=warmup)


def test_versions_are_those_of_the_modules_not_of_distributions(model, tmp_path, monkeypatch):
    """tensorflow-cpu brings the module tensorflow and no distribution of that name."""
    import importlib.metadata

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    path = model.export(tmp_path / "1", classes=CLASSES, annotators=ANNOTATORS)
    card = json.loads((path / "assets.extra" / "model_card.json").read_text())
    assert card["software"]["tensorflow"] == tf.__version__
