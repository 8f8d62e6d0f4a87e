import keras
import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.models import Sizes, TrainingSettings, build_model, train

N, D, K, R = 200, 5, 3, 6
RNG = np.random.default_rng(0)
X = RNG.normal(loc=20, scale=[1, 2, 3, 4, 5], size=(N, D)).astype("float32")
TRUTH = (X - X.mean(axis=0))[:, :K].argmax(axis=1)
DENSE = np.where(RNG.random((N, R)) < 0.5, -1, np.where(RNG.random((N, R)) < 0.8, TRUTH[:, None], 0))
DENSE[:, 0] = TRUTH  # every task has a label, so every batch has the same shape: JAX compiles once
ANNOTATIONS = Annotations.from_dense(DENSE)
QUICK = TrainingSettings(hidden=(16,), dropout=0.2, epochs=15, batch_size=50, learning_rate=0.01)


def replaced(**changes):
    return TrainingSettings(**{**QUICK.__dict__, **changes})


@pytest.mark.slow  # test_methods.py learns it in `make test`
def test_training_on_annotations_learns_the_truth():
    model, _ = train(QUICK, X, annotations=ANNOTATIONS)
    assert (model.predict(X, verbose=0).argmax(axis=1) == TRUTH).mean() > 0.9
    assert model.annotator_confusions().shape == (R, K, K)


def test_training_on_aggregated_labels_makes_a_base_alone():
    model, _ = train(replaced(method="aggregated"), X, label_distribution=np.eye(K)[TRUTH])
    assert model.crowd is None
    assert (model.predict(X, verbose=0).argmax(axis=1) == TRUTH).mean() > 0.9


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("method", "labels"),
    [
        ("crowdsourced-layer", {"annotations": ANNOTATIONS}),
        ("aggregated", {"label_distribution": np.eye(K)[TRUTH]}),
    ],
)
def test_two_trainings_with_one_seed_agree(method, labels):
    model, same = (train(replaced(method=method, epochs=2), X, **labels)[0] for _ in range(2))
    for one, other in zip(model.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_reach_the_model():
    settings = TrainingSettings(
        "crowdsourced-layer", {"connection": "VW", "scale": 3}, hidden=[7, 9], dropout=0.3, learning_rate=0.02
    )
    model = build_model(settings, Sizes(R, K, num_features=D))
    assert (model.base.hidden, model.base.dropout) == ((7, 9), 0.3)
    assert (model.crowd.connection, model.crowd.scale, model.crowd.num_annotators) == ("VW", 3, R)
    assert float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)) == pytest.approx(0.02)
    assert hash(settings) == hash(TrainingSettings(**settings.__dict__))


@pytest.mark.usefixtures("eager")
def test_epochs_batches_and_callbacks_are_those_asked_for():
    class Count(keras.callbacks.Callback):
        batches = epochs = 0

        def on_train_batch_end(self, batch, logs=None):
            self.batches += 1

        def on_epoch_end(self, epoch, logs=None):
            self.epochs += 1

    count = Count()
    train(replaced(epochs=3, batch_size=70), X, annotations=ANNOTATIONS, callbacks=[count])
    assert (count.epochs, count.batches) == (3, 3 * 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "crowdlayer"}, "unknown method 'crowdlayer': choose one of crowdsourced-layer, .*"),
        ({"method": "deep_em"}, "Did you mean 'deep-em'?"),
        (
            {"method": "crowdsourced-layer", "arguments": {"conection": "MW"}},
            "unknown setting of crowdsourced-layer 'conection': .* Did you mean 'connection'?",
        ),
        (
            {"method": "crowdsourced-layer", "arguments": {"connection": "S+B"}},
            r"unknown connection 'S\+B': choose one of MW, VW, VB, VW\+B, S",
        ),
        ({"method": "deep-em", "arguments": {"prior": -1}}, "prior must be .*, got -1"),
        ({"method": "aggregated", "arguments": {"prior": 1}}, "aggregated has no settings, got 'prior'"),
        ({"epochs": 0}, "epochs must be .*, got 0"),
        ({"batch_size": -1}, "batch_size must be .*, got -1"),
        ({"learning_rate": 0.0}, "learning_rate must be .*, got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be .*, got nan"),
        ({"dropout": 1}, "dropout must be .*, got 1"),
        ({"hidden": (8, 0)}, r"hidden must be .*, got 0"),
        ({"seed": -1}, "seed must be .*, got -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        TrainingSettings(**changes)


def test_labels_that_the_method_needs_must_be_there():
    with pytest.raises(DataError, match="needs annotations"):
        train(QUICK, X)
    with pytest.raises(DataError, match="needs label_distribution"):
        train(replaced(method="aggregated"), X, annotations=ANNOTATIONS)
    with pytest.raises(DataError, match=r"label_distribution must have shape \[tasks, classes\], got \(200,\)"):
        train(replaced(method="aggregated"), X, label_distribution=TRUTH)
    with pytest.raises(DataError, match=r"features must have shape \[tasks, features\]"):
        train(QUICK, X[:, 0], annotations=ANNOTATIONS)
    with pytest.raises(DataError, match=r"feature 2 is nan \(1 such values in all\)"):
        train(QUICK, np.where(np.arange(N * D).reshape(N, D) == 12, np.nan, X), annotations=ANNOTATIONS)
    with pytest.raises(ConfigError, match="needs the number of annotators"):
        build_model(QUICK, Sizes(num_classes=K, num_features=D))
