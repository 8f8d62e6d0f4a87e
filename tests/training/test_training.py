import keras
import numpy as np
import pytest
from slow_cases import quick

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


@pytest.mark.slow
def test_training_on_aggregated_labels_makes_a_base_alone():
    model, _ = train(replaced(method="aggregated", learning_rate=0.03), X, label_distribution=np.eye(K)[TRUTH])
    assert model.crowd is None
    assert (model.predict(X, verbose=0).argmax(axis=1) == TRUTH).mean() > 0.9


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("method", "labels"),
    quick(
        ("crowdsourced-layer", {"annotations": ANNOTATIONS}),
        slow=[("aggregated", {"label_distribution": np.eye(K)[TRUTH]})],
    ),
)
def test_two_trainings_with_one_seed_agree(method, labels):
    model, same = (train(replaced(method=method, epochs=2, batch_size=100), X, **labels)[0] for _ in range(2))
    for one, other in zip(model.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_epochs_batches_and_callbacks_are_those_asked_for():
    class Count(keras.callbacks.Callback):
        batches = epochs = 0

        def on_train_batch_end(self, batch, logs=None):
            self.batches += 1

        def on_epoch_end(self, epoch, logs=None):
            self.epochs += 1

    count = Count()
    train(replaced(epochs=2, batch_size=70), X, annotations=ANNOTATIONS, callbacks=[count])
    assert (count.epochs, count.batches) == (2, 2 * 3)


def test_labels_that_the_method_needs_must_be_there():
    with pytest.raises(DataError, match="needs annotations"):
        train(QUICK, X)
    with pytest.raises(DataError, match="needs label_distribution"):
        train(replaced(method="aggregated"), X, annotations=ANNOTATIONS)
    with pytest.raises(DataError, match=r"label_distribution must have shape .* got \(200,\)"):
        train(replaced(method="aggregated"), X, label_distribution=TRUTH)
    with pytest.raises(DataError, match=r"features must have shape \[tasks, features\]"):
        train(QUICK, X[:, 0], annotations=ANNOTATIONS)
    with pytest.raises(DataError, match=r"feature 2 is nan \(1 such values in all\)"):
        train(QUICK, np.where(np.arange(N * D).reshape(N, D) == 12, np.nan, X), annotations=ANNOTATIONS)
    with pytest.raises(ConfigError, match="needs the number of annotators"):
        build_model(QUICK, Sizes(num_classes=K, num_features=D))
