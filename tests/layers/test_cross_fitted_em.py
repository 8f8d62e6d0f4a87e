"""CrossFittedEM against its equations, written out in NumPy with loops and float64."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops
from own_bases import OwnBase

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers import CrossFittedEM, DeepEM
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.training.recipes.cross_fitted_em import _copy_base

D, K, R = 4, 3, 5
# Task 1 is a tie, task 3 has no label; one label of annotator 3, none of annotator 4. Class 2 nobody says.
DENSE = np.array(
    [[0, 0, 1, -1, -1], [0, 1, -1, -1, -1], [1, 1, 0, 1, -1], [-1] * 5, [1, -1, 1, -1, -1], [0, -1, -1, -1, -1]]
)


def test_fewer_tasks_than_folds_are_refused():
    model = CrowdModel(FeatureClassifier(D, K), CrossFittedEM(R, folds=5))
    annotations = Annotations.from_dense(DENSE[:4], classes=np.arange(K))
    with pytest.raises(DataError, match="5 folds need as many tasks, there are 4"):
        model.fit(np.zeros((4, D), "float32"), annotations, verbose=0)


# === The copies ===


class Doubling(keras.layers.Layer):
    """Not registered with Keras."""

    def call(self, inputs):
        return 2.0 * inputs


class SilentBase(OwnBase):
    """Says nothing of the layer that it is made from."""

    def __init__(self, dense):
        super().__init__(K)
        self.dense = dense

    get_config = keras.Model.get_config


def functional(shape=(D,)):
    inputs = keras.Input(shape)
    hidden = keras.layers.Dense(D, activation="relu")
    return keras.Model(inputs, keras.layers.Dense(K, activation="softmax")(hidden(hidden(Doubling()(inputs)))))


def two_inputs(form):
    inputs = [keras.Input((D // 2,), name=name) for name in ("left", "right")]
    outputs = keras.layers.Dense(K, activation="softmax")(keras.layers.Concatenate()(inputs))
    return keras.Model(dict(zip(("left", "right"), inputs, strict=True)) if form == "dict" else inputs, outputs)


def nested():
    inputs = keras.Input((D,))
    return keras.Model(inputs, functional()(keras.layers.Lambda(lambda x: x + 1)(inputs)))


X = np.random.default_rng(0).normal(size=(len(DENSE), D)).astype("float32")
BASES = {
    "sequential": (lambda: keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax")]), X),
    "functional": (functional, X),
    "nested, with a lambda": (nested, X),
    "two inputs in a list": (lambda: two_inputs("list"), [X[:, : D // 2], X[:, D // 2 :]]),
    "two inputs in a dictionary": (lambda: two_inputs("dict"), {"left": X[:, : D // 2], "right": X[:, D // 2 :]}),
    "subclassed": (lambda: OwnBase(K), X),
}


@pytest.mark.slow
def test_bases_of_every_kind_are_copied():
    for kind, (make, x) in BASES.items():
        base = make()
        expected = ops.convert_to_numpy(base(x))
        base.compile("sgd", loss=lambda y, p: p)  # a loss that no file could hold
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            copies = _copy_base(base, 2)
        for copy in copies:
            copy(x)
            copy.set_weights(base.get_weights())
        copies[1].set_weights([weight + 1 for weight in base.get_weights()])
        np.testing.assert_allclose(ops.convert_to_numpy(copies[0](x)), expected, rtol=1e-6, err_msg=kind)
        np.testing.assert_allclose(ops.convert_to_numpy(base(x)), expected, rtol=1e-6, err_msg=kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["functional", "two inputs in a list"])
@pytest.mark.usefixtures("eager")
def test_a_base_is_trained_as_without_copies_where_no_posterior_changes(kind):
    """In a single round the base does not depend on its copies."""
    make, x = BASES[kind]
    annotations = Annotations.from_dense(DENSE, classes=np.arange(K))
    models = []
    for layer in (CrossFittedEM(R, folds=2, epochs_per_round=2), DeepEM(R, epochs_per_round=2)):
        keras.utils.set_random_seed(0)
        models.append(CrowdModel(make(), layer))
        models[-1].fit(x, annotations, epochs=2, batch_size=8, verbose=0)
    for one, other in zip(models[0].base.get_weights(), models[1].base.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert np.isfinite(models[0].crowd.task_posteriors).all()


@pytest.mark.filterwarnings("ignore:.build... was called on layer 'silent_base'")
def test_a_base_without_a_configuration_is_refused_with_the_lines_to_write():
    inputs = keras.Input((D,))
    base = SilentBase(keras.layers.Dense(K, activation="softmax"))
    outputs = base(inputs)
    for silent in (base, keras.Model(inputs, outputs)):
        with pytest.raises(ValueError, match="SilentBase cannot be made again from its configuration") as caught:
            _copy_base(silent, 2)
        assert 'return {**super().get_config(), "dense": self.dense}' in str(caught.value)


# === The equations ===


def em(x, dense, kernel, bias, *, epochs, prior, diagonal, rate, every, fold_of):
    """Epochs of the EM; base and copies are softmax regressions that take a step of gradient descent an epoch."""
    tasks = [i for i in range(len(dense)) if max(dense[i]) >= 0]
    labels = {i: [(r, label) for r, label in enumerate(dense[i]) if label >= 0] for i in tasks}
    q = {i: np.array([sum(label == k for _, label in labels[i]) / len(labels[i]) for k in range(K)]) for i in tasks}
    folds = max(fold_of) + 1
    # the last one is the base, which leaves nobody out
    networks = [[np.array(kernel, "float64"), np.array(bias, "float64")] for _ in range(folds + 1)]
    likelihoods, confusions = [], None

    def estimate(network, i):
        odds = np.exp(np.float64(x[i]) @ network[0] + network[1])
        return odds / odds.sum()

    def step(network, own, scale):
        errors = {i: (estimate(network, i) - q[i]) * scale / len(tasks) for i in own}
        network[0] -= rate * sum(np.outer(x[i], errors[i]) for i in own)
        network[1] -= rate * sum(errors[i] for i in own)

    for epoch in range(epochs):
        if epoch % every == 0:
            if epoch > 0:
                likelihood = 0.0
                for i in tasks:
                    odds = estimate(networks[fold_of[i]], i)
                    for r, label in labels[i]:
                        odds = odds * confusions[r, :, label]
                    q[i] = odds / odds.sum()
                    likelihood += np.log(odds.sum())
                likelihoods += [likelihood] * every
            confusions = np.full((R, K, K), prior * (1 - diagonal) / (K - 1))
            confusions[:, np.arange(K), np.arange(K)] = prior * diagonal
            for i in tasks:
                for r, label in labels[i]:
                    confusions[r, :, label] += q[i]
            confusions /= confusions.sum(axis=2, keepdims=True)
            for _ in range(every):
                for fold, network in enumerate(networks[:-1]):
                    step(network, [i for i in tasks if fold_of[i] != fold], folds / (folds - 1))
        step(networks[-1], tasks, 1)
    return {"base": networks[-1], "confusions": confusions, "log_likelihood": likelihoods, "posteriors": q}


@pytest.mark.slow
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_whole_rounds_are_the_equations(every):
    settings = {"prior": 0.7, "diagonal": 0.6}
    x = np.random.default_rng(0).normal(size=(len(DENSE), D)).astype("float32")
    keras.utils.set_random_seed(0)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax")])
    model = CrowdModel(base, CrossFittedEM(R, epochs_per_round=every, folds=3, **settings))
    model.compile(keras.optimizers.SGD(0.5))
    fold_of = np.random.default_rng([7, 3]).permutation(len(DENSE)) % 3
    expected = em(x, DENSE, *base.get_weights(), epochs=4, rate=0.5, every=every, fold_of=fold_of, **settings)
    annotations = Annotations.from_dense(DENSE, classes=np.arange(K))
    history = model.fit(x, annotations, epochs=4, batch_size=32, seed=7, verbose=0).history
    np.testing.assert_allclose(history["log_likelihood"], expected["log_likelihood"], rtol=1e-4)
    np.testing.assert_allclose(model.annotator_confusions(), expected["confusions"], rtol=1e-3, atol=1e-5)
    for weight, wanted in zip(base.get_weights(), expected["base"], strict=True):
        np.testing.assert_allclose(weight, wanted, rtol=1e-3, atol=1e-5)
    for i, wanted in expected["posteriors"].items():
        np.testing.assert_allclose(model.crowd.task_posteriors[i], wanted, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(model.crowd.task_posteriors[3], np.zeros(K))  # nobody labelled it
