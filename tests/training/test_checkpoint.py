"""A training that was interrupted goes on from its checkpoint, and ends where one ends that was not."""

import functools
import json
import os

import keras
import numpy as np
import pytest
from kills import KilledError, kill_after
from small_trainings import ARGUMENTS, D, K, R, learned_from

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import CrowdsourcedLayer, DeepEM
from crowdzoo.models import CrowdModel, TaggerSettings, TrainingSettings
from crowdzoo.training.checkpoint import remove_checkpoint
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import methods_of
from crowdzoo.training.tagger_training import train_tagger

N = 60
X, TRUTH, LABELS, RATINGS = learned_from(N)


def noting(epochs):
    """Notes the epochs of the phases that have callbacks, also where a phase copies them."""
    return keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(epoch))


def settings(method, kind="classification", **given):
    return TrainingSettings(
        kind=kind, method=method, hidden=(6,),
        **{"epochs": 5, "batch_size": 30, "learning_rate": 0.02, "dropout": 0.3, "seed": 3,
           "arguments": ARGUMENTS.get(method, {}), **given},
    )  # fmt: skip


def given_to(method, kind):
    if method != "aggregated":
        return {"annotations": LABELS if kind == "classification" else RATINGS}
    if kind == "classification":
        return {"label_distribution": np.eye(K)[TRUTH]}
    return {"ratings": X[:, 0].astype("float64")}


def run(method, kind="classification", **how):
    return train(settings(method, kind), X, **given_to(method, kind), **how)[0]


@functools.cache
def uninterrupted(method, kind="classification"):
    return run(method, kind)


def assert_equal(one, two):
    for left, right in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert one.history.epoch == two.history.epoch
    assert one.history.history.keys() == two.history.history.keys()
    for name, values in one.history.history.items():
        np.testing.assert_array_equal(values, two.history.history[name])


METHODS = [(method, kind) for kind in ("classification", "regression") for method in methods_of(kind)]


@pytest.mark.parametrize("after", [2, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("method", "kind"),
    [pytest.param(*each, marks=() if each == ("crowdsourced-layer", "classification") else pytest.mark.slow)
     for each in METHODS],
)  # fmt: skip
def test_an_interrupted_training_ends_as_one_that_was_not(method, kind, after, tmp_path, monkeypatch, eager):
    whole, folder, seen, more = uninterrupted(method, kind), tmp_path / "checkpoint", [], []
    kill_after(after, monkeypatch)
    try:
        run(method, kind, checkpoint=folder, callbacks=[noting(seen)])
        pytest.skip("the method has fewer epochs in all")
    except KilledError:
        monkeypatch.undo()
    assert_equal(whole, run(method, kind, checkpoint=folder, callbacks=[noting(more)]))
    assert [*seen, *more] == whole.history.epoch  # none twice


def annotated(epochs=1, seed=5, checkpoint=None, labels=LABELS, layer=CrowdsourcedLayer, x=X, dropout=0.2, **how):
    """As a user writes it in Keras."""
    keras.utils.set_random_seed(seed)
    base = keras.Sequential(
        [keras.layers.Dense(8, "relu"), keras.layers.Dropout(dropout), keras.layers.Dense(K, "softmax")]
    )
    model = CrowdModel(base, layer(R))
    model.compile(how.pop("optimizer", keras.optimizers.Adam)(how.pop("learning_rate", 0.02)))
    model.fit(x, labels, epochs=epochs, batch_size=16, verbose=0, checkpoint=checkpoint, **how)
    return model


@pytest.mark.slow
def test_another_training_is_refused_and_told_what_differs(tmp_path, eager):
    annotated(checkpoint=tmp_path)
    rows = np.arange(len(LABELS))
    for other, message in [
        ({"epochs": 5}, "epochs is 1 there and 5 here"),
        ({"labels": LABELS.select_rows(rows > 0)}, "its data are different"),
        ({"x": X + 1}, "its data are different"),
        ({"layer": DeepEM}, "its layers, loss or metrics are different"),
        ({"dropout": 0.1}, "its layers, loss or metrics are different"),
        ({"learning_rate": 0.03}, "learning_rate of the optimizer is 0.02 there and 0.03 here"),
        ({"optimizer": keras.optimizers.SGD}, "class of the optimizer is Adam there and SGD here"),
        ({"callbacks": [keras.callbacks.EarlyStopping("loss")]}, "callbacks is none there and EarlyStopping here"),
    ]:
        with pytest.raises(ConfigError, match=message) as error:
            annotated(checkpoint=tmp_path, **other)
        assert "remove this one" in str(error.value)
    place = tmp_path / "checkpoint.json"
    stored = json.loads(place.read_text())
    for name, message in {"crowdzoo": "crowdzoo is 0.0.1 there", "Keras": "Keras is 0.0.1 there"}.items():
        place.write_text(json.dumps({**stored, name: "0.0.1"}))
        with pytest.raises(ConfigError, match=message):
            annotated(checkpoint=tmp_path)


@pytest.mark.slow
def test_callbacks_that_look_on_come_and_go_and_others_are_refused(tmp_path, monkeypatch, eager):
    early, folder = functools.partial(keras.callbacks.EarlyStopping, "loss", patience=9), tmp_path / "checkpoint"
    plateau = functools.partial(keras.callbacks.ReduceLROnPlateau, "loss", patience=1, min_delta=10)
    seen: list[int] = []
    four = functools.partial(annotated, epochs=4)
    whole = four(callbacks=[early(), plateau()])
    kill_after(2, monkeypatch)
    with pytest.raises(KilledError):
        four(checkpoint=folder, callbacks=[noting(seen), early(), plateau()])
    monkeypatch.undo()
    for others, message in [
        ([], "is EarlyStopping, ReduceLROnPlateau there and none here"),
        ([early()], "is EarlyStopping, ReduceLROnPlateau there and EarlyStopping here"),
        ([early(), early()], "is EarlyStopping, ReduceLROnPlateau there and EarlyStopping, EarlyStopping here"),
        (
            [early(), plateau(), early()],
            "is EarlyStopping, ReduceLROnPlateau there and EarlyStopping, EarlyStopping, ReduceLROnPlateau here",
        ),
    ]:
        with pytest.raises(ConfigError, match=f"set of callbacks {message}"):
            four(checkpoint=folder, callbacks=others)
    log = tmp_path / "log.csv"
    # another order, one more that looks on, and one less: each has its own state back
    assert_equal(
        whole, four(checkpoint=folder, callbacks=[keras.callbacks.CSVLogger(log, append=True), plateau(), early()])
    )
    assert [line.split(",")[0] for line in log.read_text().split()] == ["epoch", "2", "3"]


def test_what_is_no_checkpoint_or_a_damaged_one_is_refused(tmp_path, eager):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="has files that are not a checkpoint"):
        annotated(checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    folder = tmp_path / "new"
    annotated(checkpoint=folder)
    place = folder / "phase-0.npz"
    place.write_bytes(place.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"phase-0\.npz: is damaged .*Remove the folder"):
        annotated(checkpoint=folder)
    stored = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps({**stored, "format_version": 99}))
    with pytest.raises(DataError, match="written by a later crowdzoo"):
        annotated(checkpoint=folder)


