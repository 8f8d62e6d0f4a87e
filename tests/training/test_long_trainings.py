"""Precision, XLA, accumulated gradients, several devices and early stopping: what they change, and what they refuse."""

import dataclasses
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from small_trainings import ARGUMENTS, K, learned_from
from two_devices import halve_the_cpu, in_a_process_with_two_devices

from crowdzoo.aggregation import MajorityVote
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel, TaggerSettings, TrainingSettings
from crowdzoo.training.held_out_annotations import held_out_tasks, log_likelihoods, scores
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import methods_of

BACKEND = keras.backend.backend()
N = 120
X, _, LABELS, RATINGS = learned_from(N)
METHODS = [(method, kind) for kind in ("classification", "regression") for method in methods_of(kind)]
# one of each sort of recipe in `make test`
FAST = ("crowdsourced-layer",)


def each_method(*left_out):
    return pytest.mark.parametrize(
        ("method", "kind"),
        [
            pytest.param(*each, marks=() if each[0] in FAST and each[1] == "classification" else pytest.mark.slow)
            for each in METHODS
            if each[0] not in left_out
        ],
    )


def trained(method="crowdsourced-layer", kind="classification", **given):
    settings = TrainingSettings(
        kind=kind, method=method, hidden=(8,),
        **{"epochs": 4, "batch_size": 30, "learning_rate": 0.02, "dropout": 0.0, "seed": 3,
           "arguments": ARGUMENTS.get(method, {}), **given},
    )  # fmt: skip
    if method != "aggregated":
        learned = {"annotations": LABELS if kind == "classification" else RATINGS}
    elif kind == "classification":
        learned = {"label_distribution": MajorityVote().fit(LABELS).posteriors}
    else:
        learned = {"ratings": X[:, 0].astype("float64")}
    return train(settings, X, **learned)[0]


# === Precision ===


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("precision", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)])
@each_method()
def test_every_method_learns_in_mixed_precision_what_it_learns_in_float32(method, kind, precision):
    before = keras.config.dtype_policy().name
    whole, mixed = (trained(method, kind, precision=each) for each in ("float32", precision))
    assert keras.config.dtype_policy().name == before
    assert mixed.base.get_layer("hidden_0").compute_dtype == precision.removeprefix("mixed_")
    assert {weight.dtype for weight in mixed.trainable_weights} == {"float32"}
    if mixed.crowd is not None:
        assert {layer.compute_dtype for layer in mixed.crowd._flatten_layers()} <= {"float32", precision.split("_")[1]}
    answers = [model.predict(X, verbose=0) for model in (whole, mixed)]
    assert np.isfinite(answers[1]).all()
    # bfloat16 has 8 bits: the same training, but for its rounding
    np.testing.assert_allclose(answers[1], answers[0], atol=0.15 * answers[0].std() + 0.1)
    for values in mixed.history.history.values():
        assert np.isfinite(values).all()


# === XLA ===


@pytest.mark.slow
@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch has no XLA here")
@each_method()
def test_every_method_learns_the_same_with_xla(method, kind, xla):
    plain, compiled = (trained(method, kind, jit_compile=each) for each in (False, True))
    assert (plain.jit_compile, compiled.jit_compile) == (False, True)
    for one, two in zip(plain.get_weights(), compiled.get_weights(), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-2, atol=2e-3)


# === Accumulated gradients ===


@pytest.mark.slow
@each_method()
def test_gradients_of_two_half_batches_make_the_step_of_the_whole_one(method, kind):
    both = trained(method, kind, gradient_accumulation_steps=2, batch_size=30)
    assert int(both.optimizer.gradient_accumulation_steps) == 2
    steps = int(keras.ops.convert_to_numpy(both.optimizer.iterations))
    once = trained(method, kind, batch_size=30)
    assert steps == int(keras.ops.convert_to_numpy(once.optimizer.iterations)) // 2
    assert np.isfinite(both.predict(X, verbose=0)).all()
    assert both.history.history["loss"][-1] < both.history.history["loss"][0] * 1.02


# === Several devices ===


def gone_on(folder, epochs=4, **given):
    """A training that is interrupted in its third epoch and goes on, and the same training in one piece."""

    def stop(epoch, logs):
        if epoch == 2:
            raise KeyboardInterrupt

    def fit(*callbacks, **more):
        settings = TrainingSettings(
            hidden=(8,), epochs=epochs, batch_size=30, learning_rate=0.02, dropout=0.3, seed=3, **given
        )
        return train(settings, X, annotations=LABELS, callbacks=callbacks, **more)[0]

    with pytest.raises(KeyboardInterrupt):
        fit(keras.callbacks.LambdaCallback(on_epoch_begin=stop), checkpoint=folder)
    again = []
    noted = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: again.append(epoch))
    resumed = fit(noted, checkpoint=folder)
    assert again == [2, 3], "or it began from the start"
    return resumed, fit()


