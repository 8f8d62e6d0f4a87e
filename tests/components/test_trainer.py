import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from kills import KilledError, kill_after

from crowdzoo.components import tfx_internals as tfx
from crowdzoo.components.trainer import run_fn
from crowdzoo.records.training import _names_to_begin_with, instances_of


@pytest.fixture(scope="module")
def train(shared_crowd, tmp_path_factory):
    """Runs the trainer in a new folder; returns the folder, with `serving` and `run` in it."""
    aggregated = shared_crowd.aggregated

    def run(name, method, seed=0, epochs=5, training=None, **more):
        tmp_path = tmp_path_factory.mktemp("train")
        folder = tmp_path / name
        run_fn(
            tfx.FnArgs(
                train_files=[f"{aggregated.uri}/Split-train/*"],
                serving_model_dir=str(folder / "serving"),
                model_run_dir=str(folder / "run"),
                custom_config={
                    "examples": aggregated.uri,
                    "name": "tiny",
                    "seed": seed,
                    "model": {"base": "feature-classifier", "hidden": [8], "dropout": 0.2},
                    "method": method,
                    "training": {"epochs": epochs, "batch_size": 8, "learning_rate": 0.01, **(training or {})},
                    **more,
                },
            )
        )
        return folder

    return run


INSTANCES = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
CROWD = {"name": "crowdsourced-layer", "connection": "MW", "scale": 1.0}


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory):
    """The folder of a model of the crowd, whose checkpoints were kept until it was written."""
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    folder = train("a", CROWD, checkpoint=str(checkpoint))
    assert not checkpoint.exists()
    return folder


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"instances": None}, None),  # written by an earlier release
        (
            {"instances": {"instances": "feature vectors", "features": ["b", "a"], "columns": {}}},
            "column 0 is 'a', was 'b'",
        ),
        ({"instances": {"instances": "tables", "features": None, "columns": {"a": []}}}, "instances are feature"),
        ({"classes": ["x", "y", "z"]}, "class 'z' is missing"),
    ],
)
def test_a_training_begins_with_the_weights_of_another_one_only_if_classes_and_columns_are_the_same(
    changed, said, tmp_path, capsys
):
    info = {"classes": ["x", "y"], "instances": "feature vectors", "features": ["a", "b"], "columns": {}}
    names = {
        "classes": ["x", "y"],
        "annotators": ["ann"],
        "instances": instances_of(info),
        "format_version": 1,
        **changed,
    }
    kept = {key: value for key, value in names.items() if value is not None}
    (tmp_path / "model.names.json").write_text(json.dumps(kept))
    found = _names_to_begin_with(tmp_path, info)
    assert (found is None) == (said is not None)
    assert (said or "") in capsys.readouterr().out


def served(folder, **more):
    model = tf.saved_model.load(str(folder / "serving"))
    signature = "annotators" if more else "serving_default"
    return model.signatures[signature](instances=tf.constant(INSTANCES), **more)["probabilities"].numpy()


def test_the_exported_model_says_what_the_kept_keras_model_says(trained):
    model = keras.saving.load_model(trained / "run" / "model.keras")
    np.testing.assert_allclose(served(trained), model.predict(INSTANCES, verbose=0), atol=1e-6)
    annotators = tf.constant(["a3"] * 5)
    assert served(trained, annotator=annotators).shape == (5, 3)
    history = json.loads((trained / "run" / "history.json").read_text())
    assert len(history["loss"]) == 5
    assert history["loss"][-1] < history["loss"][0]


def test_standardisation_comes_from_the_train_split(trained, shared_crowd):
    model = keras.saving.load_model(trained / "run" / "model.keras")
    table = shared_crowd.instances()
    rows = np.float32([row for row, split in zip(table["features"], table["split"], strict=True) if split == "train"])
    np.testing.assert_allclose(model.base.standardize.mean, rows.mean(axis=0, dtype="float64"), rtol=1e-5)
    np.testing.assert_allclose(model.base.standardize.variance, rows.var(axis=0, dtype="float64"), rtol=1e-5)


@pytest.fixture
def killed_after(monkeypatch):
    """Ends what is called right after so many epochs were written."""

    def call(train, epochs, *args, **kwargs):
        with monkeypatch.context() as patch:
            kill_after(epochs, patch)
            with pytest.raises(KilledError):
                train(*args, **kwargs)

    return call


@pytest.mark.slow
def test_a_training_with_other_settings_begins_anew_and_one_with_those_before_goes_on(train, killed_after, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    killed_after(train, 3, "a", CROWD, checkpoint=str(checkpoint))
    killed_after(train, 1, "a", CROWD, checkpoint=str(checkpoint), seed=1)
    assert len([*checkpoint.iterdir()]) == 2
    # two epochs are left of the first
    killed_after(train, 2, "a", CROWD, checkpoint=str(checkpoint))


@pytest.mark.slow
def test_a_checkpoint_in_a_store_is_fetched_and_removed_there(train, killed_after, tmp_path):
    store = tmp_path / "store"
    killed_after(train, 3, "a", CROWD, checkpoint=f"store:/{store}")
    assert sorted(path.name for path in store.rglob("*.*")) == ["checkpoint.json", "phase-0.npz"]
    losses = [json.loads((train("a", CROWD, **where) / "run" / "history.json").read_text())["loss"]
              for where in ({"checkpoint": f"store:/{store}"}, {})]  # fmt: skip
    assert losses[0] == losses[1]
    assert not [path for path in store.rglob("*") if path.is_file()]
