"""Where annotators start when nothing else is asked for."""

import numpy as np
import pytest

from crowdzoo.layers import (
    ConfusionMatrices,
    CrowdsourcedLayer,
    DeepEM,
    GeoCrowdNet,
    PooledConfusions,
    TraceRegularization,
    UnionNet,
)

HALF = (ConfusionMatrices, GeoCrowdNet, TraceRegularization, UnionNet, PooledConfusions)
CONNECTIONS = ("MW", "VW", "VB", "VW+B", "S")


def right(layer, classes):
    """P(right label) of the first annotator for each class."""
    layer.build((None, classes))
    return np.diagonal(layer.annotator_confusions()[0])


@pytest.mark.parametrize("layer", HALF)
def test_annotators_are_right_with_a_half_at_first_and_with_more_of_few_classes(layer):
    np.testing.assert_allclose(right(layer(2), 10), 0.5, rtol=1e-5)
    np.testing.assert_allclose(right(layer(2), 2), np.e / (np.e + 1), rtol=1e-5)  # a half would say nothing


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_annotators_of_the_crowd_layer_are_right_with_065_at_first(connection):
    np.testing.assert_allclose(right(CrowdsourcedLayer(2, connection), 10), 0.65, rtol=1e-5)
    np.testing.assert_allclose(right(CrowdsourcedLayer(2, connection), 2), np.e / (np.e + 1), rtol=1e-5)
    np.testing.assert_allclose(right(CrowdsourcedLayer(2, connection, scale=1), 10), np.e / (np.e + 9), rtol=1e-5)


def test_pooled_annotators_of_few_numbers_start_at_08():
    for form in ("diagonal", "low-rank"):
        layer = PooledConfusions(2, form)
        layer.build((None, 5))
        np.testing.assert_allclose(layer.annotator_accuracies(), 0.8, rtol=1e-5)


def test_the_votes_come_first_for_tokens_alone_and_where_the_recipe_has_them():
    assert ConfusionMatrices(2, kind="sequence").num_majority_epochs == 5
    assert CrowdsourcedLayer(2, kind="sequence").num_majority_epochs == 5
    assert ConfusionMatrices(2, kind="sequence", majority_epochs=0).num_majority_epochs == 0
    for kind in ("classification", "segmentation"):
        assert ConfusionMatrices(2, kind=kind).num_majority_epochs == 0
        assert TraceRegularization(2, kind=kind).num_majority_epochs == 0
    assert DeepEM(2, kind="sequence").num_majority_epochs == 0
