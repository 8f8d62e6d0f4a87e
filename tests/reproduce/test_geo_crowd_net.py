"""The crowds of docs/papers/ibrahim.md are what the protocol says."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("geo_crowd_net")


def test_crowds_have_anchor_points_and_experts_where_the_protocol_says(script):
    for crowd in script.CROWDS:
        f = script.distributions(crowd)
        np.testing.assert_allclose(f.sum(axis=1), 1)
        anchors = f.max(axis=0).min() > 0.9  # of every class
        assert anchors == (crowd in ("both", "no experts"))
        confusions = script.matrices(crowd, np.random.default_rng(0))
        np.testing.assert_allclose(confusions.sum(axis=2), 1)
        # an expert of k: a label that stands for k alone, P(said | k) / sum over truths
        purity = (confusions / confusions.sum(axis=1, keepdims=True)).max(axis=(0, 2))
        assert (purity.min() > 0.9) == (crowd in ("both", "no anchors"))
        assert (purity.max() < 0.9) == (crowd in ("no experts", "neither"))
