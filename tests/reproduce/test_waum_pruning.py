"""benchmarks/reproduce/waum_pruning.py: one network for all annotators is what the layer does, or one for each."""

import keras
import numpy as np
import pytest

from crowdzoo.layers import WAUM
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings(
    "ignore::crowdzoo.aggregation.VotesWarning", "ignore::crowdzoo.aggregation.ConvergenceWarning"
)
ANNOTATIONS = simulated_crowd(60, 4, 3, redundancy=3)[0]
X = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")


def a_base():
    return FeatureClassifier(2, 3, hidden=(8,), dropout=0.0)


@pytest.fixture(scope="module")
def waum(reproduce):
    return reproduce("waum_pruning").waum


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"margin": "pleiss", "denominator": "redundancy"}])
def test_scores_are_those_of_the_layer(waum, settings):
    keras.utils.set_random_seed(0)
    model = CrowdModel(a_base(), WAUM(4, margin_epochs=2, **settings))
    model.compile(keras.optimizers.Adam(0.02))
    model.fit(X, ANNOTATIONS, epochs=1, seed=0, verbose=0)
    found = waum(a_base, X, ANNOTATIONS, epochs=2, optimizer=keras.optimizers.Adam(0.02), **settings)
    np.testing.assert_allclose(found.waum, model.crowd.scores.waum, atol=1e-6)
