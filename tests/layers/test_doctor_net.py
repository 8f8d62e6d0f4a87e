"""DoctorNet against its equations, written out in NumPy with loops and float64."""

import keras
import numpy as np
import pytest
from drawn_crowds import labels_of
from keras import ops
from small_layers import softmax

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers.doctor_net import DoctorNet, VoteShareCrossentropy
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.testing import gradients

B, D, K, R = 4, 6, 3, 5
# annotator 4 labels nothing; task 2 nobody labelled; annotator 1 labels one task
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 2]], dtype="int32")
LABELS = np.array([[1, 1, -1], [0, -1, -1], [-1, -1, -1], [2, 0, 2]], dtype="int32")

both = pytest.mark.parametrize("weighted", [False, True], ids=["DN", "WDN"])


def hidden(rows=B, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, D)).astype("float32")


def made(weighted=False, seen=(1, 1, 1, 1, 0), **more):
    """A layer with random weights, and those weights by name in float64."""
    layer = DoctorNet(R, K, weighted=weighted, **more)
    layer.build((None, D))
    rng = np.random.default_rng(1)
    values = {"kernel": rng.normal(size=(R, D, K)), "bias": rng.normal(size=(R, K)), "seen": np.array(seen, "float64")}
    values["log_weight"] = rng.normal(size=R) if weighted else np.zeros(R)
    for name, value in values.items():
        if getattr(layer, name) is not None:
            getattr(layer, name).assign(value.astype("float32"))
    return layer, values


def cost_of(loss, layer, h):
    return ops.convert_to_numpy(loss(LABELS, layer(h, annotators=IDS)))


def head(values, r, h):
    """Annotator r's label distribution for one hidden vector."""
    logits = [sum(h[d] * values["kernel"][r, d, k] for d in range(D)) + values["bias"][r, k] for k in range(K)]
    return softmax(np.array(logits))


# === The equations ===


@both
def test_answers_are_the_annotators_own_heads(weighted):
    layer, values = made(weighted)
    h = hidden()
    dense, sparse = (ops.convert_to_numpy(ops.softmax(layer(h, annotators=ids))) for ids in (None, IDS))
    for i in range(B):
        for r in range(R):
            np.testing.assert_allclose(dense[i, r], head(values, r, h[i]), rtol=1e-4, atol=1e-6)
        for m in np.flatnonzero(IDS[i] >= 0):
            np.testing.assert_allclose(sparse[i, m], head(values, IDS[i, m], h[i]), rtol=1e-4, atol=1e-6)


@both
@pytest.mark.parametrize("heads_at_once", [1, 2, 5, 64])
def test_the_truth_is_the_weighted_mean_of_the_trained_heads(weighted, heads_at_once):
    layer, values = made(weighted, heads_at_once=heads_at_once)
    h = hidden()
    weights = np.exp(values["log_weight"]) * values["seen"]
    weights /= weights.sum()
    expected = [sum(weights[r] * head(values, r, h[i]) for r in range(R)) for i in range(B)]
    np.testing.assert_allclose(ops.convert_to_numpy(layer.truth(h)), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.annotator_weights(), weights, rtol=1e-5, atol=1e-12)


@both
@pytest.mark.parametrize("heads_at_once", [2, 64])
def test_heads_that_vote_are_counted_by_their_weight(weighted, heads_at_once):
    layer, values = made(weighted, heads_at_once=heads_at_once, vote=True)
    h = hidden(60)
    weights = np.exp(values["log_weight"]) * values["seen"]
    weights /= weights.sum()
    shares, means = np.zeros((60, K)), np.zeros((60, K))
    for i in range(60):
        for r in range(R):
            opinion = head(values, r, h[i])
            shares[i, opinion.argmax()] += weights[r]
            means[i] += weights[r] * opinion
    np.testing.assert_allclose(ops.convert_to_numpy(layer.truth(h)), shares, rtol=1e-5, atol=1e-7)
    assert (shares.argmax(axis=1) != means.argmax(axis=1)).any()  # so that the two can be told apart


