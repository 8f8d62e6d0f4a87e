"""What works in Keras' fit and evaluate works here, or is refused with the line to write."""

import keras
import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import CrowdsourcedLayer, DeepEM, DoctorNet, MaxMIG
from crowdzoo.models import CrowdModel

N, D, K, R = 40, 5, 3, 4
RNG = np.random.default_rng(0)
GOLD = RNG.integers(K, size=N)
X = (RNG.normal(size=(N, D)) + GOLD[:, None]).astype("float32")
DENSE = np.where(RNG.random((N, R)) < 0.6, GOLD[:, None], -1)
ANNOTATIONS = Annotations.from_dense(DENSE, classes=np.arange(K))
PARTLY_KNOWN = np.where(np.arange(N) < 9, -1, GOLD)
ONCE = {"epochs": 2, "verbose": 0}


def a_base(outputs=K, activation="softmax"):
    return keras.Sequential([keras.Input((D,)), keras.layers.Dense(outputs, activation, kernel_regularizer="l2")])


def a_model(crowd=None, metrics=("accuracy",), **base):
    keras.utils.set_random_seed(0)
    model = CrowdModel(a_base(**base), CrowdsourcedLayer(R) if crowd is None else crowd)
    model.compile(keras.optimizers.Adam(0.01), metrics=list(metrics), run_eagerly=True)
    return model


def a_model_alone(**arguments):
    model = CrowdModel(a_base())
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True, **arguments)
    return model


def doctor_net(num_annotators):
    return DoctorNet(num_annotators, K)


def by_keras(found):
    """What Keras' own metrics give of the known truths and of `found`, the model's estimates."""
    metrics = pytest.importorskip("sklearn.metrics")  # is not beside the other backends
    known = PARTLY_KNOWN >= 0
    return {
        "AUC": metrics.roc_auc_score(np.eye(K)[PARTLY_KNOWN[known]].ravel(), found[known].ravel()),
        "Precision": (found[known] > 0.5)[np.arange(known.sum()), PARTLY_KNOWN[known]].sum()
        / max((found[known] > 0.5).sum(), 1),
        "macro": metrics.f1_score(PARTLY_KNOWN[known], found[known].argmax(axis=1), average="macro"),
        "top": metrics.top_k_accuracy_score(PARTLY_KNOWN[known], found[known], k=2),
        "sparse_categorical_accuracy": (found.argmax(axis=1) == PARTLY_KNOWN)[known].mean(),
        "mse": np.square(found - np.eye(K)[PARTLY_KNOWN])[known].mean(),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [CrowdsourcedLayer, DeepEM, MaxMIG, doctor_net])
def test_any_metric_of_keras_compares_the_estimate_with_gold_whatever_the_method(crowd, tmp_path):
    metrics = [
        "AUC", "Precision", "sparse_categorical_accuracy", "mse", keras.metrics.F1Score("macro", name="macro"),
        keras.metrics.SparseTopKCategoricalAccuracy(2, name="top"),
    ]  # fmt: skip
    model = a_model(crowd(R), metrics)
    history = model.fit(X, ANNOTATIONS, validation_data=(X, PARTLY_KNOWN), **ONCE).history
    expected = by_keras(model.predict(X, verbose=0))
    assert {"loss", *(f"val_{name}" for name in ("loss", *expected))} == {*history} - {"log_likelihood"}
    for name, value in expected.items():
        # of an area between thresholds
        assert history[f"val_{name}"][-1] == pytest.approx(value, abs=0.01 if name == "AUC" else 1e-5), name
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found = loaded.evaluate(X, PARTLY_KNOWN, verbose=0, return_dict=True)
    assert found["macro"] == pytest.approx(expected["macro"], abs=1e-5)


def test_gold_after_labels_has_the_accuracy_that_it_had_before():
    model = a_model()
    model.run_eagerly = False  # a graph is traced once, for gold and for labels
    for y in (PARTLY_KNOWN, ANNOTATIONS, PARTLY_KNOWN, ANNOTATIONS):
        found = model.evaluate(X, y, verbose=0, return_dict=True)
        right = model.predict(X, verbose=0).argmax(axis=1)[9:] == GOLD[9:]
        assert found.get("accuracy", right.mean()) == pytest.approx(right.mean(), abs=1e-6)
        assert ("accuracy" in found) == (y is PARTLY_KNOWN)
    in_parts = model.evaluate(X, PARTLY_KNOWN, batch_size=7, verbose=0)  # the first has no gold
    assert in_parts == pytest.approx(model.evaluate(X[9:], GOLD[9:], verbose=0), rel=1e-5)
    history = model.fit(X, ANNOTATIONS, validation_data=(X, PARTLY_KNOWN), **ONCE).history
    assert min(history["val_accuracy"]) > 0


