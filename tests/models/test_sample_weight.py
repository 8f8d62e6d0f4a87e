"""One weight per task: as often as a task counts, and nothing else."""

from dataclasses import replace

import keras
import numpy as np
import pytest

from crowdzoo import layers
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.models import CrowdModel

N, D, K, R, T = 12, 5, 3, 4, 3
RNG = np.random.default_rng(0)
GOLD = RNG.integers(K, size=N)
X = (RNG.normal(size=(N, D)) + GOLD[:, None]).astype("float32")
# three labels per task, so that tasks count alike in every mean
LEFT_OUT = np.arange(R) == np.arange(N)[:, None] % R
LABELS = np.where(LEFT_OUT, -1, np.where(RNG.random((N, R)) < 0.3, RNG.integers(K, size=(N, R)), GOLD[:, None]))
# the mean is 1: the labels are as many when tasks are repeated, and so are means over them
WEIGHTS = np.array([0, 1, 2, 1, 3, 0, 1, 0, 1, 1, 0, 2])
REPEATED = np.repeat(np.arange(N), WEIGHTS)

TAGS = np.repeat(LABELS[:, None], T, axis=1)
TAGS[:, 1] = np.where(TAGS[:, 1] >= 0, (TAGS[:, 1] + 1) % K, -1)
RATINGS = np.where(LEFT_OUT, np.nan, GOLD[:, None] + RNG.normal(0, 0.3, (N, R)))
MASKS = np.repeat(TAGS[:, :, None], 2, axis=2)  # [N, T, 2, R]

# what instances are like on average, and how many labels the ridge is spread over
NOT_TRAINED = ("mean_instance", "counts")

OF_CLASSES = {
    "ConfusionMatrices": lambda: layers.ConfusionMatrices(R, majority_epochs=1),
    "CrowdsourcedLayer": lambda: layers.CrowdsourcedLayer(R),
    "GeoCrowdNet": lambda: layers.GeoCrowdNet(R, "W", 0.1),
    "TraceRegularization": lambda: layers.TraceRegularization(R),
    "PooledConfusions": lambda: layers.PooledConfusions(R),
    "UnionNet": lambda: layers.UnionNet(R),
    "CoNAL": lambda: layers.CoNAL(R),
    "DeepEM": lambda: layers.DeepEM(R),
    "DoctorNet": lambda: layers.DoctorNet(R, K, weight_epochs=1),
    "LIA": lambda: layers.LIA(R, epochs_per_round=1, marginal_epochs=1),
}
OTHERS = {
    "sequence": (lambda: layers.DeepEM(R, kind="sequence"), np.repeat(X[:, None], T, axis=1), TAGS, K),
    "tags": (lambda: layers.CrowdsourcedLayer(R, kind="sequence"), np.repeat(X[:, None], T, axis=1), TAGS, K),
    "masks": (
        lambda: layers.DeepEM(R, kind="segmentation"), np.tile(X[:, None, None], (1, T, 2, 1)), MASKS, K,
    ),
    "ratings": (lambda: layers.RatingEM(R), X, RATINGS, 1),
    "biases": (lambda: layers.CrowdsourcedLayer(R, "B", "regression", anchor=True), X, RATINGS, 1),
}  # fmt: skip


def trained(make, x, y, outputs=K, epochs=3, **arguments):
    keras.utils.set_random_seed(0)
    crowd = make()
    activation = None if outputs == 1 or crowd.traits.needs_hidden_layer else "softmax"
    model = CrowdModel(
        keras.Sequential(
            [keras.Input(x.shape[1:] if hasattr(x, "shape") else (D,)), keras.layers.Dense(outputs, activation)]
        ),
        crowd,
    )
    model.compile(keras.optimizers.SGD(0.3))
    arguments = {"batch_size": 4 * N, "verbose": 0, **arguments}
    history = model.fit(x, y, epochs=epochs, **arguments).history
    return model, history


