"""CROWDLAB and ActiveLab against cleanlab's numbers, and where those have none."""

import json
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import active_scores, crowdlab

SETS = json.loads(Path(__file__).with_name("cleanlab.json").read_text())["sets"]


def annotations_of(given):
    """The annotations of a stored set; its last six tasks have none."""
    classes = np.arange(len(given["probabilities"][0]))
    names = {"tasks": np.arange(len(given["probabilities"])), "annotators": np.arange(given["num_annotators"])}
    return Annotations.from_arrays(given["task"], given["annotator"], given["label"], classes=classes, **names)


@pytest.mark.parametrize("given", SETS)
def test_it_is_cleanlabs(given):
    found = crowdlab(annotations_of(given), given["probabilities"])
    np.testing.assert_array_equal(found.labels[:-6], given["labels"])
    for name in ("quality", "label_quality", "annotator_quality", "agreement", "annotator_weights", "model_weight"):
        mine = getattr(found, name)
        mine = mine[:-6] if name == "quality" else mine
        np.testing.assert_allclose(mine, np.array(given[name], float), rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(found.posteriors[-6:], given["probabilities"][-6:])
    assert len(repr(found)) < 80


@pytest.mark.parametrize("given", SETS)
def test_scores_are_cleanlabs_at_its_temperature(given):
    found = active_scores(annotations_of(given), given["probabilities"], temperature=given["temperature"])
    np.testing.assert_allclose(found, given["active"], rtol=0, atol=1e-12)


def test_the_temperature_is_the_one_that_explains_the_labels_best():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 4000)
    labels = np.stack([(truth.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1) for _ in range(3)], axis=1)
    annotations = Annotations.from_dense(labels, classes=np.arange(3))
    for temperature in (0.5, 1.0, 3.0):
        given = truth ** (1 / temperature)
        given /= given.sum(axis=1, keepdims=True)
        tempered = active_scores(annotations, given, temperature=1 / temperature)
        assert np.abs(active_scores(annotations, given) - tempered).mean() < 0.01


def test_a_good_classifier_corrects_the_vote_and_a_bad_one_does_not():
    rng = np.random.default_rng(1)
    truth = rng.integers(4, size=3000)
    labels = np.where(rng.random((3000, 3)) < 0.6, truth[:, None], rng.integers(4, size=(3000, 3)))
    annotations = Annotations.from_dense(labels, classes=np.arange(4))
    good = np.full((3000, 4), 0.1)
    good[np.arange(3000), np.where(rng.random(3000) < 0.9, truth, rng.integers(4, size=3000))] = 0.7
    vote = (crowdlab(annotations, np.full((3000, 4), 0.25)).labels == truth).mean()
    found = crowdlab(annotations, good)
    assert (found.labels == truth).mean() > vote + 0.05
    bad = crowdlab(annotations, rng.permutation(good))
    assert bad.model_weight < 0.1 * found.model_weight
    assert (bad.labels == truth).mean() > vote - 0.01


def test_an_annotator_who_shares_no_task_has_the_mean_weight_and_no_quality():
    annotations = Annotations.from_arrays(
        [0, 0, 1, 1, 2], [0, 1, 0, 1, 2], [0, 0, 1, 0, 1], tasks=np.arange(4), annotators=np.arange(4), classes=[0, 1]
    )
    found = crowdlab(annotations, [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]])
    assert np.isnan(found.annotator_quality).tolist() == [False, False, True, True]
    assert np.isnan(found.agreement).tolist() == [False, False, False, True]
    assert found.annotator_weights[2] == found.annotator_weights[3] == found.annotator_weights[:2].mean()
    assert np.isfinite(found.posteriors).all()


def test_what_cannot_be_used_is_refused():
    two = Annotations.from_dense(np.zeros((3, 2), int), classes=["a", "b"])
    with pytest.raises(DataError, match=r"have the shape \[tasks, classes\] = \[3, 2\], got \[2, 2\]"):
        crowdlab(two, np.full((2, 2), 0.5))
    with pytest.raises(DataError, match=r"row 1 of the probabilities is \[0.5 0.6\]"):
        crowdlab(two, [[0.5, 0.5], [0.5, 0.6], [1, 0]])
    with pytest.raises(DataError, match="row 0 of the probabilities is"):
        crowdlab(two, np.full((3, 2), np.nan))
    with pytest.raises(DataError, match="no task has labels of two of them"):
        crowdlab(Annotations.from_dense(np.array([[0], [1]]), classes=["a", "b"]), np.full((2, 2), 0.5))
    with pytest.raises(DataError, match="is for classes"):
        crowdlab(Annotations.from_dense(np.ones((3, 2)), kind="regression"), np.full((3, 2), 0.5))
    with pytest.raises(ConfigError, match="temperature"):
        active_scores(two, np.full((3, 2), 0.5), temperature=0)
