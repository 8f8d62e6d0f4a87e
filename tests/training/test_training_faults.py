import keras
import numpy as np
import pytest

from crowdzoo.errors import DataError
from crowdzoo.models import TaggerSettings, TextSettings, TrainingSettings, train, train_tagger
from crowdzoo.tables.annotations import Annotations
from crowdzoo.training.faults import NotLearnedWarning, check_weights, warn_if_one_class, warn_if_one_value

QUICK = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-9, "dropout": 0.0}
X = np.zeros((8, 2), "float32")  # the same features for all: one answer for all
TEXTS = ["a b"] * 8


@pytest.mark.usefixtures("eager")
def test_a_classifier_that_knows_one_class_says_so():
    annotations = Annotations.from_dense([[0], [1], [0], [1], [0], [1], [1], [0]])
    with pytest.warns(
        NotLearnedWarning, match=r"one class '[01]' to all 8 training tasks.*50.0% .* smaller batch_size"
    ):
        train(TrainingSettings(hidden=(2,), **QUICK), X, annotations=annotations)


@pytest.mark.usefixtures("eager")
def test_regressors_that_know_one_value_say_so():
    annotations = Annotations.from_dense(np.arange(8.0)[:, None], kind="regression")
    with pytest.warns(NotLearnedWarning, match="nearly one value"):
        train(TrainingSettings(task="regression", hidden=(2,), **QUICK), X, annotations=annotations)


@pytest.mark.usefixtures("eager")
def test_a_text_regressor_that_knows_one_value_says_so():
    pytest.importorskip("tensorflow")
    annotations = Annotations.from_dense(np.arange(8.0)[:, None], kind="regression")
    with pytest.warns(NotLearnedWarning, match="nearly one value"):
        train(TextSettings(task="regression", form="bag-of-words", hidden=2, **QUICK), TEXTS, annotations=annotations)


@pytest.mark.usefixtures("eager")
def test_a_tagger_that_knows_one_tag_says_so():
    pytest.importorskip("tensorflow")
    tags = Annotations(
        "sequence", np.arange(8), np.zeros(8, int), np.array([0, 1] * 4), np.arange(8), np.arange(1),
        np.array(["O", "B-PER"]), positions=np.zeros(8, int),
    )  # fmt: skip
    settings = TaggerSettings("aggregated", embedding=2, filters=2, units=2, **QUICK)
    shares = [np.array([[1.0, 0]]), np.array([[0.0, 1]])] * 4  # sentences of one and the same word
    with pytest.warns(NotLearnedWarning, match=r"one class '(O|B-PER)' to all 8 training tokens"):
        train_tagger(settings, [["x"]] * 8, tags, tag_distribution=shares)


def test_few_other_labels_and_equal_ratings_are_no_fault(recwarn):
    warn_if_one_class(np.zeros(50, int), np.array([0] * 199 + [1, -1]))
    warn_if_one_class(np.array([0, 1]), np.array([0, 0, 1, 1]))
    warn_if_one_value(np.full(50, 3.0), np.full(50, 3.0))
    warn_if_one_value(np.array([2.9, 3.1]), np.array([2.0, 4.0, np.nan]))
    assert not recwarn.list


@pytest.mark.usefixtures("eager")
def test_training_that_reaches_nan_stops():
    class Spoil(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                weight = self.model.base.trainable_weights[-1]  # the last bias: a ReLU may hide NaN
                weight.assign(np.full(weight.shape, np.nan))

    rng = np.random.default_rng(0)
    annotations = Annotations.from_dense(rng.normal(size=(8, 1)), kind="regression")
    settings = TrainingSettings(task="regression", hidden=(2,), epochs=9, batch_size=4, dropout=0.0)
    with pytest.raises(DataError, match=r"the loss of epoch 2 is nan\. Lower learning_rate"):
        train(settings, rng.normal(size=(8, 2)), annotations=annotations, callbacks=[Spoil()])


def test_weights_that_are_no_numbers_are_named():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="good"), keras.layers.Dense(1, name="bad")])
    check_weights(model)
    kernel = model.get_layer("bad").kernel
    kernel.assign(np.array([[1.0], [np.nan], [np.inf]]))
    with pytest.raises(DataError, match=r"2 of the 3 numbers of weight '.*bad/kernel' are NaN or infinite"):
        check_weights(model)
