"""Exported regressors: the value that `predict` gives, and what an annotator would say, both in the labels' unit."""

import json

import numpy as np
import pytest
from saved_models import keras, tf
from slow_cases import quick

from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.files.served_model import MODEL_CARD_FILE, REQUEST_FILES, load_saved_model
from crowdzoo.layers import CrowdsourcedLayer, RatingEM
from crowdzoo.networks.feature_network import FeatureRegressor
from crowdzoo.training.crowd_model import CrowdModel

CENTER, UNIT = 60.0, 15.0
ANNOTATORS = ["ann", "bob", "chloé"]
X = np.random.default_rng(1).normal(size=(6, 4)).astype("float32")
ASKED = np.array([2, 0, 1, 1, 0, 2])
LAYERS = {
    "B": lambda: CrowdsourcedLayer(3, "B", "regression", center=CENTER, unit=UNIT),
    "S": lambda: CrowdsourcedLayer(3, "S", "regression", center=CENTER, unit=UNIT),
    "S+B": lambda: CrowdsourcedLayer(3, "S+B", "regression", center=CENTER, unit=UNIT),
    "anchored B": lambda: CrowdsourcedLayer(3, "B", "regression", center=CENTER, unit=UNIT, anchor=True),
    "rating-em": lambda: RatingEM(3, center=CENTER, unit=UNIT),
}


def weights_of(layer):
    return {weight.name: weight.numpy().astype("float64") for weight in layer.weights}


def standardised(model, x):
    """What the base's network says before the labels' unit, by hand: two dense layers and a ReLU."""
    layers = {layer.name: layer for layer in model.base.layers}
    dense = [layer for layer in layers.values() if isinstance(layer, keras.layers.Dense)]
    hidden = np.maximum(x @ dense[0].kernel.numpy() + dense[0].bias.numpy(), 0).astype("float64")
    return (hidden @ dense[1].kernel.numpy() + dense[1].bias.numpy())[:, 0]


def expected(name, model, x):
    """The truth [N] and each annotator's rating [N, R], from the definitions of the layers."""
    z = standardised(model, x)
    own = {} if model.crowd is None else weights_of(model.crowd)
    bias = own.get("bias", np.zeros(3))
    scale = own.get("kernel", np.ones(3))
    z = z + own.get("shift", 0.0)
    return CENTER + UNIT * z, CENTER + UNIT * (z[:, None] * scale + bias)


def regressor(name):
    """A model with random weights, far from the start."""
    keras.utils.set_random_seed(0)
    base = FeatureRegressor(4, hidden=(5,), center=CENTER, unit=UNIT)
    crowd = LAYERS[name]() if name in LAYERS else None
    model = CrowdModel(base, crowd, features="standardize")
    rng = np.random.default_rng(0)
    for layer in [base.get_layer(index=at) for at in range(len(base.layers))] + ([crowd] if crowd else []):
        if layer.name != "standardize":
            layer.set_weights([rng.normal(size=weight.shape) for weight in layer.get_weights()])
    return model


@pytest.mark.parametrize("name", quick("rating-em", slow=["B", "S", "anchored B", "S+B", "aggregated"]))
def test_value_and_annotators_are_in_the_labels_unit(name, tmp_path):
    model = regressor(name)
    path = export_model(
        model, tmp_path / "1", annotators=ANNOTATORS, warmup_instances=X, model_card={"method": name}
    )  # fmt: skip
    truth, said = expected(name, model, X)
    value = load_and_predict(path, X)["value"]
    assert value.dtype == np.float32
    assert value.shape == (6,)
    np.testing.assert_allclose(value, truth, rtol=1e-5)
    np.testing.assert_allclose(value, model.predict(X, verbose=0)[:, 0], rtol=1e-5)
    served = keras.layers.TFSMLayer(path, call_endpoint="serve")(tf.constant(X))
    np.testing.assert_allclose(served, model.predict(X, verbose=0), rtol=1e-5)
    loaded = load_saved_model(path)
    card = json.loads((path / MODEL_CARD_FILE).read_text())
    assert card["classes"] is None
    assert card["signatures"]["serving_default"]["outputs"] == {"value": {"dtype": "float32", "shape": [None]}}
    if name == "aggregated":
        assert list(loaded.signatures) == ["serving_default"]
        return
    names = tf.constant([ANNOTATORS[code] for code in ASKED])
    answers = loaded.signatures["annotators"](instances=tf.constant(X), annotator=names)["value"].numpy()
    np.testing.assert_allclose(answers, said[np.arange(6), ASKED], rtol=1e-5)
    assert np.abs(answers - value).max() > 1, "annotators say something of their own"
    assert json.loads((path / REQUEST_FILES["annotators"]).read_text())["instances"][0]["annotator"] == "ann"
    with pytest.raises(tf.errors.InvalidArgumentError, match="dora"):
        loaded.signatures["annotators"](instances=tf.constant(X[:1]), annotator=tf.constant(["dora"]))
