import keras
import numpy as np
import pytest
from keras import ops
from own_bases import OwnBase
from slow_cases import quick

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers import CoNAL, CrowdLayer, CrowdsourcedLayer, LayerTraits
from crowdzoo.losses import MaskedCrowdCrossentropy, MaskedCrowdMeanSquaredError
from crowdzoo.models import CrowdModel, FeatureClassifier

N, D, K, R, T = 256, 6, 3, 8, 4


def a_crowd(kind="classification", seed=0):
    """Features, truth and annotations; annotator 0 always slips to the next class, annotator 7 says nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, T, D) if kind == "sequence" else (N, D)).astype("float32")
    truth = x[..., :K].argmax(axis=-1) if kind != "regression" else x[:, 0] - x[:, 1]
    tokens = (T,) if kind == "sequence" else ()
    dense = np.full((N, *tokens, R), np.nan if kind == "regression" else -1)
    for i in range(N):
        for r in rng.permutation(R - 1)[:3]:
            if kind == "regression":
                dense[i, r] = truth[i] + (r - 3) / 2 + rng.normal() / 10
            elif r == 0:
                dense[i, ..., r] = (truth[i] + 1) % K
            else:
                slips = rng.random(tokens) < 0.15
                dense[i, ..., r] = np.where(slips, rng.integers(K, size=tokens), truth[i])
    dense = dense if kind == "regression" else dense.astype("int64")
    classes = None if kind == "regression" else np.arange(K)
    return x, truth, Annotations.from_dense(dense, kind=kind, classes=classes)


def a_model(kind="classification", connection=None, seed=0, dropout=0.0):
    keras.utils.set_random_seed(seed)
    if kind == "classification":
        base = FeatureClassifier(D, K, hidden=(16,), dropout=dropout)
    elif kind == "sequence":
        base = keras.Sequential([keras.Input((T, D)), keras.layers.Dense(K, activation="softmax")])
    else:
        base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(1)])
    model = CrowdModel(base, CrowdsourcedLayer(R, connection or ("B" if kind == "regression" else "MW"), kind))
    model.compile(keras.optimizers.Adam(0.02))
    return model


@pytest.mark.parametrize("kind", quick("classification", slow=["sequence", "regression"]))
@pytest.mark.usefixtures("eager")
def test_padded_arrays_train_like_their_annotations(kind):
    x, _, annotations = a_crowd(kind)
    ids, labels = annotations.padded()
    losses = a_model(kind).fit(x, annotations, epochs=1, batch_size=128, verbose=0).history["loss"]
    padded = {"instances": x, "annotators": ids}
    np.testing.assert_allclose(
        a_model(kind).fit(padded, labels, epochs=1, batch_size=128, verbose=0).history["loss"], losses, rtol=1e-5
    )


def test_calling_with_annotators_gives_their_answers():
    x, _, annotations = a_crowd()
    model = a_model()
    ids = annotations.padded()[0].astype("int32")
    answers = model({"instances": x, "annotators": ids})
    assert tuple(answers.shape) == (N, 3, K)
    p = ops.convert_to_numpy(model(x))
    # the kernels are as they start: everybody says what the base says, with P(right) .65
    factor = max(1, np.log(0.65 / 0.35 * (K - 1)))
    np.testing.assert_allclose(ops.convert_to_numpy(answers), np.repeat(factor * p[:, None], 3, axis=1), rtol=1e-5)
    one = model({"instances": x[:1], "annotators": ids[:1]})
    assert tuple(one.shape) == (1, 3, K)


@pytest.mark.parametrize("kind", quick("regression", slow=["sequence"]))
@pytest.mark.usefixtures("eager")
def test_a_saved_model_is_the_same_model(kind, tmp_path):
    x, _, annotations = a_crowd(kind)
    model = a_model(kind)
    model.fit(x, annotations, epochs=1, batch_size=128, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, CrowdModel)
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    if kind == "regression":
        np.testing.assert_array_equal(loaded.annotator_biases(), model.annotator_biases())
    else:
        np.testing.assert_array_equal(loaded.annotator_confusions(), model.annotator_confusions())
    assert loaded.evaluate(x, annotations, verbose=0) == pytest.approx(model.evaluate(x, annotations, verbose=0))
    # training goes on where it stood: Adam's moments came along
    more, same = (m.fit(x, annotations, epochs=1, batch_size=128, verbose=0).history["loss"] for m in (loaded, model))
    np.testing.assert_allclose(more, same, rtol=1e-5)


class BuildingBase(OwnBase):
    """One that builds itself, as Keras advises, and so was never called symbolically when it is loaded."""

    def build(self, input_shape):
        self.dense.build(input_shape)
        self.built = True


@pytest.mark.parametrize(
    "make", quick(OwnBase, slow=[BuildingBase, lambda: keras.Sequential([keras.layers.Dense(K, "softmax")])])
)
@pytest.mark.usefixtures("eager")
def test_a_base_without_weights_yet_is_built_by_the_first_data_and_saved(make, tmp_path):
    x, _, annotations = a_crowd()
    model = CrowdModel(make(), CrowdsourcedLayer(R))
    model.fit(x, annotations, epochs=1, batch_size=128, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(
        tmp_path / "model.keras", custom_objects={"OwnBase": OwnBase, "BuildingBase": BuildingBase}
    )
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    np.testing.assert_array_equal(loaded.annotator_confusions(), model.annotator_confusions())
    # Adam's moments come along only where the loaded model is built at once
    for one, other in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_compile_chooses_the_right_loss():
    def loss_of(model):
        model.compile()
        assert isinstance(model.optimizer, keras.optimizers.Adam)
        return model.loss

    assert isinstance(loss_of(a_model()), MaskedCrowdCrossentropy)
    assert isinstance(loss_of(a_model("sequence")), MaskedCrowdCrossentropy)
    assert isinstance(loss_of(a_model("regression")), MaskedCrowdMeanSquaredError)
    assert isinstance(loss_of(CrowdModel(FeatureClassifier(D, K))), keras.losses.CategoricalCrossentropy)
    one_output = keras.Sequential([keras.Input((D,)), keras.layers.Dense(1)])
    assert isinstance(loss_of(CrowdModel(one_output)), keras.losses.MeanSquaredError)


@pytest.mark.parametrize(
    ("row", "message"),
    quick(
        ([0, 0, 0], r"row 2 of the targets, 0\.0, 0\.0, 0\.0, .* its sum is 0 \(1 of 8 rows\).* leave out rows of z"),
        ([np.nan, 0, 0], "row 2 .* its sum is nan"),
        slow=[([2, 1, 0], "row 2 .* its sum is 3"), ([1.5, -0.5, 0], "row 2 .* is not a distribution")],
    ),
)
@pytest.mark.usefixtures("eager")
def test_targets_that_are_no_distributions_are_refused(row, message):
    """Keras' gradient on TensorFlow is wrong for them: a row of zeros, whose loss is 0, moves the weights."""
    model = CrowdModel(FeatureClassifier(D, K, hidden=(4,)))
    model.compile(keras.optimizers.Adam(0.01))
    x, targets = np.ones((8, D), "float32"), np.tile(np.eye(K, dtype="float32")[0], (8, 1))
    model.fit(x, targets, verbose=0)
    targets[2] = row
    with pytest.raises(DataError, match=message):
        model.fit(x, targets, verbose=0)
    with pytest.raises(DataError, match=message):
        model.fit(x[:2], targets[:2], validation_data=(x, targets), verbose=0)