def test_batches_of_ones_own_are_refused_with_what_keras_has_for_them(tmp_path, eager):
    keras.utils.set_random_seed(0)
    model = CrowdModel(keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, "softmax")]), CrowdsourcedLayer(R))
    batches = [({"instances": X[:8], "annotators": np.zeros((8, 1), "int32")}, np.zeros((8, 1), "int32"))]
    with pytest.raises(ConfigError, match="BackupAndRestore"):
        model.fit(iter(batches), checkpoint=tmp_path, verbose=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")  # three epochs are few
@pytest.mark.parametrize("method", methods_of("sequence"))
def test_a_tagger_goes_on_too(method, tmp_path, monkeypatch, eager):
    rng = np.random.default_rng(0)
    tokens = [[f"w{word}" for word in rng.integers(9, size=5)] for _ in range(24)]
    rows = [(i, r, p, int(tokens[i][p] < "w4")) for i in range(24) for r in range(3) for p in range(5)]
    task, annotator, position, label = np.array(rows).T
    said = Annotations("sequence", task, annotator, label, tasks=np.arange(24), annotators=np.arange(3),
                       classes=np.array(["O", "B-x"]), positions=position)  # fmt: skip
    how = TaggerSettings(method=method, epochs=3, batch_size=8, embedding=4, filters=4, units=3, seed=1)
    soft = [np.eye(2)[[int(word < "w4") for word in words]] for words in tokens] if method == "aggregated" else None

    def trained(checkpoint=None):
        return train_tagger(how, tokens, said, tasks=said.tasks, tag_distribution=soft, checkpoint=checkpoint)[0]

    whole = trained()
    kill_after(2, monkeypatch)
    with pytest.raises(KilledError):
        trained(tmp_path)
    monkeypatch.undo()
    assert_equal(whole, trained(tmp_path))


@pytest.mark.slow
def test_a_folder_at_which_another_training_is_at_work_is_refused(tmp_path, eager):
    said = []

    def meanwhile(epoch, logs):
        if not said:
            with pytest.raises(ConfigError) as error:
                annotated(checkpoint=tmp_path)
            said.append(str(error.value))

    annotated(checkpoint=tmp_path, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=meanwhile)])
    (message,) = said
    assert message.startswith(f"{tmp_path}: another training (process {os.getpid()}) is using this checkpoint")
    annotated(checkpoint=tmp_path)  # it has ended
    remove_checkpoint(tmp_path)
    assert not tmp_path.exists()
