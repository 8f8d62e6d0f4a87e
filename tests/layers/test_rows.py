"""Gradients of gathered rows: what an optimizer makes of rows that occur several times in a batch."""

import keras
import numpy as np
import pytest
from keras import ops
from slow_cases import quick

from crowdzoo.backend import take_rows
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel
from crowdzoo.optimizers import LazyAdam

R, D, RATE = 4, 2, 0.1
RNG = np.random.default_rng(0)
# every row in every batch, some of them several times
STEPS = [
    (np.array([[0, 1, 1], [2, 1, 3], [3, 0, 1]])[RNG.permutation(3)], RNG.normal(size=(3, 3, D))) for _ in range(5)
]
START = RNG.normal(size=(R, D))


class GatheredRows(keras.layers.Layer):
    """Rows of a weight; one line, as in a crowd layer."""

    def build(self, shape):
        self.kernel = self.add_weight(
            shape=(R, D), initializer=lambda shape, dtype=None: ops.convert_to_tensor(START, dtype)
        )

    def call(self, codes):
        return take_rows(self.kernel, codes)


def inner_product(y_true, y_pred):
    """Its gradient with respect to the rows is `y_true`, whatever the rows are: Keras takes the mean over the batch."""
    return len(STEPS[0][0]) * ops.sum(y_true * y_pred, axis=(-2, -1))


def trained(optimizer):
    model = keras.Sequential([keras.Input((3,), dtype="int32"), GatheredRows()])
    run(model, optimizer)
    return model.get_weights()[0]


def run(model, optimizer):
    model.compile(optimizer, loss=inner_product)
    for codes, change in STEPS:
        model.train_on_batch(codes.astype("int32"), change.astype("float32"))


def gradients():
    """The dense gradient of each step: sums over a row's occurrences."""
    for codes, change in STEPS:
        gradient = np.zeros((R, D))
        np.add.at(gradient, codes, change)
        yield gradient


@pytest.mark.parametrize("sparse", [False, True])
def test_a_backend_of_dense_gradients_takes_rows_as_keras_does(sparse, monkeypatch):
    weight = keras.Variable(START)
    weight.sparse_gradient = sparse
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    codes = STEPS[0][0]
    expected = ops.convert_to_numpy(weight)[codes]  # in Keras' precision
    np.testing.assert_array_equal(ops.convert_to_numpy(take_rows(weight, codes)), expected)


# === Adam's equations, in NumPy ===


def adam(every=1, clip=None):
    w, m, v, t, total = START.copy(), 0.0, 0.0, 0, 0.0
    for step, g in enumerate(gradients(), 1):
        total = total + g
        if step % every:
            continue
        g, total, t = total / every, 0.0, t + 1
        g = g if clip is None else g * min(1, clip / np.sqrt((g**2).sum()))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w -= RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-7)
    return w


rules = keras.optimizers
OPTIMIZERS = {
    "adam": (lambda: rules.Adam(RATE), adam),
    "adam, loss scaling": (lambda: rules.LossScaleOptimizer(rules.Adam(RATE), initial_scale=8.0), adam),
    "adam, accumulation": (lambda: rules.Adam(RATE, gradient_accumulation_steps=2), lambda: adam(every=2)),
    "adam, clipped": (lambda: rules.Adam(RATE, clipnorm=0.5), lambda: adam(clip=0.5)),
    "lazy adam": (lambda: LazyAdam(RATE), adam),
}


@pytest.mark.parametrize("name", quick("adam", "lazy adam", slow=[name for name in OPTIMIZERS if "adam," in name]))
def test_an_optimizers_step_is_that_of_the_sum_over_a_rows_occurrences(name):
    make, expected = OPTIMIZERS[name]
    np.testing.assert_allclose(trained(make()), expected(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("in_crowd_model", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_after_lazy_adam_another_optimizer_steps_as_it_should(in_crowd_model):
    """A weight that LazyAdam trained said that its gradients may be sparse."""
    if in_crowd_model:
        x = {"instances": np.zeros((2, 1), "float32"), "annotators": np.array([[0, 1, 1], [2, 3, 1]], "int32")}
        y = np.array([[0, 1, 0], [1, 0, 0]], "int32")
        base = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2, "softmax")])
        models = [CrowdModel(base, CrowdsourcedLayer(R)) for base in (base, keras.models.clone_model(base))]
    else:
        x, y = STEPS[0][0].astype("int32"), STEPS[0][1].astype("float32")
        models = [keras.Sequential([keras.Input((3,), dtype="int32"), GatheredRows()]) for _ in range(2)]
    models[0].compile(LazyAdam(RATE), loss=None if in_crowd_model else inner_product)
    models[0].train_on_batch(x, y)
    models[1].set_weights(models[0].get_weights())
    for model in models:
        model.compile(rules.Adam(RATE), loss=None if in_crowd_model else inner_product)
        model.train_on_batch(x, y)
    for after, fresh in zip(models[0].get_weights(), models[1].get_weights(), strict=True):
        np.testing.assert_allclose(after, fresh, rtol=1e-5)
