"""The batteries of crowdzoo on the methods of this package."""

import numpy as np
from own_method.instance_confusions import InstanceConfusions
from own_method.weighted_vote import WeightedVote

from crowdzoo.testing import check_aggregator, check_layer


def test_the_aggregator_passes_the_battery():
    """With settings other than the default, too."""
    check_aggregator(WeightedVote())
    check_aggregator(WeightedVote(power=0.5))


def test_the_layer_passes_the_battery():
    """On four tasks of three classes, with two labels each and features of two numbers."""
    rng = np.random.default_rng(0)
    p, x = rng.dirichlet(np.ones(3), 4).astype("float32"), rng.normal(size=(4, 2)).astype("float32")
    codes = np.array([[0, 1], [1, 2], [2, 0], [0, 2]], "int32")
    arguments = {"num_annotators": 3, "start": 1.0}
    check_layer(InstanceConfusions, arguments, p, (4, 2, 3), annotators=codes, features=x)
