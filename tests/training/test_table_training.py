"""Models of the columns of a table, from columns to a SavedModel."""

import json

import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.export import load_and_predict
from crowdzoo.files.served_model import REQUEST_FILES
from crowdzoo.models import CrowdModel, TableSettings
from crowdzoo.networks.encoders import encoder_config, encoder_of
from crowdzoo.saving import load_model
from crowdzoo.training.instance_training import train

N = 240
rng = np.random.default_rng(0)
AGE = np.where(rng.random(N) < 0.1, np.nan, rng.normal(40, 10, N))
CITY = rng.choice(["Lisbon", "Porto", "Faro", ""], N).astype(object)
REVIEW = rng.choice(["a good film", "a bad film", "so dull", ""], N).astype(object)
TABLE = {"age (years)": AGE, "city": CITY}
SHAPE = rng.normal(size=(N, 3)).astype("float32")
# who is over 40 or lives in Lisbon; a missing age is below
TRUTH = ((np.nan_to_num(AGE) > 40) | (CITY == "Lisbon")).astype(int)
IN_REVIEW = (REVIEW == "a good film").astype(int)


def annotated(truth, kind="classification"):
    """Three annotators, of whom each is wrong for a fifth of the tasks (or rates with noise)."""
    tasks, annotators = np.repeat(np.arange(N), 3), np.tile(["ann", "bob", "eve"], N)
    if kind == "regression":
        return Annotations.from_arrays(tasks, annotators, truth[tasks] + rng.normal(0, 0.1, 3 * N), kind=kind)
    return Annotations.from_arrays(tasks, annotators, np.where(rng.random(3 * N) < 0.2, 1 - truth[tasks], truth[tasks]))


def trained(table, truth, epochs=20, **given):
    settings = TableSettings(epochs=epochs, batch_size=32, learning_rate=0.01, hidden=(16,), dropout=0.0, **given)
    return train(settings, table, annotations=annotated(truth, settings.kind), tasks=np.arange(N))


def exported(model, encoder, path, **names):
    """The answers of the SavedModel, for columns under the names that it takes."""
    model.export(path, annotators=["ann", "bob", "eve"], encoder=encoder, **names)
    request = json.loads((path / REQUEST_FILES["serving_default"]).read_text())
    columns = {
        name.replace(" ", "_").replace("(", "_").replace(")", "_"): each for name, each in TABLE_AND_TEXT.items()
    }
    return load_and_predict(path, {name: columns[name] for name in request["instances"][0]}), request


TABLE_AND_TEXT = {**TABLE, "review": REVIEW, "shape": SHAPE}


@pytest.mark.slow
def test_a_table_is_learned_exported_and_loaded_again(tmp_path):
    model, encoder = trained(TABLE, TRUTH)
    expected = model.predict(encoder.to_numpy(TABLE), verbose=0)
    assert (expected.argmax(axis=1) == TRUTH).mean() > 0.9
    answers, request = exported(model, encoder, tmp_path / "1", classes=["no", "yes"])
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-6)
    assert request["instances"][0]["age__years_"] == pytest.approx(np.nanmean(AGE))
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert isinstance(loaded, CrowdModel)
    names = json.loads(json.dumps(encoder_config(encoder)))
    again = encoder_of(names, tmp_path / "names.json").to_numpy(TABLE)
    np.testing.assert_allclose(loaded.predict(again, verbose=0), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["crowdsourced-layer", "lia", "conal", "doctor-net", "waum"])
def test_a_column_of_text_beside_others_is_learned_and_served(method, tmp_path):
    table = {**TABLE, "review": REVIEW, "shape": SHAPE}
    how = {"inputs": {"review": "text"}, "texts": {"form": "bag-of-words"}, "method": method}
    model, encoder = trained(table, IN_REVIEW, **how)
    expected = model.predict(encoder.to_numpy(table), verbose=0)
    assert (expected.argmax(axis=1) == IN_REVIEW).mean() > 0.9
    answers, _ = exported(model, encoder, tmp_path / "1", classes=["no", "yes"])
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    again = encoder_of(json.loads(json.dumps(encoder_config(encoder))), tmp_path / "names.json").to_numpy(table)
    np.testing.assert_allclose(load_model(tmp_path / "model.keras").predict(again, verbose=0), expected, atol=1e-6)


@pytest.mark.slow
def test_an_image_beside_a_text_and_a_number_is_learned_and_served(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rows = 60
    dark = rng.random(rows) < 0.5
    for row in range(rows):
        image.new("RGB", (16, 12), (30, 40, 50) if dark[row] else (220, 210, 200)).save(tmp_path / f"{row}.png")
    table = {"photo": [tmp_path / f"{row}.png" for row in range(rows)], "review": REVIEW[:rows], "size": AGE[:rows]}
    tasks = np.repeat(np.arange(rows), 2)
    annotations = Annotations.from_arrays(tasks, np.tile(["ann", "bob"], rows), dark[tasks].astype(int))
    settings = TableSettings(
        inputs={"photo": "image", "review": "text"}, texts={"form": "bag-of-words"},
        images={"height": 8, "width": 8, "stages": (4,), "augment": False},
        hidden=(8,), dropout=0.0, epochs=20, batch_size=16, learning_rate=0.01,
    )  # fmt: skip
    model, encoder = train(settings, table, annotations=annotations, tasks=np.arange(rows))
    path = model.export(tmp_path / "1", classes=["light", "dark"], annotators=["ann", "bob"], encoder=encoder)
    table["photo"] = np.array(table["photo"], object)
    found = load_and_predict(path, table)["class"]
    assert np.mean((found == "dark") == dark) > 0.9
    again = encoder_of(json.loads(json.dumps(encoder_config(encoder))), tmp_path / "names.json")
    np.testing.assert_array_equal(again.to_numpy(table)["column_photo"], encoder.to_numpy(table)["column_photo"])