def check_gone_on(resumed, whole):
    for one, two in zip(resumed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert resumed.history.history["loss"] == whole.history.history["loss"]
    for one, two in zip(resumed.optimizer.variables, whole.optimizer.variables, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(two))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_a_killed_training_in_mixed_precision_goes_on_to_the_same_weights(precision, tmp_path):
    check_gone_on(*gone_on(tmp_path / "checkpoint", precision=precision))


def go_on_on_two(path):
    """In a process that has two devices: trainings that are interrupted and go on."""
    halve_the_cpu()
    for number, precision in enumerate([None, "mixed_bfloat16", "mixed_float16"]):
        try:
            check_gone_on(*gone_on(Path(path) / str(number), devices=2, precision=precision))
        except AssertionError as error:
            raise AssertionError(f"{precision}: {error}") from error


@pytest.mark.slow
@pytest.mark.skipif(BACKEND == "torch", reason="Keras has no data-parallel training on PyTorch")
def test_a_killed_training_on_two_devices_goes_on_to_the_same_weights_in_every_precision(tmp_path):
    in_a_process_with_two_devices(__file__, "go-on", str(tmp_path))


def train_one_after_the_other():
    """In a process that has two devices, with the sums that GPUs have: trainings of other shapes, each its own call."""
    import tensorflow as tf

    halve_the_cpu()
    tf.distribute.ReductionToOneDevice = lambda: None
    for method in ("crowdsourced-layer", "deep-em"):
        trained(method, devices=2)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        base = keras.Sequential([keras.Input((X.shape[1],)), keras.layers.Dense(LABELS.num_classes, "softmax")])
        with pytest.raises(ConfigError, match=r"make one tf\.distribute\.MirroredStrategy"):
            CrowdModel(base, CrowdsourcedLayer(LABELS.num_annotators)).fit(X, LABELS, tasks=LABELS.tasks, verbose=0)


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "tensorflow", reason="strategies are TensorFlow's")
def test_trainings_on_two_devices_share_a_strategy_and_a_second_one_is_refused():
    in_a_process_with_two_devices(__file__, "one-after-the-other")


# === Early stopping ===


@pytest.mark.slow
@each_method("aggregated", *(method for method in methods_of("regression") if method == "rating-em"))
def test_a_training_stops_when_held_out_annotations_are_not_predicted_better(method, kind):
    if kind == "regression":
        with pytest.raises(ConfigError, match=r"patience holds out annotations of classes.*EarlyStopping"):
            trained(method, kind, patience=2)
        return
    model = trained(method, patience=2, epochs=60, learning_rate=0.1)
    likelihood = model.history.history["held_out_log_likelihood"]
    best = int(np.argmax(likelihood))
    assert best + 3 == len(likelihood) < 60
    # the weights are those of the best epoch
    held = held_out_tasks(np.ones(N, bool), 3)
    found = scores(model.predict(X[held], verbose=0), log_likelihoods(LABELS)[held]).sum()
    assert found / (3 * held.sum()) == pytest.approx(likelihood[best], rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_held_out_annotations_are_not_learned_from():
    held = held_out_tasks(np.ones(N, bool), 3)
    assert held.sum() == N // 10
    hidden = held[LABELS.task_ids]
    labels = LABELS.labels.copy()
    labels[hidden] = (labels[hidden] + 1) % K  # other answers on held-out tasks only
    other = dataclasses.replace(LABELS, labels=labels)
    settings = TrainingSettings(hidden=(8,), epochs=2, batch_size=60, patience=50, dropout=0.0, seed=3)
    one, two = (train(settings, X, annotations=each)[0] for each in (LABELS, other))
    assert one.history.history["loss"] == two.history.history["loss"]
    assert one.history.history["held_out_log_likelihood"] != two.history.history["held_out_log_likelihood"]


def test_what_cannot_stop_early_says_what_to_write():
    with pytest.raises(ConfigError, match=r"method aggregated does not use them\. Set epochs"):
        TrainingSettings(method="aggregated", patience=3)
    with pytest.raises(ConfigError, match="labels of another kind"):
        TaggerSettings(patience=3)
    few = LABELS.select_rows(LABELS.task_ids < 19)
    with pytest.raises(DataError, match="19 are too few for that"):
        train(TrainingSettings(patience=3), X, annotations=few)
    with pytest.raises(ConfigError, match="gradient_accumulation_steps=1, or devices=1"):
        TrainingSettings(devices=2, gradient_accumulation_steps=2)
    with pytest.raises(ConfigError, match="unknown precision"):
        TrainingSettings(precision="float16")


if __name__ == "__main__":
    {"go-on": go_on_on_two, "one-after-the-other": train_one_after_the_other}[sys.argv[1]](*sys.argv[2:])