def test_data_that_do_not_fit_are_refused():
    x, _, annotations = a_crowd()
    model = a_model()
    with pytest.raises(DataError, match="x has 255 rows, the annotations are of 256 tasks"):
        model.fit(x[1:], annotations)
    with pytest.raises(DataError, match="x has 255 rows, the labels have 256"):
        model.fit(x[1:], annotations.to_dense())
    with pytest.raises(DataError, match="the annotations are of kind regression"):
        model.fit(x, a_crowd("regression")[2])
    more_annotators = np.full((N, R + 1), -1)
    more_annotators[0, R] = 0
    with pytest.raises(DataError, match="the crowd layer has 8 annotators, the annotations have 9"):
        model.fit(x, more_annotators)
    more_classes = np.full((N, R), -1)
    more_classes[5, 0] = K
    with pytest.raises(DataError, match=r"class codes 0 to 2 \(3 classes .* codes 3 to 3"):
        model.fit(x, more_classes)
    with pytest.raises(DataError, match="no annotations to learn from"):
        model.fit(x, Annotations.from_dense(np.full((N, R), -1), classes=np.arange(K)))
    with pytest.raises(DataError, match="position 3, but the instances have 2 tokens"):
        a_model("sequence").fit(a_crowd("sequence")[0][:, :2], a_crowd("sequence")[2])


