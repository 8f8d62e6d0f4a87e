"""LazyAdam against its equations, written out in NumPy with loops and float64, and against Keras' Adam."""

import keras
import numpy as np
import pytest
from keras import ops

from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel
from crowdzoo.optimizers import LazyAdam

BACKEND = keras.backend.backend()
R, K, D = 6, 3, 4
has_sparse_gradients = pytest.mark.skipif(BACKEND == "jax", reason="JAX has no sparse gradients")


def sparse(rows, values):
    """A gradient of a weight [R, ...] as the backend makes it when rows are gathered; a row may come twice."""
    rows, values = np.array(rows), np.array(values, "float32")
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.IndexedSlices(tf.constant(values), tf.constant(rows, tf.int32), (R, *values.shape[1:]))
    import torch

    size = (R, *values.shape[1:])
    rows, values = ops.convert_to_tensor(rows, "int64"), ops.convert_to_tensor(values)  # on a GPU where there is one
    return torch.sparse_coo_tensor(rows[None], values, size, check_invariants=True)


def weight(seed=0):
    return keras.Variable(np.random.default_rng(seed).normal(size=(R, 2)).astype("float32"))


def steps(count=5, seed=1):
    """Rows and gradients of some steps; rows repeat inside a step, row 5 never comes."""
    rng = np.random.default_rng(seed)
    return [(rng.integers(5, size=4), rng.normal(size=(4, 2))) for _ in range(count)]


def written_out(start, gradients, rate=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    w = np.array(start, "float64")
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, (rows, values) in enumerate(gradients, 1):
        for r in set(rows.tolist()):
            g = sum(value for row, value in zip(rows, values, strict=True) if row == r)
            m[r] = beta_1 * m[r] + (1 - beta_1) * g
            v[r] = beta_2 * v[r] + (1 - beta_2) * g**2
            w[r] -= rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t) * m[r] / (np.sqrt(v[r]) + epsilon)
    return w


def numpy(variable):
    return ops.convert_to_numpy(variable)


@has_sparse_gradients
def test_rows_move_by_the_equations():
    variable = weight()
    start, optimizer = numpy(variable), LazyAdam(0.1)
    for rows, values in steps():
        optimizer.apply([sparse(rows, values)], [variable])
    np.testing.assert_allclose(numpy(variable), written_out(start, steps()), rtol=1e-5, atol=1e-6)


@has_sparse_gradients
def test_a_row_that_is_not_in_the_batch_stays_with_its_moments():
    variable, optimizer = weight(), LazyAdam(0.1)
    optimizer.apply([sparse([1, 2], np.ones((2, 2)))], [variable])
    before = [numpy(state).copy() for state in (variable, *optimizer.variables[2:])]
    assert len(before) == 3  # the weight and its two moments
    optimizer.apply([sparse([2], np.ones((1, 2)))], [variable])
    for old, state in zip(before, (variable, *optimizer.variables[2:]), strict=True):
        changed = (numpy(state) != old).any(axis=1)
        assert changed.tolist() == [row == 2 for row in range(R)]