def test_datasets_of_gold_and_of_labels_are_evaluated_in_any_order():
    model = a_model()
    model.run_eagerly = False
    tf = pytest.importorskip("tensorflow")
    gold, labels = (tf.data.Dataset.from_tensor_slices((X, y)).batch(16) for y in (PARTLY_KNOWN, DENSE))
    first = model.evaluate(gold, verbose=0, return_dict=True)
    model.evaluate(X, ANNOTATIONS, verbose=0)
    model.evaluate(labels, verbose=0)
    assert model.evaluate(gold, verbose=0, return_dict=True) == first


def test_metrics_of_ratings_and_of_tags_leave_out_what_is_unknown():
    ratings = a_model(CrowdsourcedLayer(R, "B", "regression"), ["mae"], outputs=1, activation=None)
    gold = np.where(np.arange(N) < 9, np.nan, GOLD + 0.5)
    expected = np.abs(ratings.predict(X, verbose=0)[:, 0] - gold)[9:].mean()
    assert ratings.evaluate(X, gold, verbose=0, return_dict=True)["mae"] == pytest.approx(expected, rel=1e-5)
    base = keras.Sequential([keras.Input((None, D)), keras.layers.Dense(K, "softmax")])
    tags = CrowdModel(base, CrowdsourcedLayer(R, kind="sequence"))
    tags.compile(metrics=[keras.metrics.F1Score("macro")], run_eagerly=True)
    x, gold = X.reshape(10, 4, D), PARTLY_KNOWN.reshape(10, 4)
    metrics = pytest.importorskip("sklearn.metrics")
    expected = metrics.f1_score(gold[gold >= 0], tags.predict(x, verbose=0).argmax(axis=-1)[gold >= 0], average="macro")
    assert tags.evaluate(x, gold, verbose=0, return_dict=True)["f1_score"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_validation_split_holds_the_last_rows_out():
    halves = a_model()
    history = halves.fit(X, ANNOTATIONS, validation_split=0.25, **ONCE).history
    same = a_model()
    parts = [ANNOTATIONS.select_tasks(np.arange(30)), ANNOTATIONS.select_tasks(np.arange(30, N))]
    held = ({"instances": X[30:], "tasks": parts[1].tasks}, parts[1])
    assert history == same.fit(X[:30], parts[0], validation_data=held, **ONCE).history
    few = Annotations.from_dense(np.where(np.arange(N)[:, None] < 30, DENSE, -1), classes=np.arange(K))
    with pytest.raises(DataError, match="rows 30 to 39 of x have no labels"):
        halves.fit(X, few, validation_split=0.25)
    for fraction in (-0.5, 1, 0.999, float("nan")):
        with pytest.raises(DataError, match="validation_split must be above 0 and below 1"):
            halves.fit(X, ANNOTATIONS, validation_split=fraction)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.fit(X, ANNOTATIONS, class_weight={0: 2.0}), ConfigError, r"CrowdModel\(base\)\.fit\(x, result"),
        (lambda m: a_model(activation=None).fit(X, ANNOTATIONS), ConfigError, r"not probabilities .*on='softmax'\)"),
        (lambda m: a_model(DeepEM(R), activation="sigmoid").fit(X, ANNOTATIONS), ConfigError, "not probabilities"),
        (lambda m: m.fit(X, GOLD), DataError, r"shape \(40,\) are one per task, .*N, R\]\. .*CrowdModel\(base\)\.fit"),
        (lambda m: m.fit(X, ANNOTATIONS, validation_data=(X, GOLD[1:])), DataError, "40 instances, but 39 targets"),
        (lambda m: m.evaluate(X, GOLD + 1), DataError, "class code 3, the model has classes 0 to 2"),
        (lambda m: m.evaluate(X, GOLD + 0.5), DataError, "gold must be class codes 0 to 2, -1 if unknown"),
        (lambda m: m.evaluate(X, GOLD - 5), DataError, "gold must be class codes 0 to 2, -1 if unknown"),
        (lambda m: m.evaluate(X, np.full(N, -1)), DataError, "the truth of no task is known"),
        (lambda m: m.evaluate(X, np.full(N, "cat")), DataError, r"gold must be numbers.*\.gold_codes\(classes\)"),
        (lambda m: m.compile(loss="sparse_categorical_crossentropy"), ConfigError, r"loss 'sparse_.*Write compile\(\)"),
        (lambda m: m.compile(loss=keras.losses.CategoricalCrossentropy()), ConfigError, "loss 'categorical_crosse"),
    ],
)
def test_what_does_not_work_says_what_to_write(call, error, message):
    with pytest.raises(error, match=message):
        call(a_model())


def test_an_array_that_may_be_gold_or_labels_is_refused():
    with pytest.raises(DataError, match=r"labels of 3 annotators\? .* y\.argmax\(axis=-1\)"):
        a_model(CrowdsourcedLayer(K)).evaluate(X, np.eye(K)[GOLD])


# === Without a crowd layer ===


