"""Crowd layers on tokens, against their equations token by token in NumPy with loops and float64."""

import keras
import numpy as np
import pytest
from keras import ops
from slow_cases import quick
from small_layers import softmax

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers import ConfusionMatrices, CrowdsourcedLayer, DeepEM, DoctorNet, PooledConfusions
from crowdzoo.layers.doctor_net import VoteShareCrossentropy
from crowdzoo.losses import ExpectedLogLikelihood, MaskedCrossentropy
from crowdzoo.models import ArrayData, CrowdModel
from crowdzoo.testing import LAYER_CHECKS, LayerCase

N, T, K, R, D = 5, 4, 3, 4, 6
LENGTHS = [4, 2, 1, 3, 4]
# who labelled which sentence; nobody the fourth, and annotator 3 nothing
WHO = [[0, 1], [0, 1, 2], [2], [], [1, 2]]


def a_crowd(seed=0):
    """Dense labels `[N, T, R]` and their annotations."""
    rng = np.random.default_rng(seed)
    dense = np.full((N, T, R), -1)
    for i, annotators in enumerate(WHO):
        for r in annotators:
            dense[i, : LENGTHS[i], r] = rng.integers(K, size=LENGTHS[i])
    return dense, Annotations.from_dense(dense, kind="sequence", classes=np.arange(K))


def probabilities(shape=(N, T), seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=shape).astype("float32")


def features(seed=2):
    return np.random.default_rng(seed).normal(size=(N, T, D)).astype("float32")


def given(crowd):
    """A model whose instances are the base's answers themselves."""
    return CrowdModel(keras.Sequential([keras.Input((None, K)), keras.layers.Identity()]), crowd)


def some_confusions(seed=3):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=(R, K))


def posteriors_by_hand(p, dense, confusions):
    """q `[N, T, K]`, zeros where nobody labelled, and the log-likelihood of all labels."""
    q, likelihood = np.zeros((N, T, K)), 0.0
    for i, t in np.ndindex(N, T):
        said = [(r, label) for r, label in enumerate(dense[i, t]) if label >= 0]
        if said:
            odds = p[i, t].astype("float64")
            for r, label in said:
                odds = odds * confusions[r, :, label]
            q[i, t] = odds / odds.sum()
            likelihood += np.log(odds.sum())
    return q, likelihood


def votes_by_hand(dense):
    counts = np.zeros((N, T, K))
    for i, t, r in np.argwhere(dense >= 0):
        counts[i, t, dense[i, t, r]] += 1
    return counts


@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
@pytest.mark.parametrize("layer", [ConfusionMatrices, DoctorNet])
def test_the_battery_passes_on_sequences(layer, check):
    heads = layer is DoctorNet
    arguments = {"num_annotators": R, "kind": "sequence", **({"num_classes": K, "weighted": True} if heads else {})}
    ids = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1], [2, 1, 0]], dtype="int32")
    inputs = features() if heads else probabilities()
    check(LayerCase(layer, arguments, inputs, (N, T, 3, K), {"annotators": ids}))


# === DeepEM ===