def check_same(one, two):
    (model, history), (same, expected) = one, two
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-4)
    for weight, wanted in zip(model.weights, same.weights, strict=True):
        if weight.path.endswith(NOT_TRAINED):
            continue
        found = keras.ops.convert_to_numpy(weight)
        np.testing.assert_allclose(found, keras.ops.convert_to_numpy(wanted), rtol=2e-3, atol=3e-4, err_msg=weight.path)


def check_repetition(make, x, y, outputs=K):
    weighted = trained(make, x, y, outputs, sample_weight=WEIGHTS)
    check_same(weighted, trained(make, x[REPEATED], y[REPEATED], outputs))
    plain = trained(make, x, y, outputs)
    assert not np.allclose(weighted[0].base.get_weights()[0], plain[0].base.get_weights()[0], atol=1e-3)


@pytest.mark.parametrize("name", ["ConfusionMatrices", "DeepEM"])
def test_a_weight_of_two_is_the_task_twice_and_a_weight_of_zero_leaves_it_out(name):
    check_repetition(OF_CLASSES[name], X, LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OF_CLASSES if name not in ("ConfusionMatrices", "DeepEM")])
def test_the_same_of_every_other_method_of_classes(name):
    check_repetition(OF_CLASSES[name], X, LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_same_of_tags_of_masks_and_of_ratings(name):
    check_repetition(*OTHERS[name])


@pytest.mark.slow
def test_confidence_is_weighed_as_labels_are():
    def table(y):
        dense = Annotations.from_dense(y, classes=np.arange(K))
        return replace(dense, confidence=np.where(dense.labels == 0, 0.6, 0.9))

    def make():
        return layers.DeepEM(R, confidence=True)

    weighted = trained(make, X, table(LABELS), sample_weight=WEIGHTS)
    check_same(weighted, trained(make, X[REPEATED], table(LABELS[REPEATED])))


@pytest.mark.slow
def test_copies_of_cross_fitted_em_learn_by_the_weights():
    """Repeated tasks would fall into several folds, so a weight of 0 is what can be compared."""
    zero_one = np.minimum(WEIGHTS, 1)
    wrong = np.where((zero_one == 0)[:, None] & (LABELS >= 0), (LABELS + 1) % K, LABELS)

    def make():
        return layers.CrossFittedEM(R, folds=2)

    check_same(*(trained(make, X, y, sample_weight=zero_one) for y in (LABELS, wrong)))


# === Arrays, tables and batches ===


def test_batches_of_ones_own_and_arrays_weigh_alike():
    tf = pytest.importorskip("tensorflow")
    weights = np.linspace(0.1, 2, N).astype("float32")
    make = OF_CLASSES["CrowdsourcedLayer"]
    order = {"shuffle": False, "batch_size": 5}
    arrays = trained(make, X, LABELS, sample_weight=weights, **order)
    dense = tf.data.Dataset.from_tensor_slices((X, LABELS, weights)).batch(5)
    check_same(trained(make, dense, None), arrays)
    ids, labels = Annotations.from_dense(LABELS, classes=np.arange(K)).padded()
    sparse = {"instances": X, "annotators": ids}
    check_same(trained(make, tf.data.Dataset.from_tensor_slices((sparse, labels, weights)).batch(5), None), arrays)
    check_same(trained(make, sparse, labels, sample_weight=weights, **order), arrays)


def test_weights_are_in_the_order_of_the_rows_of_x_not_of_the_table():
    order = RNG.permutation(N)
    annotations = Annotations.from_dense(LABELS, classes=np.arange(K), tasks=[f"t{i}" for i in range(N)])
    make = OF_CLASSES["ConfusionMatrices"]
    ids = annotations.tasks[order]
    found = trained(make, X[order], annotations, tasks=ids, sample_weight=WEIGHTS[order])
    check_same(found, trained(make, X, LABELS, sample_weight=WEIGHTS))


@pytest.mark.parametrize("name", ["ConfusionMatrices", "DeepEM"])
def test_validation_and_evaluation_weigh_the_labels_costs(name):
    held = slice(8, None)  # tasks 8 to 11, of weights 1, 1, 0 and 2
    validation = (X[held], LABELS[held], WEIGHTS[held])
    model, history = trained(OF_CLASSES[name], X[:8], LABELS[:8], sample_weight=WEIGHTS[:8], validation_data=validation)
    answers = model({"instances": X[held], "annotators": np.tile(np.arange(R), (4, 1))})
    logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(answers, axis=-1))
    there = LABELS[held] >= 0
    costs = -np.take_along_axis(logs, np.maximum(LABELS[held], 0)[..., None], axis=-1)[..., 0] * there
    expected = (costs * WEIGHTS[held][:, None]).sum() / there.sum()
    assert history["val_loss"][-1] == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(*validation[:2], sample_weight=WEIGHTS[held], verbose=0) == pytest.approx(expected, rel=1e-5)
    _, split = trained(OF_CLASSES[name], X, LABELS, sample_weight=WEIGHTS, validation_split=1 / 3)
    assert split == {key: pytest.approx(values) for key, values in history.items()}


