"""Every deep method goes through the same doors: fit, predict, ask annotators, save, and the same again by its seed."""

import functools
from dataclasses import replace

import keras
import numpy as np
import pytest
from drawn_crowds import simulate_annotations

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError
from crowdzoo.models import METHODS, ArrayData, TrainingSettings
from crowdzoo.training.bases import Sizes
from crowdzoo.training.instance_training import build_model, train
from crowdzoo.training.methods import check_method, create_crowd_layer, crowd_layer_class

N, D, K, R = 240, 4, 3, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)).astype("float32")
TRUTH = X[:, :K].argmax(axis=1)
# four good annotators, and one who calls every 0 a 1
CONFUSIONS = np.stack([np.full((K, K), 0.1) + 0.7 * np.eye(K)] * R)
CONFUSIONS[4, 0] = [0.05, 0.9, 0.05]
ANNOTATIONS = simulate_annotations(TRUTH, CONFUSIONS, redundancy=3, seed=1)
LEARNING = [method for method in METHODS if method != "aggregated"]
# small and quick, where a method's own defaults are made for more data
SMALL = {"lia": {"hidden": [8]}}

# in `make test` one method; the others have their own files in tests/layers there
each_method = pytest.mark.parametrize(
    "method",
    [name if name == "crowdsourced-layer" else pytest.param(name, marks=pytest.mark.slow) for name in LEARNING],
)


def settings(method):
    return TrainingSettings(
        method=method, arguments=SMALL.get(method, {}), hidden=(16,), dropout=0.1, epochs=20, batch_size=64,
        learning_rate=0.02, seed=0,
    )  # fmt: skip


@functools.cache
def trained(method):
    """A trained model; tests must not train it further."""
    return train(settings(method), X, annotations=ANNOTATIONS)[0]


def answers(model):
    everybody = np.tile(np.arange(R, dtype="int32"), (N, 1))
    logits = np.float64(keras.ops.convert_to_numpy(model({"instances": X, "annotators": everybody})))
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@pytest.mark.slow
@each_method
def test_the_truth_is_learnt_and_annotators_are_told_apart(method):
    model = trained(method)
    estimate = model.predict(X, verbose=0)
    np.testing.assert_allclose(estimate.sum(axis=1), 1, rtol=1e-5)
    assert (estimate.argmax(axis=1) == TRUTH).mean() > 0.85
    said = answers(model)
    assert said.shape == (N, R, K)
    # on tasks of class 0 the fifth annotator is the one who says 1
    wrong = said[TRUTH == 0, :, 1].mean(axis=0)
    assert wrong[4] > wrong[:4].max()


@each_method
def test_confusions_and_posteriors_are_distributions_where_a_method_has_them(method):
    model = trained(method)
    if model.crowd.traits.needs_hidden_layer:
        with pytest.raises(ValueError, match="DoctorNet"):
            model.annotator_confusions()
        return
    confusions = model.annotator_confusions()
    assert confusions.shape == (R, K, K)
    np.testing.assert_allclose(confusions.sum(axis=-1), 1, rtol=1e-6)
    # who calls every 0 a 1, and nobody else
    assert confusions[4, 0, 1] > confusions[4, 0, 0]
    assert (confusions[:4, 0, 0] > confusions[:4, 0, 1]).all()
    posteriors = model.posteriors(X, ANNOTATIONS)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, rtol=1e-5)
    assert (posteriors.argmax(axis=1) == TRUTH).mean() > 0.85


@pytest.mark.slow
@each_method
def test_two_runs_with_one_seed_agree_exactly_and_a_saved_model_is_the_same_and_trains_on(method, tmp_path):
    one, chosen = trained(method), settings(method)
    keras.utils.set_random_seed(chosen.seed)
    two = build_model(chosen, Sizes(R, K, num_features=D))
    two.base.adapt(X)
    two.fit(ArrayData(X, ANNOTATIONS), epochs=chosen.epochs, batch_size=64, seed=0, verbose=0)
    two.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.crowd.get_config() == two.crowd.get_config() == one.crowd.get_config()
    for model in (two, loaded):
        for left, right in zip(one.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), one.predict(X, verbose=0))
    np.testing.assert_array_equal(answers(loaded), answers(one))
    if not one.crowd.traits.needs_hidden_layer:
        np.testing.assert_array_equal(loaded.annotator_confusions(), one.annotator_confusions())
        np.testing.assert_array_equal(loaded.posteriors(X, ANNOTATIONS), one.posteriors(X, ANNOTATIONS))
    assert [weight.trainable for weight in loaded.weights] == [weight.trainable for weight in one.weights]
    # dropout differs from here on, so the losses are only alike
    more, same = (
        each.fit(X, ANNOTATIONS, epochs=1, batch_size=64, seed=1, verbose=0).history["loss"] for each in (loaded, two)
    )
    assert more == pytest.approx(same, rel=0.2)


@pytest.mark.slow
@each_method
@pytest.mark.filterwarnings("ignore::crowdzoo.training.faults.NotLearnedWarning")
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")
def test_a_tie_a_class_never_said_and_few_labels_or_none_give_finite_numbers(method):
    dense = np.full((9, R), -1)
    dense[0, :4] = [0, 0, 1, 1]
    dense[[1, 2, 4, 5, 6, 7, 8], [3, 0, 1, 1, 2, 2, 2]] = [1, 0, 0, 1, 0, 1, 1]  # nobody labelled task 3, 4 nothing
    annotations = Annotations.from_dense(dense, classes=np.arange(K))
    model, _ = train(replace(settings(method), epochs=3, dropout=0.0), X[:9], annotations=annotations)
    found = [model.predict(X, verbose=0), *model.get_weights(), model.history.history["loss"]]
    if not model.crowd.traits.needs_hidden_layer:
        found += [model.posteriors(X[:9], annotations), model.annotator_confusions()]
    assert all(np.isfinite(each).all() for each in found)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("conall", {}, "unknown method 'conall': choose one of "),
        ("deep-em", {"num_annotators": 3}, "unknown setting of deep-em 'num_annotators'"),
        ("deep-em", {"prior": "much"}, "prior"),
        ("crowdsourced-layer", {"scale": float("nan")}, "scale must be a number from -10000 to 10000"),
    ],
)
def test_what_no_method_can_use_is_named(method, arguments, message):
    with pytest.raises(ConfigError, match=message):
        check_method(method, arguments)


def test_names_are_those_of_the_layers():
    for method in LEARNING:
        layer = create_crowd_layer(method, R, K)
        assert type(layer) is crowd_layer_class(method)
        assert layer.num_annotators == R
    assert crowd_layer_class("aggregated") is None
