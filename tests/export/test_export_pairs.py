"""Exported reward models: scores of single instances, and answers to pairs of them."""

import json

import numpy as np
import pytest
from saved_models import keras, tf

from crowdzoo.aggregation.engine.comparisons import answer_probabilities
from crowdzoo.export.predict import load_and_predict
from crowdzoo.export.saved_model import export_model
from crowdzoo.files.served_model import MODEL_CARD_FILE, REQUEST_FILES
from crowdzoo.layers import PairAnnotators
from crowdzoo.models import CrowdModel, FeatureRegressor, RewardModel

CLASSES, ANNOTATORS = ["left", "right", "equal"], ["ann", "bob"]
X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
KERNEL = np.array([[0.2, -0.3, 0.1], [-1.0, 0.5, 0.4]], "float32")  # slope minus 1, bias, taste for "equal"


def reward_model(scorer):
    model = CrowdModel(RewardModel(scorer), PairAnnotators(2, 10))
    model.crowd.set_weights([KERNEL])
    return model


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    keras.utils.set_random_seed(0)
    model = reward_model(FeatureRegressor(3, hidden=(4,)))
    path = tmp_path_factory.mktemp("vectors") / "1"
    return model, export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, warmup_instances=X[:3])


@pytest.mark.slow  # test_every_door.py exports such a model in `make test`
def test_scores_pairs_and_what_an_annotator_would_say(vectors):
    model, path = vectors
    scores = model.base.scorer.predict(X, verbose=0)[:, 0]
    assert {*load_and_predict(path, X)} == {"score"}
    np.testing.assert_allclose(load_and_predict(path, X)["score"], scores, rtol=1e-5)
    lead = (scores[:3] - scores[3:]).astype(float)
    sides = {"left": X[:3], "right": X[3:]}
    found = load_and_predict(path, sides, signature="pairs")
    wanted = answer_probabilities(lead, 0.0, "davidson")
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=1e-4)
    assert found["class"].tolist() == [CLASSES[code] for code in wanted.argmax(axis=1)]
    named = {**sides, "annotator": np.array(["bob"] * 3, object)}
    said = load_and_predict(path, named, signature="annotators")["probabilities"]
    np.testing.assert_allclose(said, answer_probabilities(0.0 * lead + 0.5, 0.4, "davidson"), rtol=1e-4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="zoe"):
        load_and_predict(path, {**named, "annotator": np.array(["zoe"] * 3, object)}, signature="annotators")


def test_each_signature_has_a_request_and_stands_in_the_card(vectors):
    _, path = vectors
    requests = {name: json.loads((path / REQUEST_FILES[name]).read_text()) for name in ("serving_default", "pairs")}
    first, second = X[:2].astype(str).astype(float).tolist()
    assert requests["serving_default"] == {"instances": [first]}
    assert requests["pairs"] == {"signature_name": "pairs", "instances": [{"left": first, "right": second}]}
    asked = json.loads((path / REQUEST_FILES["annotators"]).read_text())["instances"]
    assert asked == [{"left": first, "right": second, "annotator": "ann"}]
    card = json.loads((path / MODEL_CARD_FILE).read_text())
    assert {*card["signatures"]} == {"serving_default", "pairs", "annotators"}
    assert card["classes"] == CLASSES


def test_kerass_own_layer_answers_pairs_as_predict_does(vectors):
    model, path = vectors
    sides = {"left": tf.constant(X[:3]), "right": tf.constant(X[3:])}
    found = keras.layers.TFSMLayer(path, call_endpoint="serve")(sides)
    np.testing.assert_allclose(found, model.predict({"left": X[:3], "right": X[3:]}, verbose=0), atol=1e-6)