def test_the_posterior_of_a_token_is_bayes_rule_on_its_own_labels():
    dense, annotations = a_crowd()
    model, p, confusions = given(DeepEM(R, kind="sequence")), probabilities(), some_confusions()
    model.crowd.set_confusions(confusions)
    expected, likelihood = posteriors_by_hand(p, dense, confusions)
    # two in a batch, whose sentences are cut to the longest of the batch
    found, total = model.e_step(ArrayData(p, annotations), batch_size=2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert total == pytest.approx(likelihood, rel=1e-4)
    for i, length in enumerate(LENGTHS):
        assert not found[i, length if WHO[i] else 0 :].any()
    # who asks for posteriors gets the estimate where nobody labelled
    expected[3] = p[3]
    np.testing.assert_allclose(model.posteriors(p, annotations), expected, rtol=1e-4, atol=1e-6)


def test_the_expected_log_likelihood_of_a_sentence_is_the_sum_over_its_tokens():
    rng = np.random.default_rng(0)
    q, joint = probabilities(), -rng.exponential(size=(N, T, K)).astype("float32")
    q[2, 1:] = 0  # beyond the sentence
    expected = [-sum(q[i, t, k] * joint[i, t, k] for t in range(T) for k in range(K)) for i in range(N)]
    loss = ExpectedLogLikelihood(reduction=None)
    np.testing.assert_allclose(ops.convert_to_numpy(loss(q, joint)), expected, rtol=1e-5)
    assert float(ops.convert_to_numpy(ExpectedLogLikelihood()(q, joint))) == pytest.approx(np.mean(expected), rel=1e-5)
    # labels instead of posteriors: the mean over them
    dense, _ = a_crowd()
    logs = np.log(probabilities((N, T, R)))
    cells = np.argwhere(dense >= 0)
    mean = -np.mean([logs[i, t, r, dense[i, t, r]] for i, t, r in cells])
    assert float(ops.convert_to_numpy(ExpectedLogLikelihood()(dense, logs))) == pytest.approx(mean, rel=1e-5)


# === CrowdsourcedLayer: the majority first ===


class Recorded(CrowdModel):
    """Notes what each phase is trained on, and trains only where that is asked for."""

    trains = False

    def fit_batches(self, data, **kwargs):
        frozen = not self.crowd.kernel.trainable
        self.phases = [*getattr(self, "phases", []), (type(self.loss).__name__, kwargs["epochs"], frozen)]
        self.passes = [*getattr(self, "passes", []), [(np.asarray(x), np.asarray(y)) for x, y in data] if frozen else 0]
        return super().fit_batches(data, **kwargs) if self.trains else None


@pytest.mark.parametrize(
    ("arguments", "epochs"),
    quick(
        ({"kind": "sequence", "majority_epochs": 2}, 2),
        ({}, 0),
        ({"majority_epochs": 3}, 3),
        slow=[({"kind": "sequence"}, 5)],
    ),
)
def test_the_base_starts_with_so_many_epochs_on_the_majoritys_labels(arguments, epochs):
    dense, annotations = a_crowd()
    x = features()
    if "kind" not in arguments:
        x, dense = x[:, 0], dense[:, :1]
        annotations = Annotations.from_dense(dense[:, 0], classes=np.arange(K))
    shape = (D,) if x.ndim == 2 else (None, D)
    base = keras.Sequential([keras.Input(shape), keras.layers.Dense(K, activation="softmax")])
    model = Recorded(base, CrowdsourcedLayer(R, scale=2.0, **arguments))
    model.compile()
    model.fit(x, annotations, epochs=7, batch_size=N, shuffle=False, verbose=0)
    first = [("MaskedCrossentropy", epochs, True)] if epochs else []
    assert model.phases == [*first, ("MaskedCrowdCrossentropy", 7, False)]
    if epochs:
        ((found, targets),) = model.passes[0]
        labelled = [i for i, who in enumerate(WHO) if who]
        np.testing.assert_array_equal(found, x[labelled])
        counts = votes_by_hand(np.pad(dense, [(0, 0), (0, T - dense.shape[1]), (0, 0)], constant_values=-1))
        for i, t in np.ndindex(N, dense.shape[1]):
            if i in labelled:
                best = [k for k in range(K) if counts[i, t, k] == counts[i, t].max() > 0]
                row = [k in best for k in range(K)] / np.maximum(len(best), 1)  # of a tie each an equal part
                if "kind" not in arguments:  # of tasks the shares of the votes
                    row = counts[i, t] / max(counts[i, t].sum(), 1)
                np.testing.assert_allclose(targets[labelled.index(i)].reshape(-1, K)[t], row, rtol=1e-6)
        assert (counts.max(axis=-1) == np.sort(counts, axis=-1)[..., 1]).any()  # ties are there


# === MaskedCrossentropy ===


def test_masked_crossentropy_is_the_mean_over_tokens_that_have_a_distribution():
    q, p = probabilities(seed=4), probabilities(seed=5)
    there = np.random.default_rng(0).random((N, T)) < 0.6
    q[~there] = 0
    weight = np.random.default_rng(1).random(N)
    costs = {(i, t): -sum(q[i, t, k] * np.log(p[i, t, k]) for k in range(K)) for i, t in np.argwhere(there)}
    loss = MaskedCrossentropy()
    assert float(ops.convert_to_numpy(loss(q, p))) == pytest.approx(np.mean([*costs.values()]), rel=1e-5)
    weighted = sum(weight[i] * cost for (i, _), cost in costs.items()) / len(costs)
    assert float(ops.convert_to_numpy(loss(q, p, sample_weight=weight))) == pytest.approx(weighted, rel=1e-5)
    # padding costs nothing, whatever the probabilities are there; and one row a task will do
    padded = [np.pad(array, [(0, 0), (0, 2), (0, 0)]) for array in (q, p)]
    assert float(ops.convert_to_numpy(loss(*padded))) == pytest.approx(np.mean([*costs.values()]), rel=1e-5)
    first = np.mean([cost for (_, t), cost in costs.items() if t == 0])
    assert float(ops.convert_to_numpy(loss(q[:, 0], p[:, 0]))) == pytest.approx(first, rel=1e-5)
    assert float(ops.convert_to_numpy(loss(np.zeros_like(q), p))) == 0.0


# === DoctorNet ===

IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [2, 0, 1], [2, 1, -1]], dtype="int32")


