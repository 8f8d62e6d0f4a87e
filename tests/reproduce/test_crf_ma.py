"""CRF-MA of benchmarks/reproduce, against sums over all paths."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
LENGTHS = np.array([2, 4, 1])


@pytest.fixture(scope="module")
def crf_ma(reproduce):
    return reproduce("crf_ma")


def paths(scores, transitions):
    """All paths of one sentence, and their log-weights."""
    every = [np.array(path) for path in itertools.product(range(scores.shape[1]), repeat=len(scores))]
    steps = np.arange(len(scores))
    return every, np.array([scores[steps, p].sum() + transitions[p[:-1], p[1:]].sum() for p in every])


@pytest.fixture
def chain():
    """Scores [7, 3], transitions [3, 3], and each sentence's part of the scores."""
    rng = np.random.default_rng(0)
    scores, transitions = 2 * rng.normal(size=(7, 3)), rng.normal(size=(3, 3))
    return scores, transitions, np.split(scores, np.cumsum(LENGTHS)[:-1])


def test_sums_over_chains_are_those_over_all_paths(crf_ma, chain):
    scores, transitions, parts = chain
    norms, marginals, moved = [], [], np.zeros((3, 3))
    for part in parts:
        every, logs = paths(part, transitions)
        norms.append(np.logaddexp.reduce(logs))
        p = np.exp(logs - norms[-1])
        marginals.append(sum(weight * np.eye(3)[path] for weight, path in zip(p, every, strict=True)))
        for weight, path in zip(p, every, strict=True):
            np.add.at(moved, (path[:-1], path[1:]), weight)
    chains = crf_ma.Chains(LENGTHS)
    total, found, transits = chains.sums(scores, transitions)
    np.testing.assert_allclose(total, sum(norms), rtol=1e-12)
    np.testing.assert_allclose(chains.log_norms(scores, transitions), norms, rtol=1e-12)
    np.testing.assert_allclose(found, np.concatenate(marginals), atol=1e-12)
    np.testing.assert_allclose(transits, moved, atol=1e-12)


def test_the_best_tags_are_the_most_probable_path(crf_ma, chain):
    scores, transitions, parts = chain
    found = crf_ma.Chains(LENGTHS).best(scores, transitions)
    best = [every[int(logs.argmax())] for every, logs in (paths(part, transitions) for part in parts)]
    np.testing.assert_array_equal(found, np.concatenate(best))


def test_a_fitted_chain_expects_what_it_was_given(crf_ma):
    """At the optimum the slope is zero: expected less given features are weights over the variance, times -1."""
    rng = np.random.default_rng(1)
    features = csr_matrix((rng.random((7, 4)) < 0.6).astype(float))
    crf = crf_ma.LinearChain(features, LENGTHS, 3)
    sentences, q = np.array([0, 0, 1, 2]), np.array([0.3, 0.7, 1.0, 1.0])
    tags = [rng.integers(3, size=LENGTHS[i]) for i in sentences]
    counts, moves = crf_ma.weighted(q, sentences, tags, crf.chains.starts, (7, 3))
    np.testing.assert_allclose(counts.sum(axis=1), 1)
    assert moves.sum() == pytest.approx((LENGTHS - 1).sum())
    crf.fit(counts, moves, steps=500)
    _, marginals, moved = crf.chains.sums(features @ crf.weights, crf.transitions)
    np.testing.assert_allclose(features.T @ (marginals - counts), -crf.weights / crf_ma.VARIANCE, atol=1e-3)
    np.testing.assert_allclose(moved - moves, -crf.transitions / crf_ma.VARIANCE, atol=1e-3)
    parts = np.split(features @ crf.weights, np.cumsum(LENGTHS)[:-1])
    for log, i, own in zip(crf.log_probabilities(sentences, tags), sentences, tags, strict=True):
        every, logs = paths(parts[i], crf.transitions)
        place = next(n for n, path in enumerate(every) if (path == own).all())
        assert log == pytest.approx(logs[place] - np.logaddexp.reduce(logs))


def test_reliabilities_are_those_of_annotators_who_are_chosen_among_few(crf_ma):
    """Two annotators a sentence; one of pi 2/3 is chosen twice as often as one of 1/3 beside it."""
    sentences, annotators = np.repeat(np.arange(30), 2), np.array([0, 1, 1, 2, 0, 2] * 10)
    true = np.array([0.6, 0.3, 0.1])
    q = crf_ma.shares(true[annotators], sentences)
    pi = np.full(3, 1 / 3)
    for _ in range(500):
        pi = crf_ma.reliabilities(q, sentences, annotators, pi)
    np.testing.assert_allclose(pi, true, atol=1e-6)


def test_annotators_who_guess_are_found_and_the_tags_of_the_others_are_learnt(crf_ma):
    """Three of five annotators guess at random, alike in nothing; words say the tag."""
    rng = np.random.default_rng(2)
    words = [rng.choice(["alpha", "Beta", "33"], size=rng.integers(3, 8)) for _ in range(150)]
    gold = [np.array([{"alpha": 0, "Beta": 1, "33": 2}[word] for word in each]) for each in words]
    sentences, annotators = np.repeat(np.arange(150), 5), np.tile(np.arange(5), 150)
    tags = [
        np.where(rng.random(len(gold[i])) < (0.95 if r < 2 else 0), gold[i], rng.integers(3, size=len(gold[i])))
        for i, r in zip(sentences, annotators, strict=True)
    ]
    lengths = np.array([len(each) for each in words])
    features = crf_ma.Features(words)
    crf = crf_ma.LinearChain(features(words), lengths, 3)
    q, pi = crf_ma.fit_crowd(crf, sentences, annotators, tags, rounds=5)
    np.testing.assert_allclose(np.bincount(sentences, q), 1)
    assert pi[:2].sum() > 0.95
    said = crf.tag(features(words), lengths)
    assert np.mean(np.concatenate(said) == np.concatenate(gold)) > 0.99


def test_words_have_shapes_ends_and_neighbours(crf_ma):
    assert crf_ma.shape("U.S.-90s") == "A.A.-0a"
    assert set(crf_ma.word_features("Paris")) >= {"w=paris", "s=Aa", "$is", "^par", "$aris"}
    first, second = crf_ma.token_features(["In", "Paris"])
    assert {"w=in", "1w=paris", "1s=Aa", "-1w=<s>"} <= set(first)
    assert {"w=paris", "-1w=in", "1w=</s>"} <= set(second)


def test_every_copy_is_one_annotators_tags_of_one_sentence(crf_ma):
    from crowdzoo import Annotations

    rows = [("a", "x", 0, "O"), ("a", "x", 1, "B-P"), ("a", "y", 0, "B-P"), ("a", "y", 1, "I-P"), ("b", "y", 0, "O")]
    task, annotator, position, label = zip(*rows[::-1], strict=True)
    found = Annotations.from_arrays(
        task, annotator, label, kind="sequence", position=position, classes=["O", "B-P", "I-P"], tasks=["a", "b"]
    )
    sentences, annotators, tags = crf_ma.copies(type("Crowd", (), {"annotations": found}))
    assert sentences.tolist() == [0, 0, 1]
    names = [str(found.annotators[r]) for r in annotators]
    assert dict(zip(zip(sentences.tolist(), names, strict=True), [t.tolist() for t in tags], strict=True)) == {
        (0, "x"): [0, 1], (0, "y"): [1, 2], (1, "y"): [0],
    }  # fmt: skip