@both
def test_the_loss_of_the_heads_moves_only_heads_that_were_asked(weighted):
    layer, values = made(weighted)
    h, loss = hidden(), MaskedCrowdCrossentropy()
    costs = [-np.log(head(values, IDS[i, m], h[i])[LABELS[i, m]]) for i, m in np.argwhere(LABELS >= 0)]
    np.testing.assert_allclose(cost_of(loss, layer, h), np.mean(costs), rtol=1e-5)
    by_h, (by_kernel, by_bias) = gradients(layer, lambda answers: loss(LABELS, answers), h, annotators=IDS)
    # softmax cross-entropy: the gradient by the logits is (probability - one-hot) / number of labels
    expected_bias, expected_kernel = np.zeros((R, K)), np.zeros((R, D, K))
    expected_h = np.zeros((B, D))
    for i, m in np.argwhere(LABELS >= 0):
        r = IDS[i, m]
        error = (head(values, r, h[i]) - np.eye(K)[LABELS[i, m]]) / len(costs)
        expected_bias[r] += error
        expected_kernel[r] += np.outer(h[i], error)
        expected_h[i] += values["kernel"][r] @ error
    np.testing.assert_allclose(by_bias, expected_bias, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(by_kernel, expected_kernel, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(by_h, expected_h, rtol=1e-3, atol=1e-6)
    assert not by_kernel[4].any()
    assert not by_h[2].any()


def vote_share_loss(values, h):
    """The second phase's loss, task by task."""
    costs = []
    for i in range(B):
        voters = [m for m in range(IDS.shape[1]) if LABELS[i, m] >= 0]
        if not voters:
            costs.append(0.0)
            continue
        weights = np.array([np.exp(values["log_weight"][IDS[i, m]]) for m in voters])
        mean = sum(w * head(values, IDS[i, m], h[i]) for w, m in zip(weights, voters, strict=True)) / weights.sum()
        shares = np.mean([np.eye(K)[LABELS[i, m]] for m in voters], axis=0)
        costs.append(-(shares * np.log(mean)).sum())
    return np.mean(costs)


def test_the_loss_of_the_weights_is_the_cross_entropy_of_vote_shares_and_voters_mean():
    layer, values = made(weighted=True)
    loss = VoteShareCrossentropy()
    h = hidden()
    np.testing.assert_allclose(cost_of(loss, layer, h), vote_share_loss(values, h), rtol=1e-5)
    layer.log_weight.assign_add(np.full(R, 3, "float32"))  # a common factor of the weights
    np.testing.assert_allclose(cost_of(loss, layer, h), vote_share_loss(values, h), rtol=1e-5)
    layer.log_weight.assign_add(np.array([1, 0, 0, 0, 0], "float32"))
    assert abs(cost_of(loss, layer, h) - vote_share_loss(values, h)) > 1e-3


def test_confusions_on_instances_are_means_of_the_heads_by_estimated_truth():
    layer, values = made(heads_at_once=2)
    h = hidden(12)
    found = layer.confusions_on(h)
    truth = ops.convert_to_numpy(layer.truth(h))
    for r in range(R):
        for k in range(K):
            mean = sum(truth[i, k] * head(values, r, h[i]) for i in range(12)) / truth[:, k].sum()
            np.testing.assert_allclose(found[r, k], mean, rtol=1e-4)
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-12)


def test_what_it_does_not_know_is_an_error_with_the_way_out():
    layer, _ = made()
    message = r"no confusion matrices and no posteriors; confusions_on\(model.base.predict\(x\)\)"
    with pytest.raises(ValueError, match=message):
        layer.log_confusions(IDS)
    with pytest.raises(ValueError, match=message):
        layer.annotator_confusions()
    x, _, annotations = a_crowd()
    with pytest.raises(ValueError, match=message):
        a_model().posteriors(x, annotations)


# === Training ===

N, ANNOTATORS = 400, 8


def a_crowd(seed=0):
    """Features, truth, and annotations by four experts, three who guess and one who labels nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)).astype("float32")
    truth = x[:, :K].argmax(axis=1)
    expert, guess = np.full((K, K), 0.05) + 0.85 * np.eye(K), np.full((K, K), 1 / K)
    dense = labels_of(truth, [expert] * 4 + [guess] * 3, 5, ANNOTATORS, rng)
    return x, truth, Annotations.from_dense(dense, classes=np.arange(K))


def a_model(weighted=False, seed=0, dropout=0.0, optimizer=None, batch_normalization=False, metrics=None, **more):
    keras.utils.set_random_seed(seed)
    base = FeatureClassifier(D, None, hidden=(16,), dropout=dropout, batch_normalization=batch_normalization)
    model = CrowdModel(base, DoctorNet(ANNOTATORS, K, weighted=weighted, heads_at_once=3, **more))
    model.compile(optimizer or keras.optimizers.Adam(0.02), metrics=metrics)
    return model


def weights_of(model):
    return [ops.convert_to_numpy(weight) for weight in model.weights]


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_the_second_phase_moves_the_weights_alone():
    x, _, annotations = a_crowd()
    settings = {"dropout": 0.3, "batch_normalization": True}
    first = a_model(**settings)
    first.fit(x, annotations, epochs=2, batch_size=100, verbose=0)
    both_phases = a_model(True, weight_epochs=3, **settings)  # sets the seed anew
    both_phases.fit(x, annotations, epochs=2, batch_size=100, verbose=0)
    moved = ops.convert_to_numpy(both_phases.crowd.log_weight)
    assert moved[:7].all()
    assert moved[7] == 0
    others = [weight for weight in both_phases.weights if weight is not both_phases.crowd.log_weight]
    # the same first phase, moving statistics of the normalisation included
    for weight, expected in zip(others, weights_of(first), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(weight), expected, rtol=1e-3, atol=1e-5, err_msg=weight.path)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_what_the_user_froze_stays_frozen_and_nothing_else_does():
    x, _, annotations = a_crowd()
    keras.utils.set_random_seed(0)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(8), keras.layers.Dense(8, activation="relu")])
    base.layers[0].trainable = False
    base.layers[1].bias.trainable = False
    model = CrowdModel(base, DoctorNet(ANNOTATORS, K, weighted=True))
    model.compile(metrics=["accuracy"])

    def trained():
        return [weight.path for weight in model.trainable_weights]

    before, frozen = trained(), weights_of(base.layers[0])
    assert len(before) == 3  # the second kernel, and the heads' two
    model.fit(x, annotations, epochs=1, batch_size=100, verbose=0)
    assert trained() == before
    assert base.trainable
    for value, expected in zip(weights_of(base.layers[0]), frozen, strict=True):
        np.testing.assert_array_equal(value, expected)

    class Broken(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise RuntimeError("in the second phase")

    with pytest.raises(RuntimeError, match="in the second phase"):
        model.fit(x, annotations, epochs=1, batch_size=100, callbacks=[Broken()], verbose=0)
    assert trained() == before
    assert isinstance(model.loss, MaskedCrowdCrossentropy)