@keras.saving.register_keras_serializable(package="tests")
class Watcher(CrowdLayer):
    """Adds to the bottleneck what it sees of the features, so that a test can read it."""

    traits = LayerTraits(uses_features=True)

    def build(self, inputs_shape, features_shape):
        self._num_classes = inputs_shape[-1]
        self.kernel = self.add_weight(shape=(features_shape[-1],), initializer="ones", name="kernel")
        super().build(inputs_shape)

    def call(self, inputs, annotators=None, features=None):
        seen = ops.sum(features * self.kernel, axis=-1)
        return inputs[:, None] + seen[:, None, None] + 0.0 * ops.cast(annotators, "float32")[..., None]


def two_layers():
    base = keras.Sequential(
        [keras.Input((T, D)), keras.layers.Dense(2, name="seen"), keras.layers.Flatten(), keras.layers.Dense(K)]
    )
    base.get_layer("seen").set_weights([np.ones((D, 2)), np.zeros(2)])
    return base


@pytest.mark.parametrize("features", ["seen", None])
def test_a_layer_that_looks_at_instances_gets_the_features_named(features, tmp_path):
    x = np.random.default_rng(0).normal(size=(5, T, D)).astype("float32")
    ids = np.array([[0, 1]] * 5, dtype="int32")
    model = CrowdModel(two_layers(), Watcher(R), features=features)
    answers = ops.convert_to_numpy(model({"instances": x, "annotators": ids}))
    seen = 2 * x.sum(axis=(1, 2)) if features else x.sum(axis=(1, 2))  # two units of the layer, each a sum
    bottleneck = ops.convert_to_numpy(model(x))
    np.testing.assert_allclose(answers, np.repeat((bottleneck + seen[:, None])[:, None], 2, axis=1), rtol=1e-4)
    # the base is counted once, and comes back with the features from the same place
    assert len(model.weights) == len(model.base.weights) + 1
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.features == features
    np.testing.assert_array_equal(ops.convert_to_numpy(loaded({"instances": x, "annotators": ids})), answers)


def test_log_confusions_are_those_of_the_task_where_the_layer_looks_at_it():
    rng = np.random.default_rng(0)
    x, ids = rng.normal(size=(6, T, D)).astype("float32"), rng.integers(0, R, (6, 2)).astype("int32")
    plain = CrowdModel(two_layers(), CrowdsourcedLayer(R))
    logs = plain.log_confusions(x, ids)
    np.testing.assert_allclose(np.exp(logs), plain.annotator_confusions()[ids], rtol=1e-5)
    with pytest.raises(ValueError, match="CrowdsourcedLayer does not use features of the instances"):
        plain.features_of(x)
    looking = CrowdModel(two_layers(), CoNAL(R), features="seen")
    looking.crowd.set_weights([rng.normal(size=weight.shape) for weight in looking.crowd.get_weights()])
    logs = looking.log_confusions(x, ids)
    assert logs.shape == (6, 2, K, K)
    np.testing.assert_allclose(np.exp(logs).sum(axis=-1), 1, rtol=1e-5)
    alone = looking.log_confusions(x[3:4], ids[3:4])
    np.testing.assert_allclose(alone, logs[3:4], rtol=1e-4, atol=1e-5)
    elsewhere = looking.log_confusions(x[4:5], ids[3:4])
    assert np.abs(elsewhere - alone).max() > 1e-3