# === What is refused ===


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N - 1), r"one number per row of x, shape \(12,\), got float64 of shape \(11,\)"),
        (np.ones((N, R)), r"one number per row of x, shape \(12,\), got float64 of shape \(12, 4\)"),
        (np.full(N, "1"), "one number per row of x"),
        (np.where(np.arange(N) == 7, -0.5, 1), r"sample_weight\[7\] is -0.5: weights must be finite, and 0 or more"),
        (np.where(np.arange(N) == 3, np.nan, 1), r"sample_weight\[3\] is nan"),
        (np.where(np.arange(N) == 3, np.inf, 1), r"sample_weight\[3\] is inf"),
        (np.zeros(N), "is 0 for every labelled row, so there is nothing to learn from"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, message):
    model, _ = trained(OF_CLASSES["CrowdsourcedLayer"], X, LABELS, epochs=1)
    with pytest.raises(DataError, match=message):
        model.fit(X, LABELS, sample_weight=weights)
    with pytest.raises(DataError, match=message):
        model.evaluate(X, LABELS, sample_weight=weights)


def test_weights_of_unlabelled_tasks_alone_are_refused():
    labels = np.where(np.arange(N)[:, None] < 6, LABELS, -1)
    with pytest.raises(DataError, match="is 0 for every labelled row"):
        trained(OF_CLASSES["DeepEM"], X, labels, sample_weight=np.arange(N) >= 6)


@pytest.mark.parametrize("layer", [layers.MaxMIG, layers.WAUM])
def test_a_method_that_compares_tasks_says_what_to_write(layer):
    annotations = Annotations.from_dense(LABELS, classes=np.arange(K))
    message = rf"sample_weight is not for {layer.__name__}.*select_tasks\(kept\), tasks=ids\), or use another layer"
    with pytest.raises(ConfigError, match=message):
        trained(lambda: layer(R), X, annotations, sample_weight=WEIGHTS)
    kept = WEIGHTS > 0
    trained(lambda: layers.MaxMIG(R), X, annotations.select_tasks(kept), tasks=np.arange(N), epochs=1)


def test_weights_beside_batches_of_ones_own_are_refused():
    tf = pytest.importorskip("tensorflow")
    batches = tf.data.Dataset.from_tensor_slices((X, LABELS)).batch(5)
    with pytest.raises(ConfigError, match=r"Put the weights into your own batches: \(x, y, weights\)"):
        trained(OF_CLASSES["CrowdsourcedLayer"], batches, None, sample_weight=WEIGHTS)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path):
    make = OF_CLASSES["DeepEM"]
    first = trained(make, X, LABELS, sample_weight=WEIGHTS, checkpoint=tmp_path)
    check_same(trained(make, X, LABELS, sample_weight=WEIGHTS, checkpoint=tmp_path), first)
    for other in (None, WEIGHTS + 1):
        with pytest.raises(ConfigError, match="holds the checkpoint of another training: sample_weight is"):
            trained(make, X, LABELS, sample_weight=other, checkpoint=tmp_path)
