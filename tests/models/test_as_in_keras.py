"""What a Keras user expects of a model with a crowd layer, on every backend; see docs/keras.md."""

import keras
import numpy as np
import pytest
from slow_cases import quick

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers import LIA, WAUM, CoNAL, CrossFittedEM, CrowdsourcedLayer, DeepEM, DoctorNet
from crowdzoo.models import CrowdModel

N, D, K, R = 48, 5, 3, 4
RNG = np.random.default_rng(0)
GOLD = RNG.integers(K, size=N)
X = (RNG.normal(size=(N, D)) / 2 + 2 * np.eye(K, D)[GOLD]).astype("float32")
# every task has two labels, so that half of a batch has half of its labels
CHOSEN = np.argsort(RNG.random((N, R)), axis=1) < 2
DENSE = np.where(CHOSEN, np.where(RNG.random((N, R)) < 0.8, GOLD[:, None], RNG.integers(K, size=(N, R))), -1)
ANNOTATIONS = Annotations.from_dense(DENSE, classes=np.arange(K))
HALVES = {"batch_size": N // 2, "shuffle": False, "verbose": 0}
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.data is TensorFlow's")


def a_base(dtype=None):
    return keras.Sequential([
        keras.Input((D,)), keras.layers.Dense(8, "relu", dtype=dtype), keras.layers.Dense(K, "softmax", dtype=dtype)
    ])  # fmt: skip


def a_model(crowd=None, optimizer=None, eagerly=True, base=None):
    keras.utils.set_random_seed(0)
    model = CrowdModel(base or a_base(), crowd or CrowdsourcedLayer(R))
    model.compile(optimizer or keras.optimizers.SGD(0.5), metrics=["accuracy"], run_eagerly=eagerly)
    return model


def same_weights(one, other, **tolerance):
    for first, second in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(first, second, **(tolerance or {"rtol": 1e-4, "atol": 1e-6}))


class Batches(keras.utils.PyDataset):
    """Halves of the rows, as batches that the user makes."""

    def __init__(self, y):
        super().__init__()
        self.y = y

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rows = slice(index * N // 2, (index + 1) * N // 2)
        return X[rows], self.y[rows]


def generator(y):
    batches = Batches(y)
    return (batches[i % 2] for i in range(4))


def tf_data(y):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((X, y)).batch(N // 2)


# === Batches of one's own ===


@pytest.mark.parametrize(
    "make", [*quick(Batches, slow=[generator]), pytest.param(tf_data, marks=[on_tensorflow, pytest.mark.slow])]
)
def test_batches_with_a_column_an_annotator_train_like_the_annotations(make):
    model, same = a_model(), a_model()
    found = model.fit(make(DENSE), epochs=2, steps_per_epoch=2, verbose=0).history
    expected = same.fit(X, ANNOTATIONS, epochs=2, **HALVES).history
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    same_weights(model, same)
    said = same.evaluate(X, ANNOTATIONS, verbose=0, return_dict=True)
    assert {type(value) for value in said.values()} == {float}
    np.testing.assert_allclose(model.evaluate(make(DENSE), steps=2, verbose=0), [*said.values()], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("make", [Batches, pytest.param(tf_data, marks=[on_tensorflow, pytest.mark.slow])])
def test_batches_of_gold_are_for_validation_and_not_to_train_on(make):
    model = a_model(CoNAL(R))
    history = model.fit(X, ANNOTATIONS, validation_data=make(GOLD), epochs=1, **HALVES).history
    assert history["val_accuracy"] == [pytest.approx((model.predict(X, verbose=0).argmax(axis=1) == GOLD).mean())]
    np.testing.assert_allclose(model.evaluate(make(GOLD[:, None]), verbose=0), model.evaluate(X, GOLD, verbose=0), 1e-5)
    with pytest.raises(DataError, match=r"one per task, .* write CrowdModel\(base\)\.fit\(x, y\)"):
        model.fit(make(GOLD), verbose=0)
    for call in ("fit", "evaluate"):  # of a model each: on JAX Keras does not recover from an error in a step
        with pytest.raises(DataError, match=r"4 annotators, \[N, R\].* class codes, \[N\]"):
            getattr(a_model(), call)(make(np.eye(K)[GOLD]), verbose=0)


# === A base that was trained before ===


FREEZING = [
    CrowdsourcedLayer,
    *(
        pytest.param(make, marks=pytest.mark.slow)
        for make in (
            lambda r: CrowdsourcedLayer(r, majority_epochs=1),
            DeepEM,
            CrossFittedEM,
            lambda r: DoctorNet(r, K),
            LIA,
            WAUM,
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("layer", FREEZING)
@pytest.mark.usefixtures("eager")
def test_a_frozen_part_of_the_base_stays_as_it_is_until_it_is_unfrozen(layer):
    keras.utils.set_random_seed(0)
    trained = keras.Sequential([keras.Input((D,)), keras.layers.Dense(8, "relu"), keras.layers.BatchNormalization()])
    trained.trainable = False
    top = keras.layers.Dense(K, "softmax")
    crowd = layer(R)
    if crowd.traits.needs_hidden_layer:
        top = keras.layers.Dense(8, "relu")
    base = keras.Sequential([keras.Input((D,)), trained, top])
    model = CrowdModel(base, crowd)
    model.compile(keras.optimizers.SGD(0.5))
    before, head = trained.get_weights(), top.get_weights()
    model.fit(X, ANNOTATIONS, epochs=1, **HALVES)
    assert all((one == other).all() for one, other in zip(before, trained.get_weights(), strict=True))
    assert (head[0] != top.get_weights()[0]).any()
    trained.trainable = True
    model.compile(keras.optimizers.SGD(0.05))
    model.fit(X, ANNOTATIONS, epochs=1, **HALVES)
    assert all((one != other).any() for one, other in zip(before[:4], trained.get_weights()[:4], strict=True))


# === What was learnt of the annotators ===


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_calibrated_confusions_are_the_labels_counted_by_the_posteriors():
    model = a_model()
    model.fit(X, ANNOTATIONS, epochs=8, **HALVES)
    posteriors = model.posteriors(X, ANNOTATIONS).astype("float64")
    expected = np.zeros((R, K, K))
    for r in range(R):
        for said in range(K):
            expected[r, :, said] = posteriors[DENSE[:, r] == said].sum(axis=0)
    expected /= expected.sum(axis=2, keepdims=True)
    found = model.calibrated_confusions(X, ANNOTATIONS)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # annotators are right for four fifths and a third of the rest; the matrices of the double softmax say less
    assert np.diagonal(found, axis1=1, axis2=2).mean() > 0.75
    assert np.diagonal(model.annotator_confusions(), axis1=1, axis2=2).mean() < 0.75