def heads(weighted):
    """A layer with random weights, and every head's answer to `features()`, `[N, T, R, K]` in float64."""
    layer = DoctorNet(R, K, weighted=weighted, kind="sequence", heads_at_once=3)
    layer.build((None, None, D))
    rng = np.random.default_rng(1)
    kernel, bias = rng.normal(size=(R, D, K)), rng.normal(size=(R, K))
    log_weight = rng.normal(size=R) if weighted else np.zeros(R)
    values = {"kernel": kernel, "bias": bias, "log_weight": log_weight, "seen": np.array([1, 1, 1, 0])}
    for name, value in values.items():
        if getattr(layer, name) is not None:
            getattr(layer, name).assign(value.astype("float32"))
    x, said = features().astype("float64"), np.empty((N, T, R, K))
    for i, t, r in np.ndindex(N, T, R):
        said[i, t, r] = softmax(np.array([sum(x[i, t] * kernel[r, :, k]) + bias[r, k] for k in range(K)]))
    return layer, said, np.exp(log_weight)


@pytest.mark.parametrize("weighted", [False, True], ids=["DN", "WDN"])
def test_heads_answer_every_token_and_the_truth_is_their_mean(weighted):
    layer, said, weights = heads(weighted)
    dense = ops.convert_to_numpy(layer(features()))
    sparse = ops.convert_to_numpy(layer(features(), annotators=IDS))
    assert dense.shape == (N, T, R, K)
    assert sparse.shape == (N, T, 3, K)
    np.testing.assert_allclose(softmax(dense), said, rtol=1e-4, atol=1e-6)
    for i, m in np.argwhere(IDS >= 0):
        r = IDS[i, m]
        np.testing.assert_allclose(softmax(sparse[i, :, m]), said[i, :, r], rtol=1e-4, atol=1e-6)
        if weighted:  # what the softmax drops is the weight
            np.testing.assert_allclose(np.exp(sparse[i, :, m]).sum(axis=-1), weights[r], rtol=1e-4)
    truth = ops.convert_to_numpy(layer.truth(features()))
    for i, t in np.ndindex(N, T):  # annotator 3 was not seen
        expected = sum(weights[r] * said[i, t, r] for r in range(3)) / weights[:3].sum()
        np.testing.assert_allclose(truth[i, t], expected, rtol=1e-4, atol=1e-6)
    rows = features().reshape(-1, D)
    by_token = [(truth[i, t], said[i, t]) for i, t in np.ndindex(N, T)]
    confusions = sum(np.einsum("k,rl->rkl", one, other) for one, other in by_token)
    confusions /= confusions.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(layer.confusions_on(rows), confusions, rtol=1e-4)


def test_the_loss_of_the_weights_sums_over_the_tokens_of_a_sentence():
    layer, said, weights = heads(weighted=True)
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, K, (N, T, 3)) * (IDS >= 0)[:, None] - (IDS < 0)[:, None]
    costs = np.zeros(N)
    for i, t in np.ndindex(N, T):
        voters = [m for m in range(3) if labels[i, t, m] >= 0]
        if voters:
            mean = sum(weights[IDS[i, m]] * said[i, t, IDS[i, m]] for m in voters)
            mean = mean / sum(weights[IDS[i, m]] for m in voters)
            costs[i] -= sum(np.log(mean[labels[i, t, m]]) for m in voters) / len(voters)
    found = VoteShareCrossentropy(reduction=None)(labels, layer(features(), annotators=IDS))
    np.testing.assert_allclose(ops.convert_to_numpy(found), costs, rtol=1e-4, atol=1e-6)
    assert costs[2] == 0


# === Layers for classes only ===


@pytest.mark.parametrize("layer", [PooledConfusions, DeepEM])
def test_annotations_of_sequences_are_refused_under_a_layer_for_classes(layer):
    model = CrowdModel(keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax")]), layer(R))
    model.compile()
    with pytest.raises(DataError, match="the annotations are of kind sequence"):
        model.fit(features()[:, 0], a_crowd()[1], verbose=0)