@has_sparse_gradients
@pytest.mark.parametrize("clip", [{"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"clipvalue": 0.2}], ids=str)
def test_clipping_looks_at_the_sum_of_a_rows_labels(clip):
    """Two labels of opposite sign and size 9 are a gradient of 0.1, which no clipping touches."""
    states = []
    for gradient in (sparse([1, 1], [[9.1, 0], [-9.0, 0]]), sparse([1], [[0.1, 0]])):
        variable, optimizer = weight(), LazyAdam(0.1, **clip)
        optimizer.apply([gradient], [variable])
        states.append(numpy(optimizer.variables[2]))  # linear in the gradient, while the step itself is not
    np.testing.assert_allclose(states[0], states[1], atol=1e-5)
    assert np.abs(states[1]).max() == pytest.approx(0.01, rel=1e-4)
    variable, optimizer = weight(), LazyAdam(0.1, **clip)
    optimizer.apply([sparse([1], [[3.0, 0]])], [variable])
    assert numpy(optimizer.variables[2])[1, 0] == pytest.approx(0.1 * next(iter(clip.values())), rel=1e-4)


def test_a_dense_gradient_gets_adams_step():
    results = []
    for optimizer in (LazyAdam(0.1, clipnorm=1.0), keras.optimizers.Adam(0.1, clipnorm=1.0)):
        variable, rng = weight(), np.random.default_rng(2)
        for _ in range(4):
            optimizer.apply([ops.convert_to_tensor(rng.normal(size=(R, 2)).astype("float32"))], [variable])
        results.append(numpy(variable))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def crowd_batch(annotators, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(annotators), D)).astype("float32")
    ids = np.array(annotators, "int32")
    return {"instances": x, "annotators": ids}, rng.integers(K, size=ids.shape).astype("int32")


def crowd_model(optimizer, connection="MW", jit_compile=False, dtype=None):
    keras.utils.set_random_seed(3)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax", dtype=dtype)])
    model = CrowdModel(base, CrowdsourcedLayer(R, connection, dtype=dtype))
    model.compile(optimizer, jit_compile=jit_compile)
    return model


@has_sparse_gradients
@pytest.mark.parametrize(
    "jit_compile", [False, *([pytest.param(True, marks=pytest.mark.slow)] if BACKEND == "tensorflow" else [])]
)
def test_a_model_trains_the_annotators_of_its_batch_only(jit_compile):
    model = crowd_model(LazyAdam(0.01), jit_compile=jit_compile)
    start = numpy(model.crowd.kernel)
    model.train_on_batch(*crowd_batch([[0, 2]]))
    model.train_on_batch(*crowd_batch([[2, 4]], seed=1))  # Adam would move annotator 0 on by his momentum
    after_first = numpy(model.crowd.kernel)
    assert np.flatnonzero((after_first != start).any(axis=(1, 2))).tolist() == [0, 2, 4]
    x, y = crowd_batch([[3, 4], [3, -1]], seed=2)
    y[1, 1] = -1  # padding, which is not annotator 0
    model.train_on_batch(x, y)
    assert np.flatnonzero((numpy(model.crowd.kernel) != after_first).any(axis=(1, 2))).tolist() == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.usefixtures("eager")
def test_mixed_precision_trains(dtype):
    if (BACKEND, dtype) == ("torch", "mixed_float16"):
        pytest.skip("PyTorch cannot tell whether a sparse gradient is finite, which loss scaling asks")
    optimizer = LazyAdam(0.01)
    if dtype == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0)
    model, plain = crowd_model(optimizer, dtype=dtype), crowd_model(LazyAdam(0.01))
    for trained in (model, plain):
        for _ in range(3):
            trained.train_on_batch(*crowd_batch([[1, 2], [2, 5]]))
    for one, other in zip(model.get_weights(), plain.get_weights(), strict=True):
        assert one.dtype == "float32"
        np.testing.assert_allclose(one, other, atol=0.01)
    assert np.abs(plain.get_weights()[-1] - numpy(crowd_model(LazyAdam()).crowd.kernel)).max() > 0.02


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("amsgrad", True),
        ("gradient_accumulation_steps", 2),
        ("loss_scale_factor", 8.0),
        ("use_ema", True),
        ("weight_decay", 0.01),
    ],
)
def test_what_would_touch_every_annotator_is_refused(setting, value):
    with pytest.raises(ValueError, match=f"LazyAdam: {setting}={value}.*keras.optimizers.Adam"):
        LazyAdam(**{setting: value})


@pytest.mark.usefixtures("eager")
def test_a_schedule_sets_the_rate():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.01, 0.0])
    model = crowd_model(LazyAdam(schedule))
    x, y = crowd_batch([[1, 2]])
    start = model.get_weights()
    model.train_on_batch(x, y)
    model.train_on_batch(x, y)
    moved = model.get_weights()
    model.train_on_batch(x, y)
    assert any((a != b).any() for a, b in zip(start, moved, strict=True))
    for a, b in zip(moved, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
