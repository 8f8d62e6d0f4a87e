"""The CRF against every path of tags written out, and against what it must do at padding and at one token."""

import itertools

import numpy as np
import pytest
from keras import ops
from slopes import finite_differences

from crowdzoo.layers.crf import CRF, crf_decode, crf_log_likelihood, crf_log_norm, crf_marginals
from crowdzoo.testing import LAYER_CHECKS, LayerCase, gradients

B, T, K = 4, 5, 3
LENGTHS = [5, 3, 1, 0]
MASK = np.arange(T) < np.array(LENGTHS)[:, None]


def inputs(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, T, K)).astype("float32"), rng.normal(size=(K, K)).astype("float32")


def paths(scores, length, transitions):
    """Every path of a sentence with its log-weight, in float64 and one by one."""
    found = {}
    for path in itertools.product(range(K), repeat=length):
        weight = sum(float(scores[t, tag]) for t, tag in enumerate(path))
        found[path] = weight + sum(float(transitions[one, two]) for one, two in itertools.pairwise(path))
    return found


def test_norm_likelihood_and_marginals_are_those_of_all_paths_written_out():
    scores, transitions = inputs()
    tags = np.random.default_rng(1).integers(K, size=(B, T))
    norm = ops.convert_to_numpy(crf_log_norm(scores, MASK, transitions))
    likelihood = ops.convert_to_numpy(crf_log_likelihood(scores, np.where(MASK, tags, -1), MASK, transitions))
    marginals = ops.convert_to_numpy(crf_marginals(scores, MASK, transitions))
    for i, length in enumerate(LENGTHS):
        weights = paths(scores[i], length, transitions)
        expected = np.log(sum(np.exp(weight) for weight in weights.values()))
        assert norm[i] == pytest.approx(expected, abs=1e-5)
        assert likelihood[i] == pytest.approx(weights[tuple(tags[i, :length])] - expected, abs=1e-5)
        for t, k in itertools.product(range(length), range(K)):
            through = sum(np.exp(weight) for path, weight in weights.items() if path[t] == k)
            assert marginals[i, t, k] == pytest.approx(through / np.exp(expected), abs=1e-5)
    np.testing.assert_allclose(marginals.sum(axis=-1), 1, rtol=1e-5)


def test_decoding_finds_the_best_of_all_paths():
    transitions = 3 * inputs()[1]
    scores, mask = np.concatenate([inputs(seed)[0] for seed in range(5)]), np.tile(MASK, (5, 1))
    found = ops.convert_to_numpy(crf_decode(scores, mask, transitions))
    for i, length in enumerate(5 * LENGTHS):
        weights = paths(scores[i], length, transitions)
        assert tuple(found[i, :length]) == max(weights, key=weights.get)
        assert (found[i, max(length, 1) :] == found[i, max(length, 1) - 1]).all()


@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
def test_the_routine_of_every_layer(check):
    allowed = [[True, True, False], [True, True, True], [True, True, True], [True, True, False]]
    check(LayerCase(CRF, {"allowed": allowed}, inputs()[0], (B, T, K), {"mask": MASK[:B]}))


def test_without_transitions_the_layer_is_a_softmax():
    scores, _ = inputs()
    odds = np.exp(scores)
    found = ops.convert_to_numpy(CRF()(scores))
    np.testing.assert_allclose(found, odds / odds.sum(axis=-1, keepdims=True), rtol=1e-5)


def test_forbidden_transitions_and_first_tags_never_come():
    # tags O, B, I: I neither first nor after O
    allowed = [[True, True, False], [True, True, True], [True, True, True], [True, True, False]]
    layer = CRF(allowed)
    scores = np.zeros((1, T, K), "float32")
    scores[..., 2] = 5  # every token would rather be I
    marginals = ops.convert_to_numpy(layer(scores))
    assert marginals[0, 0, 2] == 0
    assert np.isfinite(marginals).all()
    assert ops.convert_to_numpy(layer.decode(scores)).tolist() == [[1, 2, 2, 2, 2]]
    assert ops.convert_to_numpy(layer.log_likelihood(scores, [[1, 2, 2, 2, 2]]))[0] > -0.1
    assert ops.convert_to_numpy(layer.log_likelihood(scores, [[0, 2, 2, 2, 2]]))[0] < -1000


def cost_by_paths(target, scores, transitions):
    """Cross-entropy of the marginals, from all paths at once in float64."""
    cost = 0.0
    for i, length in enumerate(LENGTHS):
        if length:
            every = np.array(list(itertools.product(range(K), repeat=length)))
            weights = scores[i, np.arange(length), every].sum(axis=1)
            weights = np.exp(weights + transitions[every[:, :-1], every[:, 1:]].sum(axis=1))
            marginals = np.einsum("p,ptk->tk", weights / weights.sum(), np.eye(K)[every])
            cost -= (target[i, :length] * np.log(marginals)).sum()
    return cost


def test_the_gradient_of_the_marginals_is_that_of_finite_differences():
    scores, transitions = inputs(3)
    layer = CRF()
    layer.build(scores.shape)
    layer.set_weights([transitions])
    target = np.random.default_rng(2).dirichlet(np.ones(K), size=(B, T)) * MASK[..., None]
    of_scores, (of_transitions,) = gradients(
        layer, lambda marginals: -ops.sum(ops.cast(target, "float32") * ops.log(marginals)), scores, mask=MASK
    )
    expected = finite_differences(lambda numbers: cost_by_paths(target, numbers, transitions.astype("float64")), scores)
    np.testing.assert_allclose(of_scores, expected, atol=1e-4)
    expected = finite_differences(lambda matrix: cost_by_paths(target, scores.astype("float64"), matrix), transitions)
    np.testing.assert_allclose(of_transitions, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([[True, True], [True, True]], "`allowed` must have 4 rows of 3"),
        ([[False] * 3, *[[True] * 3] * 3], "forbids every tag"),
    ],
)
def test_bad_constraints_are_named(allowed, message):
    with pytest.raises(ValueError, match=message):
        CRF(allowed).build((None, None, K))