@pytest.mark.slow
def test_a_base_alone_takes_codes_weights_and_a_split_as_in_keras():
    """The same base under plain Keras gives the numbers."""
    settings = {"batch_size": 10, "shuffle": False, "epochs": 1, "verbose": 0}
    weights = {
        "sample_weight": np.linspace(0, 2, N),
        "class_weight": {0: 1.0, 1: 3.0, 2: 1.0},
        "validation_split": 0.25,
    }
    for name, value in weights.items():
        model = a_model_alone(metrics=["accuracy"])
        plain = keras.models.clone_model(model.base)
        plain.set_weights(model.base.get_weights())
        plain.compile(
            keras.optimizers.Adam(0.01), keras.losses.CategoricalCrossentropy(), metrics=["accuracy"], run_eagerly=True
        )
        found = model.fit(X, GOLD, **{name: value}, **settings).history
        expected = plain.fit(X, np.eye(K)[GOLD], **{name: value}, **settings).history
        if name == "class_weight":
            # Keras weighs the metric too where a class weight comes with arrays
            found, expected = ({"loss": history["loss"]} for history in (found, expected))
        for key, values in expected.items():
            np.testing.assert_allclose(found[key], values, rtol=1e-4, atol=1e-6, err_msg=f"{name}, {key}")
    np.testing.assert_allclose(model.evaluate(X, GOLD, verbose=0), model.evaluate(X, np.eye(K)[GOLD], verbose=0))
    with pytest.raises(DataError, match=r"one number per row of x, shape \(40,\), got float64"):
        model.fit(X, GOLD, sample_weight=np.ones(N - 1))
    own = a_model_alone(loss="sparse_categorical_crossentropy")
    assert np.isfinite(own.evaluate(X, GOLD, verbose=0))


# === Several inputs ===


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["list", "tuple", "dict"])
@pytest.mark.usefixtures("eager")
def test_a_base_of_several_inputs_is_fitted_asked_and_loaded(structure, tmp_path):
    left, right = keras.Input((2,), name="left"), keras.Input((3,), name="right")
    shapes = {"list": [left, right], "tuple": (left, right), "dict": {"left": left, "right": right}}
    output = keras.layers.Dense(K, activation="softmax")(keras.layers.Concatenate()([left, right]))
    model = CrowdModel(keras.Model(shapes[structure], output), CrowdsourcedLayer(R))
    model.compile()
    parts = [X[:, :2], X[:, 2:]]
    x = {"list": parts, "tuple": tuple(parts), "dict": {"left": parts[0], "right": parts[1]}}[structure]
    model.fit(x, ANNOTATIONS, validation_split=0.25, epochs=1, verbose=0)
    assert model.posteriors(x, ANNOTATIONS).shape == (N, K)
    assert model.predict(x, verbose=0).shape == (N, K)


# === Shapes ===


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, :4], r"x has the shape \[40, 4\], the model takes \[None, 5\]"),
        (X[:, 0], r"\[40\], the model takes \[None, 5\]"),
        (X[:, None, None], r"\[40, 1, 1, 5\], the model takes \[None, 5\]"),
        (np.array(["a"] * N), r"\[40\], the model takes \[None, 5\]"),
        ([X, X], r"\[40, 5\], \[40, 5\], the model takes \[None, 5\]"),
    ],
)
def test_instances_of_another_shape_are_named_before_a_graph_is_made(x, message):
    model = a_model()
    for ask in (
        lambda: model.fit(x, DENSE, verbose=0),
        lambda: model.fit(X, DENSE, validation_data=(x, GOLD), verbose=0),
        lambda: model.evaluate(x, DENSE, verbose=0),
        lambda: model.evaluate(x, GOLD, verbose=0),
        lambda: model.posteriors(x, DENSE),
        lambda: model.predict(x, verbose=0),
        lambda: a_model_alone().fit(x, GOLD, verbose=0),
    ):
        with pytest.raises(DataError, match=message):
            ask()


def test_a_single_instance_and_a_list_of_rows_are_refused_with_what_to_write():
    model = a_model()
    with pytest.raises(DataError, match=r"single instance write x\[None\]"):
        model.predict(X[0], verbose=0)
    assert model.predict(X[0][None], verbose=0).shape == (1, K)
    with pytest.raises(DataError, match=r"list of rows write np\.array\(x\)"):
        model.fit(X.tolist(), DENSE)
    model.fit(np.array(X.tolist()), DENSE, verbose=0)


def test_a_base_that_takes_several_sizes_still_does():
    layers = [keras.layers.Conv1D(2, 2), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(K, "softmax")]
    model = CrowdModel(keras.Sequential(layers), CrowdsourcedLayer(R))
    model.compile(run_eagerly=True)
    model.fit(X[..., None], DENSE, verbose=0)
    assert model.predict(X[:, :3, None], verbose=0).shape == (N, K)
    with pytest.raises(DataError, match=r"\[40, 5, 2\], the model takes \[None, 5, 1\]"):
        model.predict(np.stack([X, X], axis=2), verbose=0)
